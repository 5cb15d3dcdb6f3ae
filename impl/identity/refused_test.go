package identity

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/testkit"
)

// answered is what a request to a path was, as it was sent.
func answered(who *http.Request, method, uri string) (http.Header, Attributes) {
	req, err := http.NewRequest(method, "https://cloud"+uri, nil)
	if err != nil {
		panic(err)
	}
	a, _ := AttributesOf(request.Parse(req))
	return who.Header, a
}

// TestRefused: a 401 counts for a while for just these credentials, whatever they were used for.
func TestRefused(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	good, bad := withToken(b.key.sign(t, podClaims(day, nil))), withToken("bad")
	browser := carrying("Sec-WebSocket-Protocol", webSocketToken+"YQ")
	b.Refuse(answered(bad, http.MethodPost, "/api/v1/namespaces/a/pods"))
	b.Refuse(answered(browser, http.MethodGet, "/api/v1/namespaces/a/pods/x/exec"))
	b.Refuse(answered(carrying(), http.MethodGet, "/version"))
	b.Learn(carrying("Authorization", "Bearer worse").Header, false, read("/version"), 401)
	if !b.Refused(bad.Header) || !b.Refused(browser.Header) || !b.Refused(withToken("worse").Header) {
		t.Error("what was refused is not")
	}
	if b.Refused(carrying().Header) || b.Refused(good.Header) || b.Refused(withToken("other").Header) ||
		b.Refused(carrying("Sec-WebSocket-Protocol", "v5.channel.k8s.io").Header) {
		t.Error("what was not refused is")
	}
	if b.Size() != 0 {
		t.Errorf("%d decisions are kept of tokens that were never good", b.Size())
	}
	b.clock.Step(RefusedFor - 1)
	b.Refuse(answered(bad, http.MethodGet, "/version")) // had been under way
	if !b.Refused(bad.Header) {
		t.Error("the time is over early")
	}
	b.clock.Step(1)
	if b.Refused(bad.Header) || b.Refused(browser.Header) {
		t.Error("the time is not over")
	}
	for i := range maxRefused + 100 {
		b.Refuse(answered(withToken(fmt.Sprint(i)), http.MethodGet, "/version"))
	}
	if n, m := len(b.refused.until), len(b.refused.order); n > maxRefused || m != n {
		t.Errorf("%d, %d are remembered", n, m)
	}
	if !b.Refused(withToken(fmt.Sprint(maxRefused + 99)).Header) {
		t.Error("the last one is not among them")
	}
}

// TestWhoRefuses: a good token stays good if not kube-apiserver, but somebody behind it has said 401. One that was
// never good has no such claim.
func TestWhoRefuses(t *testing.T) {
	itself := map[string]bool{
		"/api/v1/pods": true, "/version": true, "/apis": true, "/apis/apps/v1/deployments": true,
		"/apis/discovery.k8s.io/v1/endpointslices": true, "/openapi/v3": true,
		"/apis/metrics.k8s.io/v1beta1/nodes": false, "/apis/custom.metrics.k8s.io/v1beta2": false,
		"/apis/vendor.example.com/v1/x":          false,
		"/api/v1/namespaces/a/services/x/proxy/": false, "/api/v1/namespaces/a/pods/x/proxy": false,
		"/api/v1/nodes/x/proxy/logs": false,
	}
	for uri, want := range itself {
		t.Run(uri, func(t *testing.T) {
			b := newBed(t, nil)
			b.fetch()
			static, signed, never := withToken("static"), withToken(b.key.sign(t, podClaims(day, nil))), withToken("never")
			late := withToken(b.key.sign(t, podClaims(day.Add(-48*time.Hour), nil)))
			b.Learn(static.Header, false, read("/version"), 200)
			for name, who := range map[string]*http.Request{"static": static, "signed": signed} {
				b.Refuse(answered(who, http.MethodGet, uri))
				b.Learn(who.Header, false, read(uri), 401)
				if b.Refused(who.Header) != want || b.Revoked(who.Header) != want {
					t.Errorf("%s: refused %v, revoked %v", name, b.Refused(who.Header), b.Revoked(who.Header))
				}
				b.clock.Step(RefusedFor)
				b.Refuse(answered(who, http.MethodGet, uri)) // it stands, and then the cloud is away
				b.clock.Step(RefusedFor)
				if _, err := b.Verify(who.Header, false); (err != nil) != want {
					t.Errorf("%s, while the cloud is away: %v", name, err)
				}
			}
			for name, who := range map[string]*http.Request{"never": never, "late": late} {
				b.Refuse(answered(who, http.MethodGet, uri))
				if !b.Refused(who.Header) {
					t.Errorf("%s: not refused", name)
				}
			}
			b.Learn(static.Header, false, read("/version"), 200)
			if b.Revoked(static.Header) {
				t.Error("what the cloud takes again is revoked")
			}
		})
	}
}

