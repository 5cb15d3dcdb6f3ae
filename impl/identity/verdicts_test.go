package identity

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-edge/weir/impl/request"
)

func read(uri string) Attributes {
	req, err := http.NewRequest(http.MethodGet, "https://hub"+uri, nil)
	if err != nil {
		panic(err)
	}
	a, ok := AttributesOf(request.Parse(req))
	if !ok {
		panic(uri)
	}
	return a
}

func TestAttributes(t *testing.T) {
	tests := map[string]Attributes{
		"/api/v1/pods": {Verb: "list", Version: "v1", Resource: "pods"},
		"/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dedge-1": {
			Verb: "watch", Version: "v1", Resource: "pods", FieldSelector: "spec.nodeName=edge-1",
		},
		"/api/v1/pods?watch=false": {Verb: "list", Version: "v1", Resource: "pods"},
		"/api/v1/namespaces/a/secrets?watch&fieldSelector=metadata.name%3Dx": {
			Verb: "watch", Version: "v1", Resource: "secrets", Namespace: "a", Name: "x",
			FieldSelector: "metadata.name=x",
		},
		"/api/v1/namespaces/a/secrets/x": {
			Verb: "get", Version: "v1", Resource: "secrets", Namespace: "a", Name: "x",
		},
		"/api/v1/namespaces/a/pods/x/log": {
			Verb: "get", Version: "v1", Resource: "pods", Subresource: "log", Namespace: "a", Name: "x",
		},
		"/api/v1/namespaces": {Verb: "list", Version: "v1", Resource: "namespaces"},
		"/api/v1/namespaces/a": {
			Verb: "get", Version: "v1", Resource: "namespaces", Namespace: "a", Name: "a",
		},
		"/api/v1/namespaces/a/status": {
			Verb: "get", Version: "v1", Resource: "namespaces", Subresource: "status", Namespace: "a", Name: "a",
		},
		"/apis/apps/v1/namespaces/a/deployments/d": {
			Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "a", Name: "d",
		},
		"/apis/discovery.k8s.io/v1/endpointslices?labelSelector=a": {
			Verb: "list", Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices", LabelSelector: "a",
		},
		"/api":          {Verb: "get", Path: "/api"},
		"/apis/apps/v1": {Verb: "get", Path: "/apis/apps/v1"},
		"/version":      {Verb: "get", Path: "/version"},
		"/openapi/v3":   {Verb: "get", Path: "/openapi/v3"},
	}
	for uri, want := range tests {
		if got := read(uri); got != want {
			t.Errorf("%s: %+v, want %+v", uri, got, want)
		}
	}
	for _, uri := range []string{"/api/v1/watch/pods", "/api/v1//pods", "/api/v1/namespaces/../pods"} {
		req, err := http.NewRequest(http.MethodGet, "https://hub"+uri, nil)
		check(t, err)
		if a, ok := AttributesOf(request.Parse(req)); ok {
			t.Errorf("%s: %+v", uri, a)
		}
	}
}

