package hub

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/hub/uplink"
)

// TestAttemptsWithoutCloud: what others have read, and what a token may do elsewhere, is nobody's without the cloud;
// and nobody but the node writes. Beside each refusal stands who gets it.
func TestAttemptsWithoutCloud(t *testing.T) {
	b, link := offlineBed(t)
	cloud := b.clouds[0]
	cloud.put("default", "web")
	cloud.put("other", "hidden")
	cloud.node = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "uid", ResourceVersion: "100"}}
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node, client := b.client(&cert), b.client(nil)
	b.start()
	b.here()
	const part, all, hidden = "/api/v1/namespaces/default/endpoints", "/api/v1/endpoints",
		"/api/v1/namespaces/other/endpoints/hidden"
	for _, path := range []string{all, hidden, "/api/v1/nodes/edge-1"} {
		get(t, node, b.url()+path)
	}
	get(t, client, b.url()+part, alice...)
	b.kept(3)
	link.set(true)
	b.away()
	reads := []struct {
		who  *http.Client
		as   []string
		path string
		code int
	}{
		{node, nil, hidden, 200}, {client, alice, hidden, 503},
		{node, nil, all, 200}, {client, alice, all, 503}, {client, alice, part, 200},
		{client, alice, all + "?watch=1", 503},
		{client, alice, "/api/v1/namespaces/other/endpoints", 503},
		{client, alice, all + "?fieldSelector=metadata.namespace%3Dother", 503},
		{client, alice, part + "/../../other/endpoints", 503},
		// nobody has asked for that, so there is no answer.
		{client, alice, part + "?fieldSelector=metadata.namespace%3Dother", 503},
		{client, alice, part + "/web/status", 503},
		{client, append(slices.Clone(alice), "Impersonate-User", "system:node:edge-1"), hidden, 503},
	}
	for _, r := range reads {
		if resp, body := get(t, r.who, b.url()+r.path, r.as...); resp.StatusCode != r.code ||
			strings.Contains(body, "hidden\"") && r.code != 200 {
			t.Errorf("%v GET %s: %s, want %d: %s", r.as, r.path, resp.Status, r.code, body)
		}
	}
	const merge = "application/strategic-merge-patch+json"
	for _, w := range []struct {
		method, path, body string
		node               int // what the node gets
	}{
		{http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/web/token", `{"spec":{}}`, 503},
		{
			http.MethodPost, "/api/v1/namespaces/default/events",
			`{"metadata":{"name":"e","namespace":"default"},"involvedObject":{"namespace":"default"}}`, 201,
		},
		{http.MethodPatch, "/api/v1/nodes/edge-1/status", `{"status":{"nodeInfo":{"kernelVersion":"6.1"}}}`, 200},
		{http.MethodPatch, "/api/v1/nodes/edge-2/status", `{"status":{"nodeInfo":{"kernelVersion":"6.1"}}}`, 503},
	} {
		media := "application/json"
		if w.method == http.MethodPatch {
			media = merge
		}
		before := b.hub.store.Queue().Len()
		for name, as := range map[string][]string{
			"a token": alice, "a token in the node's name": append(slices.Clone(alice), "Impersonate-User",
				"system:node:edge-1"),
		} {
			if resp, _ := do(t, client, w.method, b.url()+w.path, []byte(w.body),
				append(as, "Content-Type", media)...); resp.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%s: %s %s: %s", name, w.method, w.path, resp.Status)
			}
		}
		if n := b.hub.store.Queue().Len(); n != before {
			t.Errorf("%s %s by a token waits for the cloud", w.method, w.path)
		}
		if resp, body := do(t, node, w.method, b.url()+w.path, []byte(w.body), "Content-Type", media); resp.StatusCode !=
			w.node && (w.node != 503 || resp.StatusCode != http.StatusForbidden) {
			t.Errorf("the node: %s %s: %s, want %d: %s", w.method, w.path, resp.Status, w.node, body)
		}
	}
}

