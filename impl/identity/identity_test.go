package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/pki"
)

var day = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// bed is a judge beside a cloud, with one pod on this node.
type bed struct {
	*Judge
	t     testing.TB
	clock *clocktesting.FakeClock
	cloud *cloud
	time  *pki.Proven
	key   signer
	docs  *documents
	log   *logBuffer

	podsMu   sync.Mutex
	pods     map[string]Pod
	podsRead int
	dir      string
}

func newBed(t testing.TB, change func(*Config)) *bed {
	b := &bed{
		t: t, clock: clocktesting.NewFakeClock(day), key: signer{"one", jose.RS256, rsaKey()}, docs: &documents{},
		log: &logBuffer{}, dir: t.TempDir(),
		pods: map[string]Pod{
			"default/web-0":   {UID: "pod-uid", Node: "edge-1"},
			"default/foreign": {UID: "foreign-uid", Node: "edge-2"}, // some client listed all pods
			"default/gone":    {UID: "gone-uid", Node: "edge-1", Gone: day.Add(-time.Hour)},
			"default/going":   {UID: "going-uid", Node: "edge-1", Gone: day.Add(30 * time.Second)},
		},
	}
	b.cloud = newCloud(t, b.clock.Now, b.key)
	b.start(change)
	return b
}

// start makes a judge of what was kept.
func (b *bed) start(change func(*Config)) {
	b.t.Helper()
	c := Config{
		Node: "edge-1", Cloud: asHub{b.cloud}, Callers: b.cloud, Documents: b.docs, File: filepath.Join(b.dir, "verdicts"),
		Allowance: time.Hour, TTL: DefaultTTL, Clock: b.clock,
		Random: func() float64 { return 0.5 }, Logger: slog.New(slog.NewTextHandler(b.log, nil)),
		Pods: func(ns, name string) (Pod, bool) {
			b.podsMu.Lock()
			defer b.podsMu.Unlock()
			b.podsRead++
			p, ok := b.pods[ns+"/"+name]
			return p, ok
		},
	}
	if change != nil {
		change(&c)
	}
	b.time = pki.OpenProven(filepath.Join(b.dir, "time"), c.Clock, c.Logger)
	c.Now = b.time.Now
	j, err := New(c)
	check(b.t, err)
	b.Judge = j
}

func (b *bed) fetch() {
	b.t.Helper()
	check(b.t, b.keys.fetch(b.t.Context(), nil))
}

func (b *bed) verifyRequest(req *http.Request) (User, error) {
	return b.Verify(req.Header, req.Header.Get("Test-Node") != "")
}

func (b *bed) authorizeRequest(req *http.Request, a Attributes) (User, *apierrors.StatusError) {
	return b.Authorize(req.Header, req.Header.Get("Test-Node") != "", a)
}