// TestEndedIsAsked: of a token that says that it has ended the cloud is asked, whatever is remembered. A program that
// cannot say when a token ends is not asked for it.
func TestEndedIsAsked(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	token, static := withToken(b.key.sign(t, podClaims(b.clock.Now(), nil))), withToken("static")
	for _, who := range []*http.Request{token, static} {
		b.Learn(who.Header, false, read("/version"), 200)
	}
	if b.Revoked(token.Header) {
		t.Error("a token that has not ended is to be asked about")
	}
	b.clock.Step(time.Hour + time.Minute)
	if !b.Revoked(token.Header) {
		t.Error("a token that has ended is not asked about")
	}
	if b.Revoked(static.Header) {
		t.Error("a token that does not say when it ends is to be asked about")
	}
}

// TestWhile: what a token has opened ends when the cloud refuses it, or its pod is seen to go.
func TestWhile(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	ended := func(ctx context.Context) bool { return ctx.Err() != nil }
	open := func(who *http.Request) context.Context {
		ctx, done := b.While(t.Context(), who.Header)
		t.Cleanup(done)
		return ctx
	}
	ofPod := func(name, uid string) *http.Request {
		return withToken(b.key.sign(t, podClaims(day, func(_, k object) { k["pod"] = object{"name": name, "uid": uid} })))
	}
	static, other, nobody := open(withToken("static")), open(withToken("other")), open(carrying())
	b.Refuse(answered(withToken("static"), http.MethodGet, "/version"))
	if !ended(static) || ended(other) || ended(nobody) {
		t.Errorf("after a 401: %v %v %v", ended(static), ended(other), ended(nobody))
	}
	if late := open(withToken("static")); !ended(late) {
		t.Error("what was opened while the 401 was on its way goes on")
	}
	set := func(name string, p Pod, there bool) {
		b.podsMu.Lock()
		defer b.podsMu.Unlock()
		if delete(b.pods, "default/"+name); there {
			b.pods["default/"+name] = p
		}
	}
	for _, name := range []string{"a", "b", "c", "stays"} {
		set(name, Pod{UID: name, Node: "edge-1"}, true)
	}
	deleted, replaced, leaving, stays := open(ofPod("a", "a")), open(ofPod("b", "b")), open(ofPod("c", "c")),
		open(ofPod("stays", "stays"))
	unknown := open(ofPod("unknown", "u"))
	ctx, cancel := context.WithCancel(t.Context())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return b.lookAfterPods(ctx) })
	looked := func() {
		b.podsMu.Lock()
		before := b.podsRead
		b.podsMu.Unlock()
		testkit.Until(t, time.Minute, "the pods to be looked for", func() bool {
			b.clock.Step(lookAfter)
			b.podsMu.Lock()
			defer b.podsMu.Unlock()
			return b.podsRead >= before+10
		})
	}
	looked()
	for _, ctx := range []context.Context{deleted, replaced, leaving, stays, unknown} {
		if ended(ctx) {
			t.Fatal("the watch of a pod that is there has ended")
		}
	}
	set("a", Pod{}, false)
	set("b", Pod{UID: "another", Node: "edge-1"}, true)
	set("c", Pod{UID: "c", Node: "edge-1", Gone: b.clock.Now().Add(-Skew)}, true)
	for what, ctx := range map[string]context.Context{
		"a deleted pod": deleted, "a replaced pod": replaced, "a pod whose deletion is over": leaving,
	} {
		testkit.Until(t, time.Minute, what+" to be seen", func() bool { b.clock.Step(lookAfter); return ended(ctx) })
	}
	if ended(stays) || ended(unknown) {
		t.Errorf("others have ended: %v %v", ended(stays), ended(unknown))
	}
	cancel()
	check(t, g.Wait())
	one, done := b.While(t.Context(), withToken("other").Header)
	if done(); !ended(one) || len(b.streams.open) != 7 {
		t.Errorf("%d tokens have streams open", len(b.streams.open))
	}
}
