package hub

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/hub/uplink"
)

// TestReload: certificates that are replaced on disk are used for new connections, in both directions; what cannot be
// read leaves the last good ones in use.
func TestReload(t *testing.T) {
	b := newBed(t, 1)
	h, err := New(b.config)
	check(t, err)
	clock := clocktesting.NewFakeClock(time.Now())
	h.reload.Clock = clock
	b.run(h)
	node := b.ca.tls("system:node:edge-1", "system:nodes")
	serial := func() string {
		conn, err := tls.Dial("tcp", h.Addr().String(), &tls.Config{RootCAs: b.local.pool()})
		check(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	arrives := func() (user string, code int) {
		client := b.client(&node)
		defer client.CloseIdleConnections()
		resp, body := get(t, client, b.url()+"/echo/x")
		var e echo
		_ = json.Unmarshal([]byte(body), &e)
		return e.User, resp.StatusCode
	}
	step := func() {
		eventually(t, "the reloader to wait", clock.HasWaiters)
		clock.Step(time.Minute)
	}
	before := serial()
	if user, _ := arrives(); user != "system:node:edge-1" {
		t.Fatalf("arrives as %s", user)
	}

	write(t, b.dir, map[string][]byte{servingPair: []byte("half of a file")})
	step()
	eventually(t, "a warning", func() bool { return strings.Contains(b.log.String(), "the last good ones stay in use") })
	if serial() != before {
		t.Error("another certificate is served")
	}

	// The hub becomes another user at the cloud: unheard of, but it shows which certificate is used.
	b.credentials("edge-9")
	step()
	eventually(t, "the new serving certificate", func() bool { return serial() != before })
	eventually(t, "the new certificate at the cloud", func() bool {
		user, _ := arrives()
		return user == "system:node:edge-9"
	})

	// Another authority for callers: the kubelet's certificate is no longer valid.
	other := newAuthority(t, "other")
	write(t, b.dir, map[string][]byte{"cloud-ca.crt": append(other.pem, b.ca.pem...)})
	step()
	if _, code := arrives(); code != http.StatusOK {
		t.Errorf("with both authorities: %d", code)
	}
	clientCA, err := new(uplink.Reloader).Bundle("--client-ca-file", filepath.Join(b.dir, "cloud-ca.crt"))
	check(t, err)
	if clientCA.Get().Equal(b.ca.pool()) {
		t.Error("the bundle was not read again")
	}
}
