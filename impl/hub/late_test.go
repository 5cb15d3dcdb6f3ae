package hub

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestLatePool: while the cloud is away, a hub goes on with a coordinator whose certificate has ended; while the cloud is there, it does not begin to.
func TestLatePool(t *testing.T) {
	for _, away := range []bool{true, false} {
		p := newPoolBed(t, "edge-1")
		h := p.hubs["edge-1"]
		cert, key, _ := p.local.sign(&x509.Certificate{
			Subject: pkix.Name{CommonName: "weir-coordinator"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			NotAfter: time.Now().Add(-time.Minute),
		})
		p.coordinator.server.TLS.Certificates = []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}
		link := p.linked("edge-1")
		link.set(away)
		p.start("edge-1")
		if away {
			eventually(t, "the coordinator to be known", func() bool { return h.hub.Status().Coordinator.Healthy })
			_, metrics := get(t, p.client(nil), "http://"+h.hub.HealthAddr().String()+"/metrics")
			if !strings.Contains(metrics, "\nweir_late_certificates_total ") || strings.Contains(metrics, "\nweir_late_certificates_total 0\n") {
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
