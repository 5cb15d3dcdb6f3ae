package coordinator_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

// from is somebody of the pool whose certificate lives between two times.
func (s *server) from(begin, end time.Time, user string, groups ...string) *caller {
	s.t.Helper()
	_, _, cert, key := s.ca.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: append(groups, contract.PoolGroupPrefix+"p")}, NotBefore: begin,
		NotAfter:    end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	pair, err := tls.X509KeyPair(cert, key)
	check(s.t, err)
	c := s.hub("none")
	c.http.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	c.config.CertData, c.config.KeyData = cert, key
	c.node = strings.TrimPrefix(user, contract.NodeUserPrefix)
	return c
}

// code is what a request is answered with.
func (c *caller) code(method, path, body string) int {
	c.t.Helper()
	code, _, err := c.do(method, path, body)
	check(c.t, err)
	return code
}

// TestLate: while nothing comes from the cloud, a hub whose certificate has ended reads, and renews the Lease of its
// own node; it does nothing else, and nobody reads what it shows. Hubs that were away for longer, hubs whose
// certificate is revoked, and people do not read either. When a leader shows the cloud, it is nobody.
func TestLate(t *testing.T) {
	p := newPool(t)
	s := p.start()
	now := time.Now()
	const minute = time.Minute
	hub := func(node string, begin, end time.Duration) *caller {
		return s.from(now.Add(begin), now.Add(end), contract.NodeUserPrefix+node, contract.HubGroup)
	}
	late := hub("late", -50*minute, -minute)
	late.want(http.StatusOK, http.MethodGet, leasesPath, "")
	late.want(http.StatusOK, http.MethodGet, contract.StatusPath, "")
	stream := late.watch(leasesPath + "?watch=1")
	if _, err := late.leases(contract.NodeLeaseNamespace).Create(t.Context(), newLease("late", "late"),
		metav1.CreateOptions{}); err != nil {
		t.Errorf("the Lease of its own node: %v", err)
	}
	if _, err := late.leases(contract.NodeLeaseNamespace).Create(t.Context(), newLease("other", "other"),
		metav1.CreateOptions{}); err == nil {
		t.Error("it wrote the Lease of another node")
	}
	led := late.show(leaderRelay(t, 100))
	for _, name := range []string{contract.ElectionLease, contract.InformerSync} {
		if _, err := late.leases(contract.LeaseNamespace).Create(t.Context(), newLease(name, "late_1"),
			metav1.CreateOptions{}); err == nil {
			t.Errorf("it took the Lease %s", name)
		}
	}
	for _, path := range []string{contract.DoubtPath, contract.LinePath} {
		if code := late.code(http.MethodPost, path, "{}"); code != http.StatusForbidden {
			t.Errorf("POST %s: %d", path, code)
		}
	}
	late.want(http.StatusNoContent, http.MethodPost, contract.DenylistPath, s.ca.denies("stolen"))

	for about, c := range map[string]*caller{
		"taken back":  hub("stolen", -50*minute, -minute),
		"a viewer":    s.from(now.Add(-50*minute), now.Add(-minute), "ann", contract.ViewerGroup),
		"an operator": s.from(now.Add(-50*minute), now.Add(-minute), "eve", contract.OperatorGroup),
	} {
		if code := c.code(http.MethodGet, leasesPath, ""); code != http.StatusUnauthorized {
			t.Errorf("%s: %d", about, code)
		}
	}
	if got := s.viewer().want(http.StatusOK, http.MethodGet, "/metrics", ""); strings.Contains(got,
		"\nweir_late_certificates_total 0\n") || !strings.Contains(got, "\nweir_late_certificates_total ") {
		t.Error("the metric does not tell")
	}
	if led.read() {
		t.Error("it is read")
	}

	leader := s.hub("a")
	shows := leader.show(leaderRelay(t, 100))
	leader.elect("a_1")
	eventually(t, "the leader is read", shows.read)
	eventually(t, "it is nobody", func() bool {
		return late.code(http.MethodGet, leasesPath, "") == http.StatusUnauthorized
	})
	eventually(t, "its stream has ended", func() bool { return !stream.open() })
}