func carrying(header ...string) *http.Request {
	req, err := http.NewRequest(http.MethodGet, "https://hub/api/v1/namespaces/default/configmaps", nil)
	if err != nil {
		panic(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return req
}

func withToken(raw string) *http.Request { return carrying("Authorization", "Bearer "+raw) }

// unsigned makes a token of algorithm none.
func unsigned(claims any) string {
	b, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"none","kid":"one"}`)) + "." + enc(b) + "."
}

// secretOf signs with a public key as if it were a shared secret, the oldest trick there is.
func secretOf(t testing.TB, s signer, claims any) string {
	b, err := json.Marshal(claims)
	check(t, err)
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	check(t, err)
	enc := base64.RawURLEncoding.EncodeToString
	body := enc([]byte(`{"alg":"HS256","kid":"one"}`)) + "." + enc(b)
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(body))
	return body + "." + enc(mac.Sum(nil))
}

// TestAttempts: every credential that is not good is refused, with a reason in the log that the caller does not get.
func TestAttempts(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	good := podClaims(day.Add(-time.Minute), nil)
	with := func(at time.Time, change func(c, k object)) *http.Request {
		return withToken(b.key.sign(t, podClaims(at, change)))
	}
	pod := func(name, uid string) *http.Request {
		return with(day, func(_, k object) { k["pod"] = object{"name": name, "uid": uid} })
	}
	jwk := b.key.public()
	embedded, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: otherKey()},
		&jose.SignerOptions{EmbedJWK: true})
	check(t, err)
	own, err := jwt.Signed(embedded).Claims(good).Serialize()
	check(t, err)
	half := strings.Split(b.key.sign(t, good), ".")
	half[1] = strings.Split(b.key.sign(t, podClaims(day, func(c, k object) {
		c["sub"] = "system:serviceaccount:kube-system:admin"
		k["namespace"], k["serviceaccount"] = "kube-system", object{"name": "admin", "uid": "x"}
	})), ".")[1]

	tests := []struct {
		name string
		req  *http.Request
		code int32  // 0: allowed
		log  string // what the reason says; the name of the user if it is allowed
	}{
		{"this node's certificate", carrying("Test-Node", "yes"), 0, "system:node:edge-1"},
		{"a token of a pod of this node", withToken(b.key.sign(t, good)), 0, "system:serviceaccount:default:web"},
		{"expired within the allowance", with(day.Add(-119*time.Minute), nil), 0, "system:serviceaccount:default:web"},
		{"from a clock that is ahead", with(day.Add(4*time.Minute), nil), 0, "system:serviceaccount:default:web"},
		{"of a pod that is being deleted", pod("going", "going-uid"), 0, "system:serviceaccount:default:web"},
		{
			"bound to this node alone", with(day, func(_, k object) { delete(k, "pod") }), 0,
			"system:serviceaccount:default:web",
		},
		{
			"issued before tokens named the node", with(day, func(_, k object) { delete(k, "node") }), 0,
			"system:serviceaccount:default:web",
		},

		{"nothing", carrying(), 401, "no credentials"},
		{
			"another node's token", with(day, func(_, k object) { k["node"] = object{"name": "edge-2", "uid": "u"} }), 401,
			"bound to node",
		},
		{
			"another node's pod", with(day, func(_, k object) {
				delete(k, "node")
				k["pod"] = object{"name": "elsewhere", "uid": "u"}
			}), 401, "not known on this node",
		},
		{"another node's pod, which somebody listed", with(day, func(_, k object) {
			delete(k, "node")
			k["pod"] = object{"name": "foreign", "uid": "foreign-uid"}
		}), 401, "on another node"},
		{"a pod of before, of the same name", pod("web-0", "earlier-uid"), 401, "replaced"},
		{"a deleted pod", pod("gone", "gone-uid"), 401, "is deleted"},
		{"a pod of that name elsewhere", with(day, func(c, k object) {
			k["namespace"] = "other"
			c["sub"] = "system:serviceaccount:other:web"
		}), 401, "not known on this node"},
		{"expired", with(day.Add(-122*time.Minute), nil), 401, "expired"},
		{"not yet valid", with(day.Add(6*time.Minute), nil), 401, "not valid before"},
		{"issued in the future", with(day, func(c, _ object) { c["iat"] = day.Add(time.Hour).Unix() }), 401, "in the future"},
		{"wrong audience", with(day, func(c, _ object) { c["aud"] = []string{"vault"} }), 401, "not for the API"},
		{"no audience", with(day, func(c, _ object) { delete(c, "aud") }), 401, "not for the API"},
		{"wrong issuer", with(day, func(c, _ object) { c["iss"] = "https://evil" }), 503, "only the cloud knows"},
		{"no issuer", with(day, func(c, _ object) { delete(c, "iss") }), 503, "only the cloud knows"},
		{"bound to nothing", with(day, func(_, k object) { delete(k, "pod"); delete(k, "node") }), 503, "bound to no pod"},
		{
			"bound to a Secret", with(day, func(_, k object) {
				delete(k, "pod")
				delete(k, "node")
				k["secret"] = object{"name": "s"}
			}), 503, "bound to no pod",
		},
		{
			"a subject that its claims do not bear out",
			with(day, func(c, _ object) { c["sub"] = "system:serviceaccount:kube-system:admin" }), 401, "for no service account",
		},
		{
			"no claims of a service account", withToken(b.key.sign(t, object{"iss": issuer, "sub": "system:admin"})), 401,
			"for no service account",
		},
		{
			"another key under this name", withToken(signer{"one", jose.RS256, otherKey()}.sign(t, good)), 401,
			"no key of the cluster fits",
		},
		{"an unknown key", withToken(signer{"two", jose.RS256, otherKey()}.sign(t, good)), 503, "did not have"},
		{
			"no key named, another one", withToken(signer{"", jose.RS256, otherKey()}.sign(t, good)), 401,
			"no key of the cluster fits",
		},
		{"a key of its own in the header", withToken(own), 401, "no key of the cluster fits"},
		{
			"another algorithm of this key", withToken(signer{"one", jose.RS512, rsaKey()}.sign(t, good)), 401,
			"no key of the cluster fits",
		},
		{"claims of another token", withToken(strings.Join(half, ".")), 401, "no key of the cluster fits"},
		{"signature cut off", withToken(half[0] + "." + half[1] + "."), 401, "no key of the cluster fits"},
		{"alg none", withToken(unsigned(good)), 503, "only the cloud knows"},
		{"HMAC with the public key", withToken(secretOf(t, b.key, good)), 503, "only the cloud knows"},
		{"garbage", withToken("garbage"), 503, "only the cloud knows"},
		{"three parts of garbage", withToken("a.b.c"), 503, "only the cloud knows"},
		{"a very long token", withToken(strings.Repeat("a.b.c", 1<<20)), 503, "only the cloud knows"},
		{"no token", carrying("Authorization", "Bearer "), 401, "is not"},
		{
			"a token after two spaces, which the cloud does not see", carrying("Authorization", "Bearer  "+b.key.sign(t, good)),
			401, "is not",
		},
		{"a password", carrying("Authorization", "Basic YTpi"), 401, "is not"},
		{"two tokens", carrying("Authorization", "Bearer a", "Authorization", "Bearer b"), 401, "more than one"},
		{
			"a token beside another", carrying("Authorization", "Bearer "+b.key.sign(t, good), "Sec-WebSocket-Protocol",
				"base64url.bearer.authorization.k8s.io.YQ"), 401, "WebSocket",
		},
		{
			"garbage beside this node's certificate", carrying("Authorization", "Bearer garbage", "Test-Node", "yes"), 503,
			"only the cloud knows",
		},
	}
	if !jwk.IsPublic() {
		t.Fatal("the cloud shows a private key")
	}
	secret := "the cloud is away, and the hub cannot tell who is calling"
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u, err := b.verifyRequest(test.req)
			if test.code == 0 {
				if err != nil || u.Name != test.log {
					t.Fatalf("got %q, %v", u.Name, err)
				}
				return
			}
			var r *RefusalError
			if !errors.As(err, &r) || !strings.Contains(r.Reason, test.log) {
				t.Fatalf("got %v (user %q), want %q", err, u.Name, test.log)
			}
			status := r.Status().ErrStatus
			if status.Code != test.code || status.Message != secret && status.Message != "Unauthorized" {
				t.Errorf("the caller is told %d %q", status.Code, status.Message)
			}
			if !strings.Contains(b.log.String(), test.log) {
				t.Errorf("the log does not say %q", test.log)
			}
			if u, refusal := b.authorizeRequest(test.req, Attributes{Verb: "get", Path: "/version"}); refusal == nil {
				t.Errorf("%q may read", u.Name)
			}
		})
	}
	if strings.Contains(b.log.String(), half[2]) {
		t.Error("a token is in the log")
	}
}

// TestAlgorithms: those that clusters sign with are known.
func TestAlgorithms(t *testing.T) {
	for _, s := range []signer{
		{"r", jose.RS256, rsaKey()}, {"r", jose.RS512, rsaKey()}, {"r", jose.PS256, rsaKey()}, {"e", jose.ES256, newEC(t)},
	} {
		t.Run(string(s.alg), func(t *testing.T) {
			b := newBed(t, nil)
			b.cloud.set(s)
			b.fetch()
			if u, err := b.verifyRequest(withToken(s.sign(t, podClaims(day, nil)))); err != nil || u.UID != "sa-uid" {
				t.Fatalf("got %+v, %v", u, err)
			}
		})
	}
}

// TestRotation: an unknown key is asked for, but not at once again; a key that was taken away is no longer valid,
// whatever was seen.
func TestRotation(t *testing.T) {
	b := newBed(t, nil)
	b.fetch()
	next := signer{"two", jose.ES256, newEC(t)}
	old, fresh := withToken(b.key.sign(t, podClaims(day, nil))), withToken(next.sign(t, podClaims(day, nil)))
	a := Attributes{Verb: "get", Path: "/version"}
	b.Learn(old.Header, false, a, 200)
	if _, refusal := b.authorizeRequest(old, a); refusal != nil {
		t.Fatal(refusal)
	}
	b.cloud.set(next)
	b.Learn(fresh.Header, false, a, 401) // anybody can send that
	select {
	case <-b.keys.offers:
		t.Fatal("a token that the cloud refused costs a request")
	default:
	}
	b.Learn(fresh.Header, false, a, 200)
	select {
	case <-b.keys.offers:
	default:
		t.Fatal("a new key is not asked for")
	}
	b.fetch()
	b.Learn(fresh.Header, false, a, 200)
	if _, refusal := b.authorizeRequest(fresh, a); refusal != nil {
		t.Error(refusal)
	}
	if _, refusal := b.authorizeRequest(old, a); refusal == nil {
		t.Error("a key that the cluster gave up still counts")
	}
}

// TestWithoutGrant: a hub that may not read the keys says what to do, and takes the very tokens that the cloud has
// taken, as long as they are valid and their pods are here.
func TestWithoutGrant(t *testing.T) {
	b := newBed(t, nil)
	b.cloud.answer(http.StatusForbidden)
	b.keys.report(b.keys.fetch(t.Context(), nil))
	if !strings.Contains(b.log.String(), "the role weir:hub") {
		t.Errorf("the log says %q", b.log)
	}
	seen, other := withToken(b.key.sign(t, podClaims(day, nil))),
		withToken(b.key.sign(t, podClaims(day.Add(time.Second), nil)))
	a := Attributes{Verb: "list", Version: "v1", Resource: "services"}
	b.Learn(seen.Header, false, a, 200)
	if _, refusal := b.authorizeRequest(seen, a); refusal != nil {
		t.Error(refusal)
	}
	if _, refusal := b.authorizeRequest(other, a); refusal == nil || refusal.ErrStatus.Code != 503 {
		t.Errorf("a token that nobody has seen: %v", refusal)
	}
	delete(b.pods, "default/web-0")
	if _, refusal := b.authorizeRequest(seen, a); refusal == nil {
		t.Error("the token of a pod that is gone counts")
	}
	b.pods["default/web-0"] = Pod{UID: "pod-uid", Node: "edge-1"}
	b.clock.Step(2*time.Hour + time.Second)
	if _, refusal := b.authorizeRequest(seen, a); refusal == nil {
		t.Error("an expired token counts")
	}
}

// TestWithoutStore: where nothing is kept of pods, a token has to name the node itself.
func TestWithoutStore(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Pods, c.Documents, c.File = nil, nil, "" })
	b.fetch()
	if _, err := b.verifyRequest(withToken(b.key.sign(t, podClaims(day, nil)))); err != nil {
		t.Error(err)
	}
	nameless := withToken(b.key.sign(t, podClaims(day, func(_, k object) { delete(k, "node") })))
	if u, err := b.verifyRequest(nameless); err == nil {
		t.Errorf("a token of any node counts, as %q", u.Name)
	}
}
