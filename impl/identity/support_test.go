package identity

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"go.uber.org/goleak"

	"github.com/weir-edge/weir/impl/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const issuer = "https://kubernetes.default.svc.cluster.local"

// signer is a key of a cluster.
type signer struct {
	kid string
	alg jose.SignatureAlgorithm
	key crypto.Signer
}

var rsaKey, otherKey = sync.OnceValue(newRSA), sync.OnceValue(newRSA)

func newRSA() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
}

func newEC(t testing.TB) *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return k
}

func (s signer) sign(t testing.TB, claims any) string {
	t.Helper()
	sig, err := jose.NewSigner(jose.SigningKey{
		Algorithm: s.alg, Key: s.key,
	}, (&jose.SignerOptions{}).WithHeader("kid", s.kid))
	check(t, err)
	raw, err := jwt.Signed(sig).Claims(claims).Serialize()
	check(t, err)
	return raw
}

func (s signer) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: s.key.Public(), KeyID: s.kid, Algorithm: string(s.alg), Use: "sig"}
}

// object is JSON.
type object = map[string]any

// podClaims are those that a cluster puts into the token of a pod, valid for an hour from at.
func podClaims(at time.Time, change func(c, k object)) object {
	k := object{
		"namespace":      "default",
		"serviceaccount": object{"name": "web", "uid": "sa-uid"},
		"pod":            object{"name": "web-0", "uid": "pod-uid"},
		"node":           object{"name": "edge-1", "uid": "node-uid"},
		"warnafter":      at.Add(time.Hour).Unix(),
	}
	c := object{
		"iss": issuer, "sub": "system:serviceaccount:default:web", "aud": []string{issuer}, "jti": "1",
		"iat": at.Unix(), "nbf": at.Unix(), "exp": at.Add(time.Hour).Unix(), "kubernetes.io": k,
	}
	if change != nil {
		change(c, k)
	}
	return c
}

// cloud answers for keys, as kube-apiserver does.
type cloud struct {
	mu     sync.Mutex
	keys   []jose.JSONWebKey
	code   int      // 0 is 200
	forbid bool     // service accounts may not read the keys
	paths  []string // that were asked for, with the one that asked
	now    func() time.Time
	server *httptest.Server
}

func newCloud(t testing.TB, now func() time.Time, all ...signer) *cloud {
	c := &cloud{now: now}
	c.set(all...)
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

func (c *cloud) set(all ...signer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = nil
	for _, s := range all {
		c.keys = append(c.keys, s.public())
	}
}

func (c *cloud) answer(code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code = code
}

func (c *cloud) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.paths)
}

// asked are the paths that were asked for since it was called last, "hub" or "token" before them.
func (c *cloud) asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.paths
	c.paths = nil
	return all
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	who := "nobody"
	switch {
	case req.Header.Get("Test-Hub") != "":
		who = "hub"
	case req.Header.Get("Authorization") != "":
		who = "token"
	}
	c.paths = append(c.paths, who+" "+req.URL.Path)
	w.Header().Set("Date", c.now().UTC().Format(http.TimeFormat))
	if c.code != 0 {
		w.WriteHeader(c.code)
		return
	}
	if who == "nobody" || who == "token" && c.forbid {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	switch req.URL.Path {
	case discoveryPath:
		_ = json.NewEncoder(w).Encode(object{"issuer": issuer, "jwks_uri": "https://elsewhere/openid/v1/jwks"})
	case keysPath:
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: c.keys})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// RoundTrip sends a request to it, over a socket.
func (c *cloud) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = "http", c.server.Listener.Addr().String()
	return c.server.Client().Transport.RoundTrip(req)
}

// asHub sends requests with the hub's certificate.
type asHub struct{ *cloud }

func (h asHub) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Test-Hub", "yes")
	return h.cloud.RoundTrip(req)
}

// learn lets the cloud answer a read, and once more if it denies it: a denial has to stand.
func (b *bed) learn(h http.Header, certified bool, a Attributes, code int) {
	b.Learn(h, certified, a, code)
	if code == http.StatusForbidden || code == http.StatusUnauthorized {
		b.clock.Step(Stands)
		b.Learn(h, certified, a, code)
	}
}

// documents is a store of documents in memory.
type documents struct {
	mu  sync.Mutex
	all map[string]store.Document
}

func (d *documents) Document(name string) (store.Document, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, ok := d.all[name]
	return doc, ok
}

func (d *documents) PutDocument(name string, doc store.Document) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string]store.Document{}
	}
	d.all[name] = doc
	return nil
}

// logBuffer takes what is logged.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
