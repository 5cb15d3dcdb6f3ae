package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// ReviewPath is where a SelfSubjectAccessReview is asked for.
const ReviewPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// ReviewKind is what it is.
var ReviewKind = wire.Kind{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}

// unavailableError says that the cloud gave no verdict.
type unavailableError struct{ err error }

func (e *unavailableError) Error() string { return e.err.Error() }

func (e *unavailableError) Unwrap() error { return e.err }

// Reviewer asks the cloud whether a caller may do something, with the caller's own credentials: one request
// authenticates and authorizes.
//
// Whether somebody may watch is asked by the very watch, from a version that never comes and left as soon as it is
// granted: the answer is 100 bytes, and what is asked is what is meant. An access review says its answer in 500 bytes
// (the question, its managed fields, the reason); it is for get and list, of which the answer itself would be long.
type Reviewer struct {
	AsCaller, AsNode http.RoundTripper
	Stay             *Stay // nil: each watch is left as soon as it is granted
}

// Stay keeps the watch that a caller was granted last open until another one is granted: kube-apiserver ends an HTTP/2
// connection on which nothing has run for 90 seconds, and each question would take a handshake of 4.5 kB. A watch from
// a version that never comes brings nothing, so one that is open costs nothing. It is safe for concurrent use.
type Stay struct {
	mu    sync.Mutex
	leave func() // ends the watch that is open; nil: none is
	ended bool
}

// stays is for how long a watch is kept open: until after what it has granted is asked again.
const stays = watchTTL + watchTTL/2

// Start ends the watch that is open, and all that follow, when ctx ends.
func (s *Stay) Start(ctx context.Context) {
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
		s.keep(nil)
	})
}

// keep ends the watch that is open, and keeps another one. leave ends that.
func (s *Stay) keep(leave func()) {
	s.mu.Lock()
	former := s.leave
	if s.leave = leave; s.ended {
		s.leave = nil
	}
	ended := s.ended
	s.mu.Unlock()
	if former != nil {
		former()
	}
	if ended && leave != nil {
		leave()
	}
}

// never is a version that is far in the future of each cluster: kube-apiserver sends what comes after it, so nothing.
const never = "4611686018427387904"

// isCredential reports whether a header says who the caller is or wants to be.
func isCredential(name string) bool {
	return name == "Authorization" || strings.HasPrefix(name, "Impersonate-")
}

// Review returns the cloud's verdict. refused is the cloud's own answer, if it refused or did not take the question:
// the caller is not who it says (401), may not do it, or may not ask in that name (403), or asks what makes no sense
// (400: a group to take on, and no user).
func (r Reviewer) Review(ctx context.Context, who Caller, credentials http.Header, a identity.Attributes) (allowed bool,
	reason string, refused *apierrors.StatusError, err error) {
	if a.Verb == "watch" && who.Kind != Anonymous {
		granted, refused, err := r.watch(ctx, who, credentials, a)
		if granted || refused != nil || err != nil {
			return granted, "", refused, err
		}
	}
	body, err := encodeReview(a)
	if err != nil {
		return false, "", nil, err
	}
	resp, err := r.send(ctx, who, credentials, http.MethodPost, ReviewPath, body)
	if err != nil {
		return false, "", nil, err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return false, "", nil, &unavailableError{fmt.Errorf("access review: %w", err)}
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated:
		var review authorizationv1.SelfSubjectAccessReview
		kind, raw, err := wire.SplitEnvelope(said)
		if err == nil && kind.Kind != ReviewKind.Kind {
			err = fmt.Errorf("the answer is a %s", kind.Kind)
		}
		if err == nil {
			err = review.Unmarshal(raw)
		}
		if err != nil {
			return false, "", nil, &unavailableError{fmt.Errorf("access review: %w", err)}
		}
		return review.Status.Allowed && !review.Status.Denied, review.Status.Reason, nil, nil
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusTooManyRequests:
		// says nothing of what was asked.
	default:
		if resp.StatusCode >= 400 && resp.StatusCode < 500 {
			return false, "", answer.Decode(resp, said), nil
		}
	}
	return false, "", nil, &unavailableError{fmt.Errorf("access review: %s", resp.Status)}
}

