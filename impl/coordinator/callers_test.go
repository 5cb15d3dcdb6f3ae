package coordinator_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// TestStrangersAreBounded: attack 47. A caller without a certificate may open connections; the oldest of too many ends,
// and hubs are served.
func TestStrangersAreBounded(t *testing.T) {
	s := newPool(t).start()
	hub := s.hub("a")
	hub.elect("a_1") // over a connection that stays open
	const strangers, most = 400, 256
	all := make([]net.Conn, strangers)
	for i := range all {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.url.Host)
		check(t, err)
		defer conn.Close()
		all[i] = conn
	}
	ended := func(c net.Conn) bool {
		check(t, c.SetReadDeadline(time.Now().Add(time.Millisecond)))
		_, err := c.Read(make([]byte, 1))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	count := func() (n int) {
		for _, c := range all {
			if ended(c) {
				n++
			}
		}
		return n
	}
	eventually(t, "the oldest of them to end", func() bool { return count() >= strangers-most })
	if !ended(all[0]) || ended(all[strangers-1]) {
		t.Error("another one ended than the oldest")
	}
	hub.state()
	if h := s.hub("b").holder(); h != "a_1" {
		t.Errorf("a hub that comes now reads %q", h)
	}
}

// TestStreamsEndWithTheCertificate: what a hub opened while its certificate counted does not outlive it.
func TestStreamsEndWithTheCertificate(t *testing.T) {
	p, c := newPool(t), &later{}
	p.config.Clock = c
	s := p.start()
	a := s.hub("a")
	shows := a.show(leaderRelay(t, 100))
	a.elect("a_1")
	eventually(t, "the list", func() bool { return a.reached() == 100 })
	// Those of people: a hub's certificate is valid for longer while nothing comes from the cloud, see TestLate.
	reader := s.viewer()
	long := s.from(time.Now().Add(-time.Hour), time.Now().Add(10*time.Hour), "eve", contract.ViewerGroup)
	streams := map[string]io.ReadCloser{}
	for _, path := range []string{slicesPath + "?watch=1&resourceVersion=100", leasesPath + "?watch=1"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, reader.url.String()+path, nil)
		check(t, err)
		resp, err := reader.http.Do(req)
		check(t, err)
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		streams[path] = resp.Body
	}

	c.pass(59 * time.Minute)
	if h := a.holder(); h != "a_1" {
		t.Fatalf("%q holds the Lease before the end of the certificate", h)
	}
	c.pass(2 * time.Minute) // certificates of these tests last for an hour
	for path, body := range streams {
		_, err := io.Copy(io.Discard, body)
		t.Logf("%s ended: %v", path, err)
	}
	eventually(t, "the leader to be read no more", func() bool { return !shows.read() })
	eventually(t, "the Lease to be free", func() bool {
		c.pass(time.Second)
		return long.holder() == ""
	})
}

// TestPeersOfAnotherPool: attack 49. One authority may sign the certificates of two pools; a replica of one is no
// member of the other's etcd.
func TestPeersOfAnotherPool(t *testing.T) {
	one := trio(t)[0]
	one.run()
	peer := ""
	for _, f := range one.flags {
		if rest, ok := strings.CutPrefix(f, "--initial-cluster=1=https://"); ok {
			peer = rest
		}
	}
	// enters reports whether etcd talks to a replica of a name and a pool.
	enters := func(user, pool string) error {
		certPEM, keyPEM := one.pool.ca.client(user, contract.ReplicaGroup, contract.PoolGroupPrefix+pool)
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		check(t, err)
		roots := x509.NewCertPool()
		roots.AddCert(one.pool.ca.cert)
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+peer+"/members", nil)
		check(t, err)
		resp, err := transport.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	eventually(t, "etcd to talk to a replica of this pool",
		func() bool { return enters(contract.ReplicaUser("p", "2"), "p") == nil })
	for _, user := range []string{
		contract.ReplicaUser("q", "2"), contract.ReplicaUserPrefix + "2", contract.ReplicaUser("p", "9"),
	} {
		if err := enters(user, "q"); err == nil {
			t.Errorf("a certificate of %s is let in", user)
		}
	}
}