// TestDecisions: what the cloud said last of the read, or of one that shows more.
func TestDecisions(t *testing.T) {
	type said struct {
		uri  string
		code int
	}
	const x, y = "/api/v1/namespaces/a/secrets/x", "/api/v1/namespaces/a/secrets/y"
	all := "/api/v1/configmaps"
	tests := []struct {
		name string
		said []said
		ask  string
		want decision
	}{
		{"never asked", nil, x, undecided},
		{"allowed", []said{{x, 200}}, x, allowed},
		{"it was not there", []said{{x, 404}}, x, allowed},
		{"not changed", []said{{x, 304}}, x, allowed},
		{"too old a version", []said{{x + "?watch=1", 410}}, x + "?watch=1", allowed},
		{"denied", []said{{x, 403}}, x, denied},
		{"later denied", []said{{x, 200}, {x, 403}}, x, denied},
		{"later allowed", []said{{x, 403}, {x, 200}}, x, allowed},
		{"an error decides nothing", []said{{x, 403}, {x, 500}, {x, 429}, {x, 400}, {x, 503}, {x, 502}}, x, denied},
		{"an error allows nothing", []said{{x, 500}, {x, 429}, {x, 400}, {x, 503}}, x, undecided},
		{"another object", []said{{x, 200}}, y, undecided},
		{"another namespace", []said{{x, 200}}, "/api/v1/namespaces/b/secrets/x", undecided},
		{"a subresource", []said{{all, 200}}, "/api/v1/namespaces/a/configmaps/x/status", undecided},
		{"one of all", []said{{all, 200}}, "/api/v1/namespaces/a/configmaps/x", allowed},
		{"a log who may read another", []said{{"/api/v1/namespaces/a/pods/x/log", 200}}, "/api/v1/namespaces/a/pods/y/log",
			undecided},
		{
			"one of a namespace", []said{{"/api/v1/namespaces/a/configmaps?watch=1", 200}}, "/api/v1/namespaces/a/configmaps/x",
			allowed,
		},
		{
			"one of another namespace", []said{{"/api/v1/namespaces/b/configmaps?watch=1", 200}},
			"/api/v1/namespaces/a/configmaps/x", undecided,
		},
		{"a namespace of all", []said{{all, 200}}, "/api/v1/namespaces/a/configmaps", allowed},
		{"a selection of all", []said{{all, 200}}, all + "?labelSelector=a", allowed},
		{"all of a selection", []said{{all + "?labelSelector=a", 200}}, all, undecided},
		{"one of a selection", []said{{all + "?labelSelector=a", 200}}, "/api/v1/namespaces/a/configmaps/x", undecided},
		{"all of one", []said{{"/api/v1/namespaces/a/configmaps/x", 200}}, all, undecided},
		{"to watch who may list", []said{{all, 200}}, all + "?watch=1", allowed},
		{"to list who may watch", []said{{all + "?watch=1&labelSelector=a", 200}}, all + "?labelSelector=a", allowed},
		{
			"to get who may watch it", []said{{"/api/v1/namespaces/a/secrets?watch=1&fieldSelector=metadata.name%3Dx", 200}}, x,
			allowed,
		},
		{
			"to watch who may get it", []said{{x, 200}}, "/api/v1/namespaces/a/secrets?watch=1&fieldSelector=metadata.name%3Dx",
			allowed,
		},
		{
			"to watch another who may get one", []said{{x, 200}},
			"/api/v1/namespaces/a/secrets?watch=1&fieldSelector=metadata.name%3Dy", undecided,
		},
		{
			"to select who may get it", []said{{x, 200}},
			"/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dx,type%3Dy", undecided,
		},
		{"to list all who may get one", []said{{x, 200}}, "/api/v1/namespaces/a/secrets", undecided},
		{
			"one of all that was denied", []said{{all, 200}, {"/api/v1/namespaces/a/configmaps/x", 403}},
			"/api/v1/namespaces/a/configmaps/x", denied,
		},
		{"one of all that are denied", []said{{all, 403}}, "/api/v1/namespaces/a/configmaps/x", undecided},
		{"another version", []said{{"/apis/apps/v1/deployments", 200}}, "/apis/apps/v1beta1/deployments", undecided},
		{"another group", []said{{"/apis/apps/v1/deployments", 200}}, "/apis/other/v1/deployments", undecided},
		{"no resource", []said{{"/version", 200}}, "/version", allowed},
		{"another path", []said{{"/version", 200}}, "/openapi/v2", undecided},
		{"the node's own certificate is refused by the cloud", []said{{x, 200}, {x, 401}}, x, allowed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, nil)
			b.fetch()
			node, pod := carrying("Test-Node", "yes"), withToken(b.key.sign(t, podClaims(day, nil)))
			for i, who := range []*http.Request{node, pod} {
				for _, s := range test.said {
					if i == 0 || s.code != 401 {
						b.learn(who.Header, i == 0, read(s.uri), s.code)
					}
				}
				code := map[decision]int32{undecided: 503, denied: 403}[test.want]
				_, refusal := b.authorizeRequest(who, read(test.ask))
				if (refusal == nil) != (test.want == allowed) || refusal != nil && refusal.ErrStatus.Code != code {
					t.Errorf("got %v", refusal)
				}
				if i == 0 { // nobody else has anything of that
					other := podClaims(day, func(c, k object) {
						c["sub"], k["serviceaccount"] = "system:serviceaccount:default:other", object{"name": "other", "uid": "o"}
					})
					u, err := b.verifyRequest(withToken(b.key.sign(t, other)))
					if ok, _ := b.Allowed(u, read(test.ask)); ok || err != nil {
						t.Errorf("%q may as well (%v)", u.Name, err)
					}
				}
			}
		})
	}
}

