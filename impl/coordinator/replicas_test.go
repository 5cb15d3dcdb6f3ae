package coordinator_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// replica is one of three processes that are the coordinator of a pool.
type replica struct {
	*process
	name, dir string
	pool      *pool
	flags     []string
	cert      string // file by which other replicas know it
	peer      string // where their etcds meet it
}

// trio prepares three replicas; they do not run yet.
func trio(t testing.TB) []*replica {
	t.Helper()
	return trioOf(t, newPool(t))
}

func trioOf(t testing.TB, first *pool) []*replica {
	t.Helper()
	var shared []string
	names := []string{"1", "2", "3"}
	all := make([]*replica, len(names))
	for i, name := range names {
		dir := t.TempDir()
		p := *first
		p.config.DataDir = filepath.Join(dir, "data")
		p.moveCertificates(filepath.Join(dir, "certificates"))
		api, peer := freePort(t), freePort(t)
		shared = append(shared, "--initial-cluster="+name+"=https://127.0.0.1:"+peer,
			"--replica-server="+name+"=https://127.0.0.1:"+api)
		all[i] = &replica{
			process: &process{server: &server{pool: &p, url: &url.URL{Scheme: "https", Host: "127.0.0.1:" + api}}}, name: name,
			dir: p.config.DataDir, pool: &p,
			cert: p.of(pki.Replica), peer: "127.0.0.1:" + peer,
		}
		all[i].certify(p.ca, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		all[i].flags = []string{"--name=" + name, "--fresh-within=3s"}
	}
	for _, r := range all {
		r.flags = append(r.flags, shared...)
	}
	return all
}

// certify gives a replica another certificate in the place of the one that it has.
func (r *replica) certify(by *authority, begin, end time.Time) {
	r.pool.t.Helper()
	cert, key := r.pair(by, begin, end)
	keep(r.pool.t, r.cert, cert, key)
}

// pair is a certificate of a replica, whoever has it.
func (r *replica) pair(by *authority, begin, end time.Time) (certPEM, keyPEM []byte) {
	_, _, certPEM, keyPEM = by.sign(&x509.Certificate{
		Subject: pkix.Name{
			CommonName: contract.ReplicaUser("p", r.name), Organization: []string{
				contract.ReplicaGroup, contract.PoolGroupPrefix + "p",
			},
		},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth,
		},
		NotBefore: begin, NotAfter: end,
	})
	return certPEM, keyPEM
}

// freePort is a port that no other test takes until this one ends: an abstract unix socket of its name is held.
// Below 32768 the system gives none to an outgoing connection: one could take the port while its owner is down.
func freePort(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(12_000 + rand.IntN(20_000))
		lock, err := net.Listen("unix", "@weir-test-port/"+port)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = lock.Close() })
		if l, err := net.Listen("tcp", ":"+port); err == nil {
			check(t, l.Close())
			return port
		}
	}
	t.Fatal("1000 ports are in use")
	return ""
}

func (r *replica) run() { r.process = r.pool.spawnAt(r.url.Port(), r.flags...) }

func (r *replica) kill() {
	r.t.Helper()
	check(r.t, r.cmd.Process.Kill())
	r.ended()
}

// slices reads what a replica's relay says of EndpointSlices.
func (r *replica) slices() (version uint64, ready bool, feeder, from string) {
	for _, x := range r.viewer().state().Resources {
		if x.Resource == slicesName {
			return x.Version, x.Ready, x.Feeder, x.From
		}
	}
	r.t.Fatal("no EndpointSlices")
	return 0, false, "", ""
}

// watch opens a watch at a replica and returns the names that it shows.
func (r *replica) watch(from string) <-chan string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet,
		"https://"+r.url.Host+slicesPath+"?watch=1&resourceVersion="+from, nil)
	check(r.t, err)
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	resp, err := r.viewer().http.Do(req)
	check(r.t, err)
	if resp.StatusCode != http.StatusOK {
		r.t.Fatal(resp.Status)
	}
	names := make(chan string, 100)
	go func() {
		defer close(names)
		defer resp.Body.Close()
		events := wire.NewEventReader(resp.Body, wire.Protobuf,
			wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"})
		for {
			ev, err := events.Next()
			if err != nil {
				return
			}
			if ev.Object != nil {
				names <- ev.Object.Name
			}
		}
	}()
	return names
}