// TestLateNotAllowed: a coordinator goes by the allowance that its pool was told of, after a restart too.
func TestLateNotAllowed(t *testing.T) {
	for allowance, want := range map[string]int{"30s": http.StatusUnauthorized, "2h": http.StatusOK} {
		p := newPool(t)
		check(t, os.MkdirAll(p.config.DataDir, 0o700))
		told := `{"entry":{"pool":"p","version":7,"offlineAllowance":"` + allowance + `"},"at":"2026-11-23T12:00:00Z"}`
		check(t, os.WriteFile(filepath.Join(p.config.DataDir, "directory"), []byte(told), 0o600))
		s, now := p.start(), time.Now()
		late := s.from(now.Add(-50*time.Minute), now.Add(-time.Minute), contract.NodeUserPrefix+"late", contract.HubGroup)
		if code := late.code(http.MethodGet, leasesPath, ""); code != want {
			t.Errorf("an allowance of %s: %d, want %d", allowance, code, want)
		}
		s.stop()
	}
}

// TestLateHubIsNotRead: what a hub shows whose certificate has ended is not taken, whoever holds the Lease.
func TestLateHubIsNotRead(t *testing.T) {
	p := newPool(t)
	s := p.start()
	_, _, cert, key := p.ca.sign(&x509.Certificate{
		Subject: pkix.Name{
			CommonName: contract.NodeUserPrefix + "a", Organization: []string{contract.HubGroup, contract.PoolGroupPrefix + "p"},
		},
		NotAfter: time.Now().Add(-time.Minute), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	pair, err := tls.X509KeyPair(cert, key)
	check(t, err)
	leader := s.hub("a")
	shows := leader.show(leaderRelay(t, 100))
	shows.http.TLS.Certificates = []tls.Certificate{pair}
	leader.elect("a_1")
	eventually(t, "its Lease is free, as it cannot be read", func() bool { return s.viewer().holder() == "" })
	if leader.reached() != 0 || shows.read() {
		t.Error("it was read")
	}
}

// otherTime is a clock that runs right and shows another time.
type otherTime struct {
	clock.RealClock
	by time.Duration
}

func (c otherTime) Now() time.Time                  { return time.Now().Add(c.by) }
func (c otherTime) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestClock1970: a machine without a battery clock starts in 1970. Its coordinator judges by the latest time that an
// authority of the pool has vouched for: the begin of its own certificate, or of one that a hub shows, or that which is
// on its disk. A hub that merely says a time changes nothing, since none is asked.
func TestClock1970(t *testing.T) {
	p := newPool(t)
	p.config.Clock = otherTime{by: time.Until(time.Unix(60, 0))}
	kept := filepath.Join(p.config.DataDir, "time")
	reads := func(c *caller) bool { return c.code(http.MethodGet, leasesPath, "") == http.StatusOK }
	now := time.Now()
	s := p.start()
	viewer := func(begin, end time.Duration) *caller {
		return s.from(now.Add(begin), now.Add(end), "ann", contract.ViewerGroup)
	}
	text, err := os.ReadFile(kept)
	check(t, err)
	began, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	check(t, err)
	if now.Sub(began) < 30*time.Minute || now.Sub(began) > 2*time.Hour {
		t.Errorf("it is %s, and on the disk is %s", now.UTC(), began)
	}
	if reads(viewer(-58*time.Minute, -50*time.Minute)) != true {
		t.Error("one that began after this coordinator's does not count")
	}
	if !reads(viewer(-5*time.Minute, time.Hour)) {
		t.Error("the certificate of today does not count")
	}
	if reads(viewer(-58*time.Minute, -50*time.Minute)) {
		t.Error("one counts that ended before another one began")
	}
	stranger := s.asIssuedBy(newAuthority(t), "ann", contract.ViewerGroup, contract.PoolGroupPrefix+"p")
	if reads(stranger) {
		t.Error("a stranger reads")
	}
	s.stop()
	s = p.start()
	if !reads(viewer(-5*time.Minute, time.Hour)) || reads(viewer(-58*time.Minute, -50*time.Minute)) {
		t.Error("a restart has forgotten the time")
	}
	s.stop()
	check(t, os.WriteFile(kept, []byte(now.Add(2*time.Hour).UTC().Format(time.RFC3339)+"\n"), 0o600))
	s = p.start()
	if reads(viewer(-5*time.Minute, time.Hour)) {
		t.Error("one counts that has ended by the time on the disk")
	}
	s.stop()
	check(t, os.WriteFile(kept, []byte("yesterday"), 0o600))
	s = p.start()
	if !reads(viewer(-5*time.Minute, time.Hour)) {
		t.Error("half a file keeps everybody out")
	}
}