// TestSubresources: who may do it to all objects of a namespace may do it to each, unless that was denied.
func TestSubresources(t *testing.T) {
	exec := Attributes{Verb: "create", Version: "v1", Resource: "pods", Subresource: "exec", Namespace: "a"}
	one := func(change func(*Attributes)) Attributes {
		a := exec
		if a.Name = "x"; change != nil {
			change(&a)
		}
		return a
	}
	b := newBed(t, nil)
	b.fetch()
	alice := withToken("alice").Header
	b.learn(alice, false, exec, http.StatusOK)
	b.learn(alice, false, one(func(a *Attributes) { a.Name = "denied" }), http.StatusForbidden)
	for name, x := range map[string]struct {
		ask  Attributes
		want decision
	}{
		"all":                 {exec, allowed},
		"one":                 {one(nil), allowed},
		"one that was denied": {one(func(a *Attributes) { a.Name = "denied" }), denied},
		"another namespace":   {one(func(a *Attributes) { a.Namespace = "b" }), undecided},
		"another verb":        {one(func(a *Attributes) { a.Verb = "get" }), undecided},
		"another subresource": {one(func(a *Attributes) { a.Subresource = "attach" }), undecided},
		"the object itself":   {one(func(a *Attributes) { a.Subresource = "" }), undecided},
		"another resource":    {one(func(a *Attributes) { a.Resource = "services" }), undecided},
	} {
		code := map[decision]int32{undecided: 503, denied: 403}[x.want]
		_, refusal := b.Authorize(alice, false, x.ask)
		if (refusal == nil) != (x.want == allowed) || refusal != nil && refusal.ErrStatus.Code != code {
			t.Errorf("%s: %v", name, refusal)
		}
	}
}

// TestWhoLearns: decisions are filed under who the cloud took the caller for, and under nobody if that is not sure.
func TestWhoLearns(t *testing.T) {
	a := read("/version")
	b := newBed(t, nil)
	b.fetch()
	web := b.key.sign(t, podClaims(day, nil))
	forged := signer{"one", jose.RS256, otherKey()}.sign(t, podClaims(day, nil))
	static, unbound := "static", b.key.sign(t, podClaims(day, func(_, k object) { delete(k, "pod"); delete(k, "node") }))
	foreign := b.key.sign(t, podClaims(day, func(c, _ object) { c["iss"] = "https://idp"; c["sub"] = "bob" }))

	expect := func(what string, who *http.Request, want bool) {
		t.Helper()
		if _, refusal := b.authorizeRequest(who, a); (refusal == nil) != want {
			t.Errorf("%s: %v", what, refusal)
		}
	}
	b.Learn(carrying().Header, false, a, 200)
	expect("anonymous", carrying(), false)
	b.Learn(carrying("Authorization", "Bearer  "+web).Header, false, a, 200) // anonymous to the cloud
	b.Learn(carrying("Authorization", "Bearer "+forged, "Sec-WebSocket-Protocol",
		"base64url.bearer.authorization.k8s.io.YQ").Header, false, a, 200)
	// a token never travels with the node's certificate.
	b.Learn(withToken(web).Header, true, a, 200)
	b.Learn(carrying("Authorization", "Basic YTpi").Header, false, a, 200) // nor is this a token
	expect("a pod, of which nothing was learnt", withToken(web), false)
	if n := b.Size(); n != 0 {
		t.Errorf("%d decisions", n)
	}

	for name, raw := range map[string]string{
		"static": static, "bound to nothing": unbound, "of an identity provider": foreign,
	} {
		expect(name+", not seen", withToken(raw), false)
		b.Learn(withToken(raw).Header, false, a, 200)
		expect(name+", seen", withToken(raw), true)
	}
	expect("another token of that provider",
		withToken(b.key.sign(t, podClaims(day.Add(time.Second), func(c, _ object) { c["iss"] = "https://idp" }))), false)
	b.learn(withToken(static).Header, false, a, 401)
	expect("a token that the cloud takes no more", withToken(static), false)
	b.Learn(withToken(static).Header, false, a, 200)
	expect("and takes again", withToken(static), true)

	b.Learn(withToken(web).Header, false, a, 200)
	renewed := b.key.sign(t, podClaims(day.Add(time.Minute), nil))
	expect("a token that was renewed", withToken(renewed), true)
	b.learn(withToken(renewed).Header, false, a, 401)
	expect("one that the cloud refuses, of a pod that it has deleted", withToken(renewed), false)
	before := b.Size()
	for i := range 100 {
		b.Learn(withToken(fmt.Sprint("garbage-", i)).Header, false, a, 401)
	}
	if n := b.Size(); n != before {
		t.Errorf("bad tokens left %d decisions", n-before)
	}

	// Impersonation: for this caller in this name, and for neither alone.
	as := carrying("Authorization", "Bearer "+static, "Impersonate-User", "bob")
	expect("in another's name", as, false)
	secret := read("/api/v1/namespaces/a/secrets/x")
	b.Learn(as.Header, false, secret, 200)
	if _, refusal := b.authorizeRequest(as, secret); refusal != nil {
		t.Error(refusal)
	}
	for _, who := range []*http.Request{
		withToken(static), carrying("Test-Node", "yes"), carrying("Test-Node", "yes", "Impersonate-User", "bob"),
		carrying("Authorization", "Bearer "+static, "Impersonate-User", "bob", "Impersonate-Group", "system:masters"),
	} {
		if u, refusal := b.authorizeRequest(who, secret); refusal == nil {
			t.Errorf("%q may read it", u.Name)
		}
	}
}

