package hub

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// TestLateNotAllowed: a pool that was told of no allowance refuses a coordinator whose certificate has ended, also
// while the cloud is away. Told of another one, the hub goes by that at once.
func TestLateNotAllowed(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	h := p.hubs["edge-1"]
	cert, key, _ := p.local.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "weir-coordinator"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotAfter:    time.Now().Add(-time.Minute),
	})
	var shown atomic.Int64
	p.coordinator.server.TLS.Certificates = nil
	p.coordinator.server.TLS.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		shown.Add(1)
		return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}, nil
	}
	link := p.linked("edge-1")
	told := func(allowance string) {
		t.Helper()
		link.set(false)
		p.clouds[0].tell("pool-a", map[string]string{contract.LeaderHubAllowance: allowance})
		eventually(t, "the hub to hear of an allowance of "+allowance,
			func() bool { return h.hub.directory.Now().Allowance == allowance })
		link.set(true)
		eventually(t, "the cloud to be away", func() bool { return !h.hub.Status().Cloud[0].Healthy })
	}
	p.start("edge-1")
	told("30s")
	before := shown.Load()
	eventually(t, "it to be asked while the cloud is away",
		func() bool { return shown.Load() >= before+3 || h.hub.Status().Coordinator.Healthy })
	if s := h.hub.Status().Coordinator; s.Healthy || !strings.Contains(s.Error, "expired") {
		t.Errorf("the coordinator is %+v", s)
	}
	if _, metrics := get(t, p.client(nil), "http://"+h.hub.HealthAddr().String()+"/metrics"); !strings.Contains(metrics,
		"\nweir_late_certificates_total 0\n") {
		t.Error("it was let count")
	}
	told("24h")
	eventually(t, "the coordinator to be known", func() bool { return h.hub.Status().Coordinator.Healthy })
}

// TestLatePool: while the cloud is away, a hub goes on with a coordinator whose certificate has ended; while the cloud
// is there, it does not begin to.
func TestLatePool(t *testing.T) {
	for _, away := range []bool{true, false} {
		p := newPoolBed(t, "edge-1")
		h := p.hubs["edge-1"]
		cert, key, _ := p.local.sign(&x509.Certificate{
			Subject: pkix.Name{
				CommonName: "weir-coordinator",
			}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			NotAfter: time.Now().Add(-time.Minute),
		})
		p.coordinator.server.TLS.Certificates = []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}
		link := p.linked("edge-1")
		link.set(away)
		p.start("edge-1")
		if away {
			eventually(t, "the coordinator to be known", func() bool { return h.hub.Status().Coordinator.Healthy })
			_, metrics := get(t, p.client(nil), "http://"+h.hub.HealthAddr().String()+"/metrics")
			if !strings.Contains(metrics, "\nweir_late_certificates_total ") ||
				strings.Contains(metrics, "\nweir_late_certificates_total 0\n") {
				t.Error("the metric does not tell")
			}
			continue
		}
		eventually(t, "its certificate to be refused", func() bool {
			s := h.hub.Status()
			return s.Cloud[0].Healthy && strings.Contains(s.Coordinator.Error, "expired")
		})
		resp, _ := get(t, p.client(nil), "http://"+h.hub.HealthAddr().String()+"/healthz")
		if resp.StatusCode != http.StatusOK {
			t.Error(resp.Status)
		}
	}
}