// watch asks for a watch. Only a stream that begins grants it; neither granted nor refused means that it has to be
// asked in another way, because the cloud found something else wrong with the question.
func (r Reviewer) watch(ctx context.Context, who Caller, credentials http.Header, a identity.Attributes) (granted bool,
	refused *apierrors.StatusError, err error) {
	asked := ctx
	ctx, leave := context.WithCancel(context.WithoutCancel(asked)) // a watch that stays outlives the question
	stop := context.AfterFunc(asked, leave)
	end := func() {
		stop()
		leave()
	}
	lasts := time.Second
	stay := r.Stay
	if who.Kind == ThisNode { // there is always something on that connection
		stay = nil
	}
	if stay != nil {
		lasts = stays
	}
	resp, err := r.send(ctx, who, credentials, http.MethodGet, watchURI(a, lasts), nil)
	if err != nil {
		end()
		return false, nil, err
	}
	granted = resp.StatusCode == http.StatusOK && isWatch(resp.Header)
	if granted && stay != nil && stop() {
		stay.keep(func() {
			leave()
			resp.Body.Close()
		})
		return true, nil, nil
	}
	defer resp.Body.Close()
	defer end()
	switch resp.StatusCode {
	case http.StatusOK:
		return granted, nil, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			return false, nil, &unavailableError{fmt.Errorf("access review: %w", err)}
		}
		return false, answer.Decode(resp, said), nil
	}
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
		return false, nil, &unavailableError{fmt.Errorf("access review: %s", resp.Status)}
	}
	return false, nil, nil
}

// isWatch reports whether a stream of events begins with a header.
func isWatch(h http.Header) bool {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == runtime.ContentTypeProtobuf && params["stream"] == "watch"
}

// watchURI asks for what a watch is authorized by, and nothing else.
func watchURI(a identity.Attributes, lasts time.Duration) string {
	u := url.URL{Path: "/api/" + a.Version}
	if a.Group != "" {
		u.Path = "/apis/" + a.Group + "/" + a.Version
	}
	if a.Namespace != "" {
		u.Path += "/namespaces/" + a.Namespace
	}
	u.Path += "/" + a.Resource
	q := url.Values{"watch": {"1"}, "resourceVersion": {never}, "timeoutSeconds": {strconv.Itoa(int(lasts / time.Second))}}
	if a.FieldSelector != "" {
		q.Set("fieldSelector", a.FieldSelector)
	}
	if a.LabelSelector != "" {
		q.Set("labelSelector", a.LabelSelector)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// send sends a request with the credentials of a caller.
func (r Reviewer) send(ctx context.Context, who Caller, credentials http.Header, method, uri string, body []byte) (
	*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "https://cloud"+uri, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range credentials {
		if isCredential(name) {
			req.Header[name] = values
		}
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Accept", runtime.ContentTypeProtobuf)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
	}
	transport := r.AsCaller
	if who.Kind == ThisNode {
		transport = r.AsNode
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, &unavailableError{fmt.Errorf("access review: %w", err)}
	}
	return resp, nil
}

// Ask asks the cloud as a caller, and says what it answered: 200, 403 or 401. It goes a way of its own, as
// kube-apiserver ends connections after a 401.
func (r Reviewer) Ask(
	ctx context.Context, credentials http.Header, certified bool, a identity.Attributes,
) (code int, err error) {
	who := Caller{Kind: Bearer}
	if certified {
		who.Kind = ThisNode
	}
	allowed, _, refused, err := r.Review(ctx, who, credentials, a)
	code = http.StatusForbidden
	switch {
	case refused != nil:
		code = int(refused.ErrStatus.Code)
	case allowed:
		code = http.StatusOK
	}
	return code, err
}

func encodeReview(a identity.Attributes) ([]byte, error) {
	spec := authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: ofResource(a)}
	if a.Path != "" {
		spec = authorizationv1.SelfSubjectAccessReviewSpec{
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: a.Path, Verb: a.Verb},
		}
	}
	raw, err := (&authorizationv1.SelfSubjectAccessReview{Spec: spec}).Marshal()
	if err != nil {
		return nil, fmt.Errorf("access review: %w", err)
	}
	return wire.Envelope(ReviewKind, raw), nil
}

func ofResource(a identity.Attributes) *authorizationv1.ResourceAttributes {
	ra := &authorizationv1.ResourceAttributes{
		Verb: a.Verb, Group: a.Group, Version: a.Version, Resource: a.Resource, Subresource: a.Subresource,
		Namespace: a.Namespace, Name: a.Name,
	}
	if a.FieldSelector != "" {
		ra.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: a.FieldSelector}
	}
	if a.LabelSelector != "" {
		ra.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: a.LabelSelector}
	}
	return ra
}

// ErrUnavailable begins the answer to whom nobody could ask about.
var ErrUnavailable = errors.New("the cloud cannot be asked whether the caller may read this")

// ReviewFunc asks the cloud whether a caller may do something.
type ReviewFunc func(context.Context, Caller, http.Header, identity.Attributes) (bool, string, *apierrors.StatusError,
	error)
