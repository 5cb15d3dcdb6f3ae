package hub

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/documents"
)

// nameless is a request that names its token as a hop-by-hop header: a proxy that believed that would send it on
// without.
func (b *bed) nameless(c *http.Client, token string) int {
	b.t.Helper()
	resp, _ := get(b.t, c, b.url()+"/echo/version", "Authorization", "Bearer "+token, "Connection", "Authorization")
	return resp.StatusCode
}

// old returns a client that speaks HTTP/1.1, in which there are hop-by-hop headers.
func (b *bed) old() *http.Client { return testClient(b.t, &tls.Config{RootCAs: b.local.pool()}, false) }

// remembering starts the hub and returns a client whose list, as alice, it keeps.
func (b *bed) remembering() *http.Client {
	b.t.Helper()
	b.clouds[0].put("default", "web")
	b.start()
	b.here()
	client := b.old()
	if _, _, resp := b.list(client, "", alice...); resp.StatusCode != http.StatusOK {
		b.t.Fatal(resp.Status)
	}
	b.kept(1)
	return client
}

// TestHiddenTokenIsNotTaken: what the cloud says to nobody makes no token count again that it has refused.
func TestHiddenTokenIsNotTaken(t *testing.T) {
	b, link := offlineBed(t)
	client := b.remembering()
	b.clouds[0].refuse("alice")
	if _, _, resp := b.list(client, "", alice...); resp.StatusCode != http.StatusUnauthorized {
		t.Fatal(resp.Status)
	}
	if code := b.nameless(client, "alice"); code != http.StatusBadRequest {
		t.Errorf("a request that hides its token: %d", code)
	}
	b.sure()
	link.set(true)
	b.away()
	if _, _, resp := b.list(client, "", alice...); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token that the cloud has refused reads, while it is away: %s", resp.Status)
	}
}

// TestHiddenTokensCrowdNobodyOut: nobody without credentials takes the place of those who have some.
func TestHiddenTokensCrowdNobodyOut(t *testing.T) {
	b, link := offlineBed(t)
	client := b.remembering()
	before := b.hub.judge.Size()
	for i := range 1030 { // more than there is room for callers
		b.nameless(client, fmt.Sprint("invented-", i))
	}
	if n := b.hub.judge.Size(); n != before {
		t.Errorf("invented tokens left %d decisions", n-before)
	}
	link.set(true)
	b.away()
	if names, _, resp := b.list(client, "", alice...); names != "web" {
		t.Errorf("who was allowed before reads %q: %s", names, resp.Status)
	}
}

// issuer signs tokens of service accounts, and names its key as kube-apiserver does.
type issuer struct {
	t      testing.TB
	keys   []byte
	signer jose.Signer
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	check(t, err)
	sum := sha256.Sum256(der)
	kid := base64.RawURLEncoding.EncodeToString(sum[:])
	keys, err := json.Marshal(jose.JSONWebKeySet{
		Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: kid, Algorithm: "ES256", Use: "sig"}},
	})
	check(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key},
		(&jose.SignerOptions{}).WithHeader("kid", kid))
	check(t, err)
	return &issuer{t, keys, signer}
}

// token is one for a service account on a node, valid for an hour.
func (i *issuer) token(name, node string) string {
	i.t.Helper()
	now := time.Now()
	raw, err := jwt.Signed(i.signer).Claims(map[string]any{
		"iss": "https://kubernetes", "aud": []string{"https://kubernetes"}, "sub": "system:serviceaccount:default:" + name,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{
			"namespace": "default", "serviceaccount": map[string]string{"name": name, "uid": "u"},
			"node": map[string]string{"name": node, "uid": "n"},
		},
	}).Serialize()
	check(i.t, err)
	return raw
}

