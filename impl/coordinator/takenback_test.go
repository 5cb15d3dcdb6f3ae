package coordinator_test

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// denies is a signed list by which certificates of nodes that were issued until now are revoked.
func (a *authority) denies(nodes ...string) string {
	a.t.Helper()
	var entries []trust.Denial
	for _, n := range nodes {
		entries = append(entries, trust.Denial{Node: n, Before: time.Now().UTC().Truncate(time.Second)})
	}
	l, _ := trust.Denylist{Pool: "p"}.Next(time.Now(), entries...)
	text, err := l.Sign(a.signs())
	check(a.t, err)
	return string(text)
}

// signs is the authority as weir-manager has it.
func (a *authority) signs() *pki.Authority {
	a.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	check(a.t, err)
	by, err := pki.LoadAuthority(a.pem, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	check(a.t, err)
	return by
}

// brings hands over what the pool is told, as the pool's authority signs it, with the number of now.
func (c *caller) brings(e directory.Entry) {
	c.t.Helper()
	e.Pool, e.Version = "p", bulletin.Next(0, time.Now())
	text, err := e.Sign(c.pool.ca.signs())
	check(c.t, err)
	c.want(http.StatusNoContent, http.MethodPost, contract.DirectoryPath, string(text))
}

// stream is a watch that is open, what came over it, and whether it has ended.
type stream struct {
	lines atomic.Int32
	ended chan struct{}
}

func (c *caller) watch(path string) *stream {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url.String()+path, nil)
	check(c.t, err)
	resp, err := c.http.Do(req)
	check(c.t, err)
	if resp.StatusCode != http.StatusOK {
		c.t.Fatal(resp.Status)
	}
	s := &stream{ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		defer resp.Body.Close()
		in := bufio.NewReader(resp.Body)
		for {
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			s.lines.Add(1)
		}
	}()
	return s
}

func (s *stream) open() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// TestTakenBack: a leader whose certificate is revoked loses what it has open, its Lease, and that it is read; after a
// restart too. The hub beside it leads, and its stream goes on.
func TestTakenBack(t *testing.T) {
	p := newPool(t)
	s := p.start()
	stolen, beside, back := s.hub("a"), s.hub("b"), s.hub("c")
	source := leaderRelay(t, 100)
	led := stolen.show(source)
	stolen.elect("a_1")
	eventually(t, "the leader is read", func() bool { return led.read() && beside.state().Resources[1].Synced })
	const changes = slicesPath + "?watch=1&resourceVersion=100&allowWatchBookmarks=true"
	hers, his := stolen.watch(changes), beside.watch(changes)
	leases := stolen.watch(leasesPath + "?watch=1")

	for about, text := range map[string]string{
		"forged": newAuthority(t).denies("b"), "of nobody": `{"list":{"pool":"p"}}`,
	} {
		if code, answer, err := beside.do(http.MethodPost, contract.DenylistPath, text); err != nil ||
			code != http.StatusBadRequest {
			t.Errorf("%s: %d %s %v", about, code, answer, err)
		}
	}
	beside.want(http.StatusNoContent, http.MethodPost, contract.DenylistPath, s.ca.denies("a"))
	eventually(t, "what the leader had open has ended, and nobody reads it",
		func() bool { return !hers.open() && !leases.open() && !led.read() })
	for _, path := range []string{
		slicesPath, leasesPath, contract.StatusPath, contract.DenylistPath, contract.DocumentsPath + "?path=/version",
		"/metrics",
	} {
		if code, answer, err := stolen.do(http.MethodGet, path, ""); err != nil || code != http.StatusUnauthorized {
			t.Errorf("it reads %s: %d %.80s %v", path, code, answer, err)
		}
		if code, _, err := beside.do(http.MethodGet, path, ""); err != nil || code == http.StatusUnauthorized {
			t.Errorf("the hub beside it reads %s: %d %v", path, code, err)
		}
	}
	eventually(t, "its Lease is free", func() bool { return beside.holder() == "" })
	if _, err := stolen.leases(contract.LeaseNamespace).Update(t.Context(), newLease(contract.ElectionLease, "a_1"),
		metav1.UpdateOptions{}); err == nil {
		t.Error("it leads again")
	}
	next := leaderRelay(t, 100)
	read := beside.show(next)
	beside.elect("b_1")
	eventually(t, "the next leader is read", read.read)
	before := his.lines.Load()
	put(t, next, "two", 101)
	eventually(t, "the stream of the hub beside it goes on", func() bool { return his.lines.Load() > before })
	if !his.open() {
		t.Error("the stream of the hub beside it ended")
	}
	if got := beside.want(http.StatusOK, http.MethodGet, "/metrics", ""); !strings.Contains(
		got, "\nweir_denylist_entries 1\n") || strings.Contains(got, "\nweir_denied_total 0\n") {
		t.Error("the metrics do not tell")
	}

	s.stop()
	s = p.start()
	if code, _, err := (&caller{t: t, url: s.url, http: stolen.http}).do(http.MethodGet, leasesPath, ""); err != nil ||
		code != http.StatusUnauthorized {
		t.Errorf("after a restart: %d %v", code, err)
	}
	(&caller{t: t, url: s.url, http: back.http}).want(http.StatusOK, http.MethodGet, leasesPath, "")
}

// TestLineTakenBack: the connection of a hub that nobody can connect to ends with its certificate, also while it only
// waits.
func TestLineTakenBack(t *testing.T) {
	s := newPool(t).start()
	hub, beside := s.hub("a"), s.hub("b")
	source := leaderRelay(t, 100)
	led := s.showBack("a", source)
	hub.electAt("a_1", contract.PoolAddressReverse)
	eventually(t, "the leader is read", led.read)
	beside.want(http.StatusNoContent, http.MethodPost, contract.DenylistPath, s.ca.denies("a"))
	eventually(t, "nobody reads it, and its Lease is free", func() bool { return !led.read() && beside.holder() == "" })
}
