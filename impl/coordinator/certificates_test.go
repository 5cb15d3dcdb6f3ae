package coordinator_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

// put replaces a file by a key and a certificate, in one step, as the hub of a node does, and returns the serial
// number.
func (a *authority) put(file string, template *x509.Certificate) string {
	a.t.Helper()
	cert, _, certPEM, keyPEM := a.sign(template)
	keep(a.t, file, certPEM, keyPEM)
	return cert.SerialNumber.String()
}

func serving() *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: contract.CoordinatorName}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// shows is the serial number of the certificate that is shown at an address to the one that connects with one.
func shows(address string, with tls.Certificate) string {
	//nolint:gosec // it is the number that counts
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{with}})
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// TestCertificatesDir: a coordinator waits for the certificate that the hub of its node is to get, says so, and shows
// its successor without a restart. A stream goes on.
func TestCertificatesDir(t *testing.T) {
	p := newPool(t)
	file := p.of(pki.Coordinator)
	check(t, os.Remove(file))
	c := p.spawn()
	eventually(t, "it says what it waits for", func() bool {
		return strings.Contains(c.stderr.String(), "waiting for a certificate") && strings.Contains(c.stderr.String(), file)
	})
	first := p.ca.put(file, serving())
	c.healthy()
	hub := c.hub("a")
	if got := shows(c.url.Host, p.hubPair("a")); got != first {
		t.Fatalf("it shows %s, want %s", got, first)
	}
	leases := hub.watch(leasesPath + "?watch=1")
	second := p.ca.put(file, serving())
	eventually(t, "it shows the next one", func() bool { return shows(c.url.Host, p.hubPair("a")) == second })
	before := leases.lines.Load()
	hub.show(leaderRelay(t, 100))
	hub.elect("a_1")
	eventually(t, "the stream goes on", func() bool { return leases.lines.Load() > before })
	if !leases.open() {
		t.Error("the stream ended")
	}
}

// TestCertificatesDirUsage: what is invalid is reported at once, and not waited for.
func TestCertificatesDirUsage(t *testing.T) {
	p := newPool(t)
	check(t, os.Remove(p.of(pki.Coordinator)))
	for _, more := range []string{"--certificates-dir=", "--secure-port=-1"} {
		c := p.spawn(more)
		name, _, _ := strings.Cut(more, "=")
		if code, said := c.ended(), c.stderr.String(); code != 2 || !strings.Contains(said, name) {
			t.Errorf("%s: exit code %d: %s", more, code, said)
		}
	}
}

// TestPeersRenew: replicas show a renewed certificate to each other without a restart, who is connected to and who
// connects.
func TestPeersRenew(t *testing.T) {
	all := trio(t)
	one, two, three := all[0], all[1], all[2]
	one.run()
	two.run()
	one.healthy()
	two.healthy()
	peer := func(r *replica) string {
		for _, f := range r.flags {
			if at, ok := strings.CutPrefix(f, "--initial-cluster="+r.name+"=https://"); ok {
				return at
			}
		}
		t.Fatal("no address")
		return ""
	}
	// The third is nothing but somebody who notes who connects.
	pair, err := tls.LoadX509KeyPair(three.cert, three.cert)
	check(t, err)
	var mu sync.Mutex
	seen := map[string]bool{}
	l, err := tls.Listen("tcp", peer(three), &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12,
		VerifyConnection: func(s tls.ConnectionState) error {
			mu.Lock()
			defer mu.Unlock()
			seen[s.PeerCertificates[0].SerialNumber.String()] = true
			return nil
		},
	})
	check(t, err)
	s := &http.Server{Handler: http.NotFoundHandler()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	defer func() {
		_ = s.Close()
		<-done
	}()
	cert, _, certPEM, keyPEM := one.pool.ca.sign(&x509.Certificate{
		Subject: pkix.Name{
			CommonName: contract.ReplicaUser("p", "1"), Organization: []string{
				contract.ReplicaGroup, contract.PoolGroupPrefix + "p",
			},
		},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth,
		},
	})
	keep(t, one.cert, certPEM, keyPEM)
	serial := cert.SerialNumber.String()
	eventually(t, "who connects to it to be shown the next one", func() bool { return shows(peer(one), pair) == serial })
	eventually(t, "whom it connects to to be shown the next one", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen[serial]
	})
	if code, _, err := one.as("").do(http.MethodGet, "/healthz", ""); err != nil || code != http.StatusOK {
		t.Errorf("it is not healthy: %d, %v", code, err)
	}
}
