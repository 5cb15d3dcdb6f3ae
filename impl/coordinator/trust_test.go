package coordinator_test

import (
	"crypto/ecdsa"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// of makes callers of an authority of a pool.
func of(t *testing.T, a *pki.Authority) *authority {
	t.Helper()
	text, err := a.KeyPEM()
	check(t, err)
	key, err := pki.ParseKey(text)
	check(t, err)
	return &authority{t: t, cert: a.Cert(), key: key.(*ecdsa.PrivateKey), pem: a.CertPEM()}
}

// TestTrust: a hub tells the coordinator which authorities are trusted. It follows what they vouch for, at once and
// after a restart, and nothing else. A stream that is open goes on.
func TestTrust(t *testing.T) {
	now := time.Now()
	fresh := func(pool string) *pki.Authority {
		a, err := pki.NewPoolAuthority(pool, now)
		check(t, err)
		return a
	}
	first, next, stranger := fresh("p"), fresh("p"), fresh("p")
	p := newPool(t)
	write(t, p.caFile(), first.CertPEM())
	s := p.start()
	hub := func(by *pki.Authority, node string) *caller {
		c := s.asIssuedBy(of(t, by), contract.NodeUserPrefix+node, contract.HubGroup, contract.PoolGroupPrefix+"p")
		c.pool, c.node = s.pool, node
		return c
	}
	known := func(c *caller) bool {
		code, _, err := c.do(http.MethodGet, leasesPath, "")
		check(t, err)
		return code == http.StatusOK
	}
	var text []byte
	publish := func(succession *pki.Succession) string {
		var err error
		text, err = trust.Publish(text, "p", succession, 0, now)
		check(t, err)
		return string(text)
	}
	a := hub(first, "a")
	if !known(a) || known(hub(next, "b")) {
		t.Fatal("before anything is told")
	}
	open := a.watch(leasesPath + "?watch=1")
	succession := &pki.Succession{Signer: first}
	plan := pki.Plan{Settle: time.Minute, Overlap: time.Hour}
	check(t, succession.Prepare(next, now, plan))
	a.want(http.StatusNoContent, http.MethodPost, contract.TrustPath, publish(succession))
	eventually(t, "the next authority counts", func() bool { return known(hub(next, "b")) })

	evil, err := trust.Publish(nil, "p", &pki.Succession{Signer: stranger}, 0, now.Add(time.Hour))
	check(t, err)
	other, err := trust.Publish(nil, "q", &pki.Succession{Signer: fresh("q")}, 0, now.Add(time.Hour))
	check(t, err)
	for what, text := range map[string]string{
		"nobody's": string(evil), "another pool's": string(other), "half": string(text[:100]),
	} {
		if code, answer, err := a.do(http.MethodPost, contract.TrustPath, text); err != nil || code != http.StatusBadRequest {
			t.Errorf("%s: %d %s %v", what, code, answer, err)
		}
	}
	viewer := s.asIssuedBy(of(t, first), "ann", contract.ViewerGroup, contract.PoolGroupPrefix+"p")
	if code, _, err := viewer.do(http.MethodPost, contract.TrustPath, string(text)); err != nil ||
		code != http.StatusForbidden {
		t.Errorf("a viewer tells whom to trust: %d %v", code, err)
	}
	check(t, succession.Switch(now.Add(plan.Settle)))
	publish(succession)
	check(t, succession.Retire(now.Add(plan.Settle+plan.Overlap)))
	b := hub(next, "b")
	b.want(http.StatusNoContent, http.MethodPost, contract.TrustPath, publish(succession))
	eventually(t, "the one before counts no more", func() bool { return !known(hub(first, "c")) && !known(a) && known(b) })
	if !open.open() {
		t.Error("a stream ended")
	}
	if got := b.want(http.StatusOK, http.MethodGet, "/metrics", ""); strings.Count(got,
		"\nweir_authority_expiry_timestamp_seconds{") != 1 || strings.Contains(got, "\nweir_trust_number 0\n") {
		t.Error("the metrics do not tell")
	}
	if got := b.want(http.StatusOK, http.MethodGet, contract.TrustPath, ""); got != string(text) {
		t.Error("it hands on something else than it was told")
	}
	s.stop()
	s = p.start()
	if known(hub(first, "a")) || !known(hub(next, "b")) {
		t.Error("after a restart")
	}
}