func (r *replica) wantNext(names <-chan string, want string) {
	r.t.Helper()
	select {
	case got, open := <-names:
		if !open || got != want {
			r.t.Fatalf("the watch at replica %s shows %q (open: %v), want %q", r.name, got, open, want)
		}
	case <-time.After(patience):
		r.t.Fatalf("replica %s does not show %q", r.name, want)
	}
}

// TestReplicas: any of three may die, also the one that is fed, and two; what a replica copies comes from another, and
// is fresh as long as that one is.
func TestReplicas(t *testing.T) {
	all := trio(t)
	for _, r := range all {
		r.run()
	}
	for _, r := range all {
		r.healthy()
	}
	one, two, three := all[0], all[1], all[2]
	leader := leaderRelay(t, 100)
	hub := one.hub("a")
	shows := hub.show(leader)
	term := hub.elect("a_1")
	// uses is what the leader does at the replica that it uses: it renews its Lease.
	uses := func(r *replica) {
		h := r.hub("a")
		h.shows = shows
		h.elect("a_1")
	}
	for _, r := range all {
		if got := r.viewer().state().Incarnation; got != term.Incarnation {
			t.Errorf("replica %s is of the incarnation %s, the first of %s", r.name, got, term.Incarnation)
		}
	}
	for _, r := range all {
		eventually(t, "replica "+r.name+" to have what the first is fed", func() bool { return r.hub("x").reached() == 100 })
	}
	if _, _, feeder, from := one.slices(); feeder != "a" || from != "" {
		t.Errorf("the first is fed by %q and from %q", feeder, from)
	}
	if _, _, feeder, from := three.slices(); feeder != "" || from != "1" || three.viewer().state().Fed != "1" {
		t.Errorf("the third is fed by %q and from %q", feeder, from)
	}
	names := three.watch("100")
	put(t, leader, "before", 101)
	three.wantNext(names, "before")

	// The one that reads the leader dies. The leader goes to another, under its old term, with its Lease.
	one.kill()
	eventually(t, "the second to be healthy", func() bool {
		code, _, err := two.as("").do(http.MethodGet, "/healthz", "")
		return err == nil && code == http.StatusOK
	})
	uses(two)
	put(t, leader, "between", 102)
	three.wantNext(names, "between")
	one.run()
	one.healthy()
	eventually(t, "the first to follow the second", func() bool {
		version, _, _, from := one.slices()
		return version == 102 && from == "2"
	})
	if h := two.viewer().holder(); h != "a_1" {
		t.Errorf("the Lease is held by %q, want the leader that went from one replica to another", h)
	}

	// Two die: what is decided cannot be, what is copied is served.
	one.kill()
	two.kill()
	eventually(t, "the third to know that it is alone", func() bool {
		code, _, err := three.as("").do(http.MethodGet, "/healthz", "")
		return err == nil && code == http.StatusInternalServerError
	})
	if list := three.viewer().want(http.StatusOK, http.MethodGet, slicesPath, ""); !strings.Contains(list, `"between"`) {
		t.Errorf("alone it lists %s", list)
	}
	one.run()
	two.run()
	for _, r := range all {
		r.healthy()
	}
	uses(three)
	put(t, leader, "after", 103)
	three.wantNext(names, "after")
	for _, r := range all {
		eventually(t, "replica "+r.name+" to have all", func() bool { return r.hub("x").reached() == 103 })
	}
}

// TestElectionIsSeenEverywhere: a Lease that was written at one replica fences what another is fed, though nobody
// writes there and nobody feeds elsewhere.
func TestElectionIsSeenEverywhere(t *testing.T) {
	all := trio(t)
	for _, r := range all {
		r.run()
	}
	for _, r := range all {
		r.healthy()
	}
	one, two := all[0], all[1]
	for _, r := range all {
		if leader := r.viewer().state().Leader; leader != "" {
			t.Fatalf("replica %s says that %q leads", r.name, leader)
		}
	}
	hub, old := one.hub("a"), leaderRelay(t, 100)
	shows := hub.show(old)
	hub.elect("a_1")
	for _, r := range all {
		eventually(t, "replica "+r.name+" to know the leader", func() bool { return r.viewer().state().Leader == "a" })
	}
	for _, r := range all {
		eventually(t, "replica "+r.name+" to be fed", func() bool { return r.hub("x").reached() == 100 })
	}
	two.clear()
	two.hub("b").elect("b_1")
	eventually(t, "the deposed leader to be read no more", func() bool { return !shows.read() })
	put(t, old, "late", 101)
	for _, r := range all {
		if v := r.hub("x").reached(); v != 100 {
			t.Errorf("replica %s is at %d", r.name, v)
		}
	}
}

