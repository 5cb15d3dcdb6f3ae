package hub

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/uplink"
)

// TestIdentity is the table of who arrives at the cloud as whom, over the proxy and over relayed reads.
func TestIdentity(t *testing.T) {
	b := newBed(t, 1)
	b.config.Anonymous = true
	b.start()
	stranger := newAuthority(t, "unknown")
	cert := func(a *authority, user string, groups ...string) *tls.Certificate {
		c := a.tls(user, groups...)
		return &c
	}
	node := cert(b.ca, "system:node:edge-1", "system:nodes")
	tests := []struct {
		name   string
		cert   *tls.Certificate
		header []string
		user   string // at the cloud; "" means refused with 401
		byCert bool   // over a connection with the hub's certificate
		why    string
	}{
		{"token", nil, []string{"Authorization", "Bearer alice"}, "alice", false, ""},
		{"no credentials", nil, nil, "system:anonymous", false, ""},
		{"this node", node, nil, "system:node:edge-1", true, ""},
		{"this node and a token: the token, alone", node, []string{"Authorization", "Bearer alice"}, "alice", false, ""},
		{
			"this node and a WebSocket token", node, []string{
				"Sec-Websocket-Protocol", "v5.channel.k8s.io, " + uplink.WebSocketToken + "YWxpY2U",
			}, "system:anonymous", false, "",
		},
		{"another node", cert(b.ca, "system:node:edge-2", "system:nodes"), nil, "", false, "system:node:edge-2"},
		{"this node's name without its group", cert(b.ca, "system:node:edge-1"), nil, "", false, "use a token"},
		{"an administrator", cert(b.ca, "admin", "system:masters"), nil, "", false, "admin"},
		{
			"this node's name, signed by somebody else", cert(stranger, "system:node:edge-1", "system:nodes"), nil, "", false,
			"cannot be verified",
		},
		{
			"an administrator with a token: the token", cert(b.ca, "admin", "system:masters"),
			[]string{"Authorization", "Bearer alice"}, "alice", false, "",
		},
		{"this node, claiming to be somebody by headers of a front proxy", node,
			[]string{
				"X-Remote-User", "admin", "X-Remote-Group", "system:masters", "X-Remote-Extra-Scopes", "x", "X-Remote-Uid", "1",
			}, "system:node:edge-1", true, ""},
	}
	// Two rounds, so that sessions of the first could be resumed in the second.
	b.fed()
	for round := range 2 {
		if round == 1 {
			b.hub.cloud.Close()
		}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				client := b.client(test.cert)
				resp, body := get(t, client, b.url()+"/echo/x", test.header...)
				if test.user == "" {
					var s metav1.Status
					check(t, json.Unmarshal([]byte(body), &s))
					if resp.StatusCode != http.StatusUnauthorized || s.Reason != metav1.StatusReasonUnauthorized ||
						!strings.Contains(s.Message, test.why) {
						t.Errorf("got %d %+v", resp.StatusCode, s)
					}
					if resp, _ := get(t, client, b.url()+"/api/v1/endpoints", test.header...); resp.StatusCode !=
						http.StatusUnauthorized {
						t.Errorf("relayed read: got %d", resp.StatusCode)
					}
					return
				}
				var e echo
				check(t, json.Unmarshal([]byte(body), &e))
				if e.User != test.user || e.Cert != test.byCert {
					t.Errorf("arrived as %s, by certificate: %t", e.User, e.Cert)
				}
				for name := range e.Header {
					if strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, "X-Forwarded-") {
						t.Errorf("header %s arrived", name)
					}
				}
				if e.Cert && e.Header.Get("Authorization") != "" {
					t.Error("a token arrived over a connection with the hub's certificate")
				}
				want := http.StatusOK
				if test.user == "system:anonymous" {
					want = http.StatusForbidden
				}
				if resp, body := get(t, client, b.url()+"/api/v1/endpoints", test.header...); resp.StatusCode != want {
					t.Errorf("relayed read: got %d %s", resp.StatusCode, body)
				}
			})
		}
	}
	b.clouds[0].set(func() {
		for _, s := range b.clouds[0].seen {
			if s.cert != (strings.HasPrefix(s.user, "system:node:") || strings.HasPrefix(s.user, "weir:hub:")) {
				t.Errorf("%s by %s: over a connection with certificate: %t", s.path, s.user, s.cert)
			}
		}
	})
}

// TestIdentityPlain: the plain port lends no identity.
func TestIdentityPlain(t *testing.T) {
	b := newBed(t, 1)
	b.config.Anonymous = true
	l, err := door.Listen(door.System{}, "--proxy-port", "127.0.0.1", 0)
	check(t, err)
	h, err := New(b.config)
	check(t, err)
	h.plain = l // as --proxy-port does
	b.run(h)
	url := "http://" + l.Addr().String() + "/echo/x"
	for header, want := range map[string]string{"Bearer bob": "bob", "": "system:anonymous"} {
		var headers []string
		if header != "" {
			headers = []string{"Authorization", header}
		}
		_, body := get(t, b.client(nil), url, headers...)
		var e echo
		check(t, json.Unmarshal([]byte(body), &e))
		if e.User != want || e.Cert {
			t.Errorf("arrived as %+v, want %s", e, want)
		}
	}
}

// TestIdentityIsVerifiedAgain: authorities that are replaced, and certificates that expire, count at once and soon.
func TestIdentityIsVerifiedAgain(t *testing.T) {
	old, other := newAuthority(t, "old"), newAuthority(t, "new")
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"ca.crt": old.pem})
	roots, err := new(uplink.Reloader).Bundle("--client-ca-file", dir+"/ca.crt")
	check(t, err)
	now := time.Now()
	id := &access.Identifier{User: "system:node:edge-1", Roots: roots, Now: func() time.Time { return now }}
	leaf := old.tls("system:node:edge-1", "system:nodes")
	req, err := http.NewRequestWithContext(access.WithConn(t.Context(), nil), http.MethodGet, "/", nil)
	check(t, err)
	req.TLS = &tls.ConnectionState{}
	req.TLS.PeerCertificates = append(req.TLS.PeerCertificates, leaf.Leaf)
	if who := id.Identify(req); who.Kind != access.ThisNode {
		t.Fatalf("got %+v", who)
	}
	write(t, dir, map[string][]byte{"ca.crt": other.pem})
	if _, err := roots.Reload(); err != nil {
		t.Fatal(err)
	}
	if who := id.Identify(req); who.Kind != access.Stranger {
		t.Errorf("with another authority: got %+v", who)
	}
	write(t, dir, map[string][]byte{"ca.crt": old.pem})
	if _, err := roots.Reload(); err != nil {
		t.Fatal(err)
	}
	if who := id.Identify(req); who.Kind != access.ThisNode {
		t.Errorf("with the first authority again: got %+v", who)
	}
	now = now.Add(2 * time.Hour)
	if who := id.Identify(req); who.Kind != access.Stranger {
		t.Errorf("expired: got %+v", who)
	}
}