// TestOwnPods: who may watch the pods of this node may get each of them, and no other.
func TestOwnPods(t *testing.T) {
	b := newBed(t, nil)
	node := carrying("Test-Node", "yes")
	b.Learn(node.Header, true, read("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dedge-1"), 200)
	for name, want := range map[string]bool{"web-0": true, "foreign": false, "unknown": false, "web-0/log": false} {
		if _, refusal := b.authorizeRequest(node, read("/api/v1/namespaces/default/pods/"+name)); (refusal == nil) != want {
			t.Errorf("%s: %v", name, refusal)
		}
	}
}

// TestDeniedAgain: a denial that is said again within hours is as young as the last time, also after a restart: what
// was allowed between the two is lost.
func TestDeniedAgain(t *testing.T) {
	const all, x = "/api/v1/configmaps", "/api/v1/namespaces/a/configmaps/x"
	b := newBed(t, nil)
	node := carrying("Test-Node", "yes")
	for _, said := range []struct {
		uri  string
		code int
	}{{all, 403}, {all + "?watch=1", 200}, {all, 403}} {
		b.clock.Step(time.Hour)
		b.Learn(node.Header, true, read(said.uri), said.code)
	}
	ask := func(when string) {
		t.Helper()
		for _, uri := range []string{all, all + "?watch=1", all + "?labelSelector=a", x} {
			if _, refusal := b.authorizeRequest(node, read(uri)); refusal == nil || refusal.ErrStatus.Code != 403 {
				t.Errorf("%s, %s: %v", when, uri, refusal)
			}
		}
	}
	ask("at once")
	b.verdicts.save()
	b.clock.Step(time.Minute)
	b.Learn(node.Header, true, read(all), 403)
	if n := b.Unsaved(); n != 0 {
		t.Errorf("nothing was allowed since, and %d changes are to be written", n)
	}
	b.start(nil)
	ask("after a restart")
}

// TestAge: allowances of pods end a week after the cloud said so last, the node's own do not.
func TestAge(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Allowance = 10000 * time.Hour })
	b.fetch()
	a := read("/api/v1/services")
	node, pod := carrying("Test-Node", "yes"), withToken(b.key.sign(t, podClaims(day, nil)))
	b.Learn(node.Header, true, a, 200)
	b.Learn(pod.Header, false, a, 200)
	b.clock.Step(DefaultTTL - time.Minute)
	if _, refusal := b.authorizeRequest(pod, a); refusal != nil {
		t.Error(refusal)
	}
	b.clock.Step(2 * time.Minute)
	if _, refusal := b.authorizeRequest(pod, a); refusal == nil {
		t.Error("it counts for ever")
	}
	b.clock.Step(1000 * time.Hour)
	if _, refusal := b.authorizeRequest(node, a); refusal != nil {
		t.Error(refusal)
	}
}

