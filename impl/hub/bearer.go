package hub

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/disk"
)

const maxToken = 1 << 10 // bytes of a file of one

// roundTripper is a function that is one.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// bearer shows a token.
type bearer struct {
	token string
	http.RoundTripper
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(req)
}

var bootstrapToken = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// readToken reads a bootstrap token, by which a hub joins that holds nothing yet. Its value is in no error.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := disk.ReadFile(path, maxToken)
	if err != nil {
		return "", cli.Usage("--bootstrap-token-file", path, err.Error())
	}
	token := strings.TrimSpace(string(text))
	if !bootstrapToken.MatchString(token) {
		return "", cli.Usage("--bootstrap-token-file", path, "a file of one bootstrap token, as in abcdef.0123456789abcdef")
	}
	return token, nil
}
