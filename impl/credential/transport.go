package credential

import (
	"fmt"
	"net/http"
)

// Wrap lets requests show the credential, for clients of client-go.
func (s *Source) Wrap(next http.RoundTripper) http.RoundTripper { return shows{s, next} }

type shows struct {
	*Source
	next http.RoundTripper
}

// WrappedRoundTripper is what sends requests on, for client-go.
func (s shows) WrappedRoundTripper() http.RoundTripper { return s.next }

// RoundTrip implements http.RoundTripper.
func (s shows) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := s.Token(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("the node's credential: %w", err)
	}
	if token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := s.next.RoundTrip(req)
	if err == nil && token != "" && answer.StatusCode == http.StatusUnauthorized {
		s.Refused(token)
	}
	return answer, err
}