// TestAttemptsOnTheWire: forms of HTTP by which a request could become another one, or another's.
func TestAttemptsOnTheWire(t *testing.T) {
	b, _ := offlineBed(t)
	cloud := b.clouds[0]
	b.start()
	b.here()
	b.fed()
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	protocol := uplink.WebSocketToken + base64.RawURLEncoding.EncodeToString([]byte("alice"))
	if resp, body := get(t, b.client(&cert), b.url()+slicesPath+"?watch=1&timeoutSeconds=1", "Sec-Websocket-Protocol",
		protocol); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token of a WebSocket that is none, beside the node's certificate: %s %s", resp.Status, body)
	}
	if resp, _ := get(t, b.client(&cert), b.url()+slicesPath); resp.StatusCode != http.StatusOK {
		t.Errorf("the node itself: %s", resp.Status)
	}
	if n := b.hub.door.Authorizer.Size(); n != 1 {
		t.Errorf("%d verdicts are remembered", n)
	}
	smuggled := "GET /echo/smuggled HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer alice\r\n\r\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)
	for name, raw := range map[string]string{
		"two lengths": "POST /echo/x HTTP/1.1\r\nHost: hub\r\n%sContent-Length: 5\r\nContent-Length: 60\r\n\r\n" +
			smuggled,
		"a length and chunks": "POST /echo/x HTTP/1.1\r\nHost: hub\r\n%sContent-Length: 5\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n" + chunk,
		"chunks that are none": "POST /echo/x HTTP/1.1\r\nHost: hub\r\n%sContent-Length: 5\r\nTransfer-Encoding: " +
			"xchunked\r\n\r\n" + smuggled,
		"chunks twice": "POST /echo/x HTTP/1.1\r\nHost: hub\r\n%sTransfer-Encoding: chunked\r\n" +
			"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled,
		"a header with a newline": "POST /echo/x HTTP/1.1\r\nHost: hub\r\n%sX: a\n b\r\n : c\r\nContent-Length: 0\r\n\r\n",
		"an upgrade to HTTP/2": "GET " + slicesPath +
			" HTTP/1.1\r\nHost: hub\r\n%sConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: " +
			"AAMAAABkAAQAAP__\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", b.hub.Addr().String(), &tls.Config{RootCAs: b.local.pool()})
			check(t, err)
			defer conn.Close()
			fmt.Fprintf(conn, raw, "Authorization: Bearer alice\r\n")
			check(t, conn.CloseWrite())
			all, err := io.ReadAll(conn)
			check(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(all))), nil)
			check(t, err)
			defer resp.Body.Close()
			if resp.StatusCode == http.StatusSwitchingProtocols {
				t.Error(resp.Status)
			}
		})
	}
	cloud.set(func() {
		for _, s := range cloud.seen {
			if strings.Contains(s.path, "smuggled") {
				t.Errorf("%s arrived, by %s", s.path, s.user)
			}
		}
	})
}

// TestLogWithoutCloud: ten thousand reads that are refused are no ten thousand lines, whatever their senders call
// themselves.
func TestLogWithoutCloud(t *testing.T) {
	b, link := offlineBed(t)
	b.clouds[0].put("default", "web")
	b.config.CallerRate = 10_000
	b.start()
	b.here()
	client := b.client(nil)
	b.list(client, "", alice...)
	b.kept(1)
	link.set(true)
	b.away()
	before := strings.Count(b.log.String(), "level=WARN")
	for i := range 2000 {
		as := append(slices.Clone(alice), "User-Agent", fmt.Sprint("agent-", i))
		get(t, client, b.url()+fmt.Sprintf("/api/v1/namespaces/default/secrets/s-%d", i), as...)
	}
	after := b.log.String()
	if n := strings.Count(after, "level=WARN") + strings.Count(after, "level=INFO") - before; n > 100 {
		t.Errorf("%d lines", n)
	}
}
