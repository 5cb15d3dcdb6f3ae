package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
	userAgent     = "weir-hub"
	reviewPath    = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

var reviewKind = wire.Kind{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}

// unavailableError says that the cloud gave no verdict.
type unavailableError struct{ err error }

func (e *unavailableError) Error() string { return e.err.Error() }
func (e *unavailableError) Unwrap() error { return e.err }

// reviewer asks the cloud whether a caller may do something, with the caller's own credentials: one request
// authenticates and authorizes.
type reviewer struct {
	asCaller, asHub http.RoundTripper
}

// isCredential tells whether a header says who the caller is or wants to be.
func isCredential(name string) bool {
	return name == "Authorization" || strings.HasPrefix(name, "Impersonate-")
}

// review returns the cloud's verdict. refused is set instead if the cloud did not take the question: the caller is not who
// it says (401), or may not ask in that name (403).
func (r reviewer) review(ctx context.Context, who caller, credentials http.Header, a attributes) (allowed bool, reason string, refused *apierrors.StatusError, err error) {
	body, err := encodeReview(a)
	if err != nil {
		return false, "", nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://cloud"+reviewPath, bytes.NewReader(body))
	if err != nil {
		return false, "", nil, err
	}
	for name, values := range credentials {
		if isCredential(name) {
			req.Header[name] = values
		}
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Content-Type", mediaProtobuf)
	req.Header.Set("Accept", mediaProtobuf)
	transport := r.asCaller
	if who.kind == thisNode {
		transport = r.asHub
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false, "", nil, &unavailableError{fmt.Errorf("access review: %w", err)}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return false, "", nil, &unavailableError{fmt.Errorf("access review: %w", err)}
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated:
		var review authorizationv1.SelfSubjectAccessReview
		kind, raw, err := wire.SplitEnvelope(answer)
		if err == nil && kind.Kind != reviewKind.Kind {
			err = fmt.Errorf("the answer is a %s", kind.Kind)
		}
		if err == nil {
			err = review.Unmarshal(raw)
		}
		if err != nil {
			return false, "", nil, &unavailableError{fmt.Errorf("access review: %w", err)}
		}
		return review.Status.Allowed && !review.Status.Denied, review.Status.Reason, nil, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return false, "", decodeStatus(resp, answer), nil
	}
	return false, "", nil, &unavailableError{fmt.Errorf("access review: %s", resp.Status)}
}

func encodeReview(a attributes) ([]byte, error) {
	ra := &authorizationv1.ResourceAttributes{
		Verb: a.verb, Group: a.group, Version: a.version, Resource: a.resource, Namespace: a.namespace, Name: a.name,
	}
	if a.fieldSelector != "" {
		ra.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: a.fieldSelector}
	}
	if a.labelSelector != "" {
		ra.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: a.labelSelector}
	}
	raw, err := (&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: ra}}).Marshal()
	if err != nil {
		return nil, fmt.Errorf("access review: %w", err)
	}
	return append(append(wire.AppendEnvelope(nil, reviewKind, len(raw)), raw...), wire.EnvelopeTail()...), nil
}

// decodeStatus reads the Status of an answer that refuses.
func decodeStatus(resp *http.Response, answer []byte) *apierrors.StatusError {
	var s metav1.Status
	var err error
	if strings.HasPrefix(resp.Header.Get("Content-Type"), mediaProtobuf) {
		var raw []byte
		if _, raw, err = wire.SplitEnvelope(answer); err == nil {
			err = s.Unmarshal(raw)
		}
	} else {
		err = json.Unmarshal(answer, &s)
	}
	if err != nil || int(s.Code) != resp.StatusCode {
		s = metav1.Status{Status: metav1.StatusFailure, Code: int32(resp.StatusCode), Reason: metav1.StatusReasonForbidden, Message: http.StatusText(resp.StatusCode)}
		if resp.StatusCode == http.StatusUnauthorized {
			s.Reason = metav1.StatusReasonUnauthorized
		}
	}
	return &apierrors.StatusError{ErrStatus: s}
}

var errUnavailable = errors.New("the cloud cannot be asked whether the caller may read this")