// TestHiddenTokenProvesNoKey: keys that somebody put into the pool are proven by no token that the cloud has not seen.
func TestHiddenTokenProvesNoKey(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	forger := newIssuer(t)
	p.coordinator.now.Documents.Put(documents.Key{Path: documents.Keys},
		&documents.Document{ETag: `"1"`, ContentType: runtime.ContentTypeJSON, Body: forger.keys})
	h := p.hubs["edge-1"]
	p.start("edge-1")
	eventually(t, "the hub to lead", func() bool { return p.settled("edge-1") != "" })
	client, forged := h.old(), forger.token("web", "edge-1")
	p.clouds[0].refuse(forged)
	trick := func() int { return h.nameless(client, forged) }
	for range 50 {
		if code := trick(); code != http.StatusBadRequest {
			eventually(t, "the forged key to be believed, which must not be",
				func() bool { trick(); return h.hub.judge.Keys() != nil })
			break
		}
	}
	if keys := h.hub.judge.Keys(); keys != nil {
		t.Errorf("the hub believes a key of the pool that nothing proves: %s", keys)
	}
	if n := h.hub.judge.Size(); n != 0 {
		t.Errorf("%d decisions were learnt", n)
	}
}

// TestIllFormed: what could be read in two ways goes nowhere, and teaches nothing. What is in order passes beside it.
func TestIllFormed(t *testing.T) {
	b, _ := offlineBed(t)
	b.start()
	b.here()
	before := b.hub.judge.Size()
	arrived := func() (n int) {
		b.clouds[0].set(func() {
			for _, s := range b.clouds[0].seen {
				if strings.Contains(s.path, "echo") {
					n++
				}
			}
		})
		return n
	}
	for line, code := range map[string]int{
		"GET /echo/x\nConnection: Authorization":                       400,
		"GET /echo/x\nConnection: close, authorization":                400,
		"GET /echo/x\nConnection: close\nConnection: Impersonate-User": 400,
		"GET /echo/x\nConnection: X-Anything":                          400,
		"GET /echo/x\nConnection: \"close\"":                           400,
		"GET a:b:/echo/x\nConnection: close":                           400,
		"GET a:echo/x\nConnection: close":                              400,
		"CONNECT b:443\nConnection: close":                             400,
		// an absolute line is HTTP's own form for proxies; its host is nobody's.
		"GET https://elsewhere/echo/x\nConnection: close":                                                  200,
		"GET /echo/x\nConnection: close":                                                                   200,
		"GET /echo/x\nConnection: Keep-Alive, TE, close\nTE: trailers":                                     200,
		"GET /echo/x\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__": 200,
		"GET /echo/x\nConnection: , close,":                                                                200,
	} {
		t.Run(line, func(t *testing.T) {
			conn, err := tls.Dial("tcp", b.hub.Addr().String(), &tls.Config{RootCAs: b.local.pool()})
			check(t, err)
			defer conn.Close()
			start, headers, _ := strings.Cut(line, "\n")
			was := arrived()
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer alice\r\n%s\r\n\r\n", start,
				strings.ReplaceAll(headers, "\n", "\r\n"))
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			check(t, err)
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != code {
				t.Errorf("got %d, want %d", resp.StatusCode, code)
			}
			if went := arrived() > was; went != (code == http.StatusOK) {
				t.Errorf("it went to the cloud: %v", went)
			}
		})
	}
	if n := b.hub.judge.Size(); n > before+2 { // that the token is good, and /echo/x
		t.Errorf("%d decisions were learnt", n-before)
	}
}

// TestSourceIsNotTheCallersToSay: headers by which kube-apiserver is told where a request comes from do not pass.
func TestSourceIsNotTheCallersToSay(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	b.fed()
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	said := []string{
		"X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Uri", "Forwarded",
		"X-Remote-User", "X-Remote-Group", "X-Remote-Extra-A",
	}
	for name, client := range map[string]*http.Client{"a token": b.client(nil), "the node": b.client(&cert)} {
		var header []string
		if name == "a token" {
			header = alice
		}
		for _, h := range said {
			header = append(header, h, "6.6.6.6")
		}
		_, body := get(t, client, b.url()+"/echo/x", header...)
		var e echo
		check(t, json.Unmarshal([]byte(body), &e))
		for _, h := range said {
			if v, ok := e.Header[h]; ok {
				t.Errorf("%s: %s: %v arrives", name, h, v)
			}
		}
	}
}