// TestReplicaLosesItsDisk: it is taken in again by the others, and knows what they know.
func TestReplicaLosesItsDisk(t *testing.T) {
	all := trio(t)
	for _, r := range all {
		r.run()
	}
	for _, r := range all {
		r.healthy()
	}
	term := all[0].hub("a").elect("a_1")
	for _, i := range []int{2, 0, 2} {
		r, other := all[i], all[1]
		r.kill()
		check(t, os.RemoveAll(r.dir))
		r.run()
		r.healthy()
		if got := r.viewer().state().Incarnation; got != term.Incarnation {
			t.Errorf("without its disk replica %s is of the incarnation %s, the pool of %s", r.name, got, term.Incarnation)
		}
		if h := r.viewer().holder(); h != "a_1" {
			t.Errorf("replica %s says that %q holds the Lease", r.name, h)
		}
		other.healthy()
	}
}

// TestLeaderGoesElsewhere: a leader that uses another replica now is not dead because the one that it left cannot read
// it.
func TestLeaderGoesElsewhere(t *testing.T) {
	all := trio(t)
	for _, r := range all {
		r.run()
	}
	for _, r := range all {
		r.healthy()
	}
	leader := leaderRelay(t, 100)
	hub := all[0].hub("a")
	hub.show(leader)
	hub.elect("a_1")
	eventually(t, "the first to read it", func() bool { return all[0].hub("x").reached() == 100 })
	for i, r := range all[1:] {
		h := r.hub("a")
		h.show(leader) // at another address
		h.elect("a_1")
		hub.shows.die()
		hub = h
		eventually(t, "replica "+r.name+" to read it", func() bool {
			_, _, feeder, _ := r.slices()
			return feeder == "a"
		})
		put(t, leader, "x", uint64(101+i))
		for _, r := range all {
			eventually(t, "replica "+r.name+" to have all", func() bool { return r.hub("x").reached() == uint64(101+i) })
		}
	}
	if h := all[0].viewer().holder(); h != "a_1" {
		t.Errorf("the Lease is held by %q", h)
	}
}

// TestPeersNeedTheirCertificate: who is no replica is not let into etcd, whoever signed its certificate.
func TestPeersNeedTheirCertificate(t *testing.T) {
	all := trio(t)
	// The second calls itself by a name that the others do not know, with a certificate of the pool's authority.
	honest := all[1].flags
	_, _, cert, key := all[1].pool.ca.sign(&x509.Certificate{
		Subject: pkix.Name{
			CommonName: contract.ReplicaUser("p", "9"), Organization: []string{
				contract.ReplicaGroup, contract.PoolGroupPrefix + "p",
			},
		},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	all[2].flags = append(all[2].flags, "--log-level=debug")
	keep(t, all[1].cert, cert, key)
	all[1].flags = []string{"--name=9"}
	for _, f := range honest[len(all[1].flags):] {
		all[1].flags = append(all[1].flags, strings.Replace(f, "=2=", "=9=", 1))
	}
	all[2].run()
	all[1].run()
	eventually(t, "the third to complain", func() bool {
		return strings.Contains(all[2].stderr.String(), "the certificate is of none of the other replicas")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+all[2].url.Host+"/healthz", nil)
	check(t, err)
	if resp, err := all[2].as("").http.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("they are a majority")
		}
	}
	all[1].kill()
	all[0].run()
	all[0].healthy()
	all[2].healthy()
	_, err = all[0].hub("a").leases(contract.LeaseNamespace).Create(t.Context(), newLease(contract.ElectionLease, "a_1"),
		metav1.CreateOptions{})
	check(t, err)
}