// TestKept: decisions and keys are there after a restart; a damaged file is as none.
func TestKept(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	a := read("/api/v1/services")
	pod := withToken(b.key.sign(t, podClaims(day, nil)))
	b.Learn(pod.Header, false, a, 200)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.verdicts.run(ctx, b.clock) }()
	check(t, wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			b.clock.Step(gatherTime)
			_, err := os.Stat(b.File)
			return err == nil, nil
		}))
	b.Learn(carrying("Test-Node", "yes").Header, true, a, 403)
	cancel() // and what came last is written
	check(t, <-done)
	info, err := os.Stat(b.File)
	check(t, err)
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the file may be read by others: %v", mode)
	}
	b.start(nil)
	if _, refusal := b.authorizeRequest(pod, a); refusal != nil {
		t.Error(refusal)
	}
	if _, refusal := b.authorizeRequest(carrying("Test-Node", "yes"), a); refusal == nil || refusal.ErrStatus.Code != 403 {
		t.Errorf("a denial is forgotten: %v", refusal)
	}
	// Where one of the two files is damaged the other one is valid; what is damaged never is.
	eachByte := func(file string, want int) {
		t.Helper()
		raw, err := os.ReadFile(file)
		check(t, err)
		for i := range raw {
			damaged := slices.Clone(raw)
			damaged[i] ^= 1
			check(t, os.WriteFile(file, damaged, 0o600))
			b.start(nil)
			if n := b.Size(); n != want {
				t.Fatalf("byte %d of %s is wrong, and there are %d decisions, want %d", i, file, n, want)
			}
		}
		check(t, os.WriteFile(file, raw, 0o600))
	}
	eachByte(b.File+ownSuffix, 2)
	check(t, os.Remove(b.File+ownSuffix))
	eachByte(b.File, 0)
}

// TestBounds: nobody crowds out the decisions of another.
func TestBounds(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	node, pod := carrying("Test-Node", "yes"), withToken(b.key.sign(t, podClaims(day, nil)))
	mine := read("/api/v1/services")
	b.Learn(node.Header, true, mine, 200)
	b.Learn(pod.Header, false, mine, 200)
	for i := range maxEach + 10 {
		b.clock.Step(time.Minute)
		b.Learn(pod.Header, false, read(fmt.Sprintf("/api/v1/namespaces/a/secrets/x-%d", i)), 404)
	}
	if n := b.Size(); n != maxEach+1 {
		t.Errorf("%d decisions", n)
	}
	for i := range maxCallers + 10 {
		b.clock.Step(time.Minute)
		b.Learn(withToken(fmt.Sprint("static-", i)).Header, false, mine, 200)
	}
	if n := len(b.verdicts.callers); n != maxCallers+1 {
		t.Errorf("%d callers", n)
	}
	if _, refusal := b.authorizeRequest(node, mine); refusal != nil {
		t.Error(refusal)
	}
	full := encodeVerdicts(b.verdicts.callers)
	if _, err := decodeVerdicts(full); err != nil {
		t.Error(err)
	}
}

// TestVerdictsOfFormerVersions: beside the file of this version is one that earlier ones read, and if such a one has
// written it since, that one is valid.
func TestVerdictsOfFormerVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "verdicts")
	caller, yes, twice, no := hashOf("a"), hashOf("yes"), hashOf("denied once"), hashOf("no")
	open := func() *verdicts { return newVerdicts(caller, path, slog.New(slog.NewTextHandler(t.Output(), nil))) }
	v := open()
	v.callers[caller] = map[digest]word{
		yes: {allowed: 100}, twice: {allowed: 100, since: 120, denied: 121}, no: {since: 120, denied: 140},
	}
	v.save()
	if got := open().callers[caller]; !maps.Equal(got, v.callers[caller]) {
		t.Errorf("read again: %v, want %v", got, v.callers[caller])
	}
	former, err := os.ReadFile(path)
	check(t, err)
	if !bytes.HasPrefix(former, []byte(formerMagic)) {
		t.Fatalf("an earlier version reads %q", former[:len(formerMagic)])
	}
	callers, err := decodeVerdicts(former)
	check(t, err)
	if of := callers[caller]; of[yes].allowed != 100 || of[twice].allowed != 100 || of[no].allowed != 0 ||
		!of[no].stands() {
		t.Errorf("to an earlier version it is %v", of)
	}
	check(t, os.WriteFile(path, encodeFormer(map[digest]map[digest]word{caller: {yes: {since: 190, denied: 200}}}), 0o600))
	if of := open().callers[caller]; len(of) != 1 || !of[yes].stands() {
		t.Errorf("after an earlier version has written it is %v", of)
	}
}
