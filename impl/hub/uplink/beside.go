package uplink

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/member"
)

// Beside makes a way to a server beside the cloud that feeds relays, over one connection. That is judged by authorities
// of its own, and by the cloud's time. Its bytes are those of class pool. leads: this hub may feed a pool.
func (k *Cloud) Beside(dials Dials, roots *x509.CertPool, cert Certificate, leads bool) *Transport {
	return NewTransport(func() *http.Transport { // each has a dialer of its own
		config := TransportConfig{
			Dialer:   k.beside(ClassPool, dials, roots, cert, "h2"),
			IdlePing: 15 * time.Second, PingTimeout: 5 * time.Second, window: poolWindow, idle: poolIdle,
		}
		if leads {
			config.IdlePing = member.Silent / 2
		}
		return config.Build()
	})
}

// Into makes what dials such a server for connections by which the cloud reaches into the pool.
func (k *Cloud) Into(dials Dials, roots *x509.CertPool, cert Certificate) *Dialer {
	return k.beside(ClassReach, dials, roots, cert, "http/1.1")
}

func (k *Cloud) beside(class Class, dials Dials, roots *x509.CertPool, cert Certificate, protocol string) *Dialer {
	return &Dialer{
		Net: dials, Proxy: k.through(), Meter: k.meters[class], TLS: &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
			CurvePreferences:     []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384},
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return Held(cert) },
		},
		Verify: func(host string, chain []*x509.Certificate) error {
			return k.time.Verify(chain, x509.VerifyOptions{
				Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			})
		},
	}
}

// IsLate reports whether even the answer to a ping over the streams of relays is late.
func (k *Cloud) IsLate() bool { return k.late.Load() }
