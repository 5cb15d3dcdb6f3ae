package shelter

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

const (
	// kubeletWaits is for how long the kubelet may ask about a request: it does so at once, and tries again for some
	// seconds.
	kubeletWaits = 30 * time.Second
	// maxReview bounds a review.
	maxReview = 64 << 10
	// credentialID is where a review tells which certificate was shown (k8s.io/apiserver, user.CredentialIDKey).
	credentialID = "authentication.kubernetes.io/credential-id"
)

var reviewKind = wire.Kind{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}

// waiting are the requests of the hub's own that the kubelet has not answered yet. It is safe for concurrent use.
type waiting struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	all map[*wait]struct{}
}

// wait is one of them.
type wait struct {
	verb, user, certificate string
	until                   time.Time
}

// begin notes a request. answered is to be called when there is an answer, and may be called again.
func (x *waiting) begin(verb string, cert *x509.Certificate) (answered func()) {
	sum := sha256.Sum256(cert.Raw)
	one := &wait{
		verb: verb, user: cert.Subject.CommonName, certificate: "X509SHA256=" + hex.EncodeToString(sum[:]),
		until: x.clock.Now().Add(kubeletWaits),
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[one] = struct{}{}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.all, one)
	}
}

// about reports whether a review is about one of them, at a node.
func (x *waiting) about(r *authorizationv1.SubjectAccessReviewSpec, node string) bool {
	a := r.ResourceAttributes
	if a == nil || r.NonResourceAttributes != nil || a.Group != "" || a.Resource != "nodes" || a.Subresource != "proxy" ||
		a.Name != node || a.Namespace != "" {
		return false
	}
	shown, named := r.Extra[credentialID]
	x.mu.Lock()
	defer x.mu.Unlock()
	for one := range x.all {
		if a.Verb == one.verb && r.User == one.user && x.clock.Now().Before(one.until) &&
			(!named || len(shown) == 1 && shown[0] == one.certificate) {
			return true
		}
	}
	return false
}

// any reports whether there are some.
func (x *waiting) any() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.all) > 0
}

// isReview reports whether a request is a SubjectAccessReview.
func isReview(asked *request.Request) bool {
	return asked.Path == "/apis/authorization.k8s.io/v1/subjectaccessreviews" && asked.Method == http.MethodPost
}

// review answers the kubelet's question about the hub. Any other is not answered here.
func (x *waiting) review(w *answer.Recorder, req *http.Request, node string) (*http.Request, bool) {
	if !x.any() {
		return req, false
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxReview))
	req = req.WithContext(req.Context())
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), req.Body), req.Body}
	if err != nil || len(body) == maxReview {
		return req, false
	}
	r, err := decode(req.Header.Get("Content-Type"), body)
	if err != nil || !x.about(&r.Spec, node) {
		return req, false
	}
	w.Route = route
	r.Status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: true, Reason: "the hub of this node passes on a request that it has judged, while the cloud is away",
	}
	form, out, err := encode(req.Header.Get("Accept"), r)
	if err != nil {
		return req, false
	}
	w.Header().Set("Content-Type", form)
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(out)
	return req, true
}

// decode reads a review.
func decode(form string, body []byte) (r *authorizationv1.SubjectAccessReview, err error) {
	r = &authorizationv1.SubjectAccessReview{}
	var kind wire.Kind
	if strings.HasPrefix(form, runtime.ContentTypeProtobuf) {
		var raw []byte
		if kind, raw, err = wire.SplitEnvelope(body); err == nil {
			err = r.Unmarshal(raw)
		}
	} else {
		err = json.Unmarshal(body, r)
		kind = wire.Kind{APIVersion: r.APIVersion, Kind: r.Kind}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("access review: %w", err)
	case kind != reviewKind:
		return nil, errors.New("access review: it is a " + kind.Kind)
	}
	return r, nil
}

// encode writes a review in a form that its reader takes.
func encode(accept string, r *authorizationv1.SubjectAccessReview) (form string, body []byte, err error) {
	if strings.Contains(accept, runtime.ContentTypeProtobuf) {
		raw, err := r.Marshal()
		return runtime.ContentTypeProtobuf, wire.Envelope(reviewKind, raw), err
	}
	r.APIVersion, r.Kind = reviewKind.APIVersion, reviewKind.Kind
	body, err = json.Marshal(r)
	return runtime.ContentTypeJSON, body, err
}
