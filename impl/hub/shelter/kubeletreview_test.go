package shelter

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const hubUser = "weir:hub:pool-a:edge-1"

// hubCert is a certificate of the hub's, as far as it matters here.
var hubCert = &x509.Certificate{Raw: []byte("the hub's"), Subject: pkix.Name{CommonName: hubUser}}

func idOf(raw string) authorizationv1.ExtraValue {
	sum := sha256.Sum256([]byte(raw))
	return authorizationv1.ExtraValue{"X509SHA256=" + hex.EncodeToString(sum[:])}
}

// ofHub is what a kubelet asks about the hub.
func ofHub(change func(*authorizationv1.SubjectAccessReviewSpec)) *authorizationv1.SubjectAccessReview {
	r := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: hubUser, Groups: []string{"system:authenticated"},
			Extra: map[string]authorizationv1.ExtraValue{credentialID: idOf("the hub's")},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "create", Version: "v1", Resource: "nodes", Subresource: "proxy", Name: "edge-1",
			},
		},
	}
	if change != nil {
		change(&r.Spec)
	}
	return r
}

// TestReviews: the hub answers what its own request needs, as long as that waits, and no other question.
func TestReviews(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	x := &waiting{clock: clock, all: map[*wait]struct{}{}}
	review := ofHub(nil)
	if x.any() || x.about(&review.Spec, "edge-1") {
		t.Error("nothing waits")
	}
	answered := x.begin("create", hubCert)
	other := x.begin("create", hubCert)
	type spec = authorizationv1.SubjectAccessReviewSpec
	for name, change := range map[string]func(*spec){
		"verb":          func(s *spec) { s.ResourceAttributes.Verb = "get" },
		"all verbs":     func(s *spec) { s.ResourceAttributes.Verb = "*" },
		"user":          func(s *spec) { s.User = "weir:hub:pool-a:edge-2" },
		"no user":       func(s *spec) { s.User = "" },
		"node":          func(s *spec) { s.ResourceAttributes.Name = "edge-2" },
		"all nodes":     func(s *spec) { s.ResourceAttributes.Name = "" },
		"subresource":   func(s *spec) { s.ResourceAttributes.Subresource = "metrics" },
		"none":          func(s *spec) { s.ResourceAttributes.Subresource = "" },
		"resource":      func(s *spec) { s.ResourceAttributes.Resource = "pods" },
		"group":         func(s *spec) { s.ResourceAttributes.Group = "apps" },
		"namespace":     func(s *spec) { s.ResourceAttributes.Namespace = "default" },
		"certificate":   func(s *spec) { s.Extra[credentialID] = idOf("another's") },
		"certificates":  func(s *spec) { s.Extra[credentialID] = append(idOf("the hub's"), idOf("another's")...) },
		"empty":         func(s *spec) { s.Extra[credentialID] = nil },
		"no attributes": func(s *spec) { s.ResourceAttributes = nil },
		"a path besides": func(s *spec) {
			s.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: "/healthz", Verb: "get"}
		},
	} {
		if r := ofHub(change); x.about(&r.Spec, "edge-1") {
			t.Errorf("another %s counts", name)
		}
	}
	unnamed := ofHub(func(s *spec) { s.Extra = nil }) // by a kubelet before 1.32
	if !x.about(&review.Spec, "edge-1") || !x.about(&unnamed.Spec, "edge-1") {
		t.Error("the hub's own request is not known")
	}
	answered()
	answered()
	if !x.about(&review.Spec, "edge-1") {
		t.Error("the other request is forgotten with the first")
	}
	clock.Step(kubeletWaits)
	if x.about(&review.Spec, "edge-1") {
		t.Error("a request counts for ever")
	}
	other()
	if x.any() {
		t.Error("an answered request is kept")
	}
}

// TestReviewForms: a review is read and answered in both encodings. One that is not answered passes whole.
func TestReviewForms(t *testing.T) {
	x := &waiting{clock: clocktesting.NewFakeClock(time.Now()), all: map[*wait]struct{}{}}
	defer x.begin("create", hubCert)()
	raw, err := ofHub(nil).Marshal()
	check(t, err)
	asJSON, err := json.Marshal(ofHub(nil))
	check(t, err)
	another, err := json.Marshal(ofHub(func(s *authorizationv1.SubjectAccessReviewSpec) { s.User = "mallory" }))
	check(t, err)
	const protobuf = runtime.ContentTypeProtobuf
	for name, c := range map[string]struct {
		form, accept string
		body         []byte
		taken        bool
	}{
		"protobuf":          {protobuf, protobuf + ",application/json", wire.Envelope(reviewKind, raw), true},
		"JSON":              {"application/json", "application/json", asJSON, true},
		"JSON for protobuf": {"application/json", protobuf, asJSON, true},
		"another kind":      {protobuf, "", wire.Envelope(wire.Kind{APIVersion: "v1", Kind: "Pod"}, raw), false},
		"another kind of JSON": {
			"", "", bytes.Replace(asJSON, []byte("SubjectAccess"), []byte("LocalSubjectAccess"), 1), false,
		},
		"broken":        {protobuf, "", []byte("k8s"), false},
		"about another": {"application/json", "", another, false},
		"too long":      {"application/json", "", append(asJSON, bytes.Repeat([]byte(" "), maxReview)...), false},
	} {
		req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(c.body))
		req.Header.Set("Content-Type", c.form)
		req.Header.Set("Accept", c.accept)
		got := httptest.NewRecorder()
		s := answer.NewStalls(clocktesting.NewFakeClock(time.Now()), func() {}, &answer.Served{},
			slog.New(slog.DiscardHandler))
		req, taken := x.review(s.Record(got), req, "edge-1")
		if taken != c.taken {
			t.Errorf("%s: taken: %t", name, taken)
		}
		if !taken {
			if rest, err := io.ReadAll(req.Body); err != nil || !bytes.Equal(rest, c.body) {
				t.Errorf("%s: %d bytes pass of %d, %v", name, len(rest), len(c.body), err)
			}
			continue
		}
		form := got.Header().Get("Content-Type")
		r, err := decode(form, got.Body.Bytes())
		if err != nil || got.Code != http.StatusCreated || !r.Status.Allowed || r.Status.Denied ||
			r.Spec.User != hubUser || !strings.HasPrefix(c.accept, form) {
			t.Errorf("%s: %d %s %v, %v", name, got.Code, form, r, err)
		}
	}
}

// FuzzReview: whatever is asked, only the hub's own user is let in, at its node, and to no more.
func FuzzReview(f *testing.F) {
	raw, err := ofHub(nil).Marshal()
	check(f, err)
	asJSON, err := json.Marshal(ofHub(nil))
	check(f, err)
	f.Add(runtime.ContentTypeProtobuf, wire.Envelope(reviewKind, raw))
	f.Add(runtime.ContentTypeJSON, asJSON)
	f.Fuzz(func(t *testing.T, form string, body []byte) {
		x := &waiting{clock: clocktesting.NewFakeClock(time.Now()), all: map[*wait]struct{}{}}
		x.begin("create", hubCert)
		r, err := decode(form, body)
		if err != nil || !x.about(&r.Spec, "edge-1") {
			return
		}
		if a := r.Spec.ResourceAttributes; r.Spec.User != hubUser || a.Verb != "create" || a.Resource != "nodes" ||
			a.Subresource != "proxy" || a.Name != "edge-1" {
			t.Errorf("it may %v", r.Spec)
		}
	})
}
