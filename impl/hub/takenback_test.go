package hub

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/impl/trust"
)

// TestTakenBack: a hub whose certificate is revoked does not come in at the pool door, nor does such a coordinator, and
// what each has open ends. Others stay.
func TestTakenBack(t *testing.T) {
	now := time.Now()
	authority, err := pki.NewPoolAuthority("harbour", now)
	check(t, err)
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"ca.crt": authority.CertPEM()})
	roots, err := new(uplink.Reloader).Bundle("", filepath.Join(dir, "ca.crt"))
	check(t, err)
	held := trust.NewDenylist(trust.DenylistConfig{
		Pool: "harbour", Trusted: roots.List, Logger: slog.New(slog.DiscardHandler),
	})
	at := &url.URL{Scheme: "https", Host: "127.0.0.1:10270"}
	d := harbourDoor(pooldoor.Config{
		Coordinators: func() []*url.URL { return []*url.URL{at} }, Roots: roots, Denied: held,
		Late: judges(clock.RealClock{}, held.Refuse),
	})
	waits := make(chan struct{}, 3)
	d.HandleFunc("/wait", func(_ http.ResponseWriter, req *http.Request) {
		waits <- struct{}{}
		<-req.Context().Done()
	})
	of := func(k pki.Kind, node string) []*x509.Certificate {
		pair, err := authority.Grant(pki.Must(k), pki.Subject{Pool: "harbour", Node: node, Hosts: []string{"127.0.0.1"}}, now,
			time.Hour)
		check(t, err)
		chain, err := pki.ParseCertificates(pair.CertPEM)
		check(t, err)
		return chain
	}
	stolen, beside, coordinator := of(pki.Hub, "edge-2"), of(pki.Hub, "edge-3"), of(pki.Coordinator, "")
	comesIn := func(chain []*x509.Certificate) bool {
		return d.TLS().VerifyConnection(tls.ConnectionState{PeerCertificates: chain}) == nil
	}
	ask := func(chain []*x509.Certificate, path string) int {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		req.TLS = &tls.ConnectionState{PeerCertificates: chain}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, req)
		return w.Code
	}
	open := func(chain []*x509.Certificate) chan struct{} {
		over := make(chan struct{})
		go func() {
			defer close(over)
			ask(chain, "/wait")
		}()
		testkit.Value(t, time.Minute, "it is open", waits)
		return over
	}
	hers, his, its := open(stolen), open(beside), open(coordinator)
	list := trust.Denylist{Pool: "harbour"}
	take := func(e trust.Denial) {
		t.Helper()
		e.Before = time.Now().UTC().Truncate(time.Second)
		list, _ = list.Next(time.Now(), e)
		text, err := list.Sign(authority)
		check(t, err)
		_, err = held.Take(text)
		check(t, err)
	}
	take(trust.Denial{Node: "edge-2"})
	testkit.Value(t, time.Minute, "what the stolen one has open ends", hers)
	if comesIn(stolen) || ask(stolen, contract.StatusPath) != http.StatusForbidden {
		t.Error("the stolen one comes in")
	}
	if !comesIn(beside) || !comesIn(coordinator) || ask(beside, contract.StatusPath) != http.StatusOK ||
		ask(coordinator, contract.StatusPath) != http.StatusOK {
		t.Error("others do not come in")
	}
	take(trust.Denial{Node: "edge-4", Replica: "one", Hosts: []string{"127.0.0.1"}})
	testkit.Value(t, time.Minute, "what the coordinator has open ends", its)
	if comesIn(coordinator) || ask(coordinator, contract.PulsePath) != http.StatusForbidden {
		t.Error("the coordinator of the deleted node comes in")
	}
	select {
	case <-his:
		t.Error("the stream of another ended")
	default:
	}
	take(trust.Denial{Node: "edge-3"})
	testkit.Value(t, time.Minute, "its stream ends too", his)
}
