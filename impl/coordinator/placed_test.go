package coordinator_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/pki"
)

// placed are the replicas that weir-manager has placed, as it says it.
func placed(all ...*site) directory.Entry {
	e := directory.Entry{Mode: contract.ModeCoordinator}
	for _, s := range all {
		e.Replicas = append(e.Replicas, directory.Replica{Placement: s.placement, Node: s.node, Address: s.address})
	}
	return e
}

// site is a replica that weir-manager has placed on a node.
type site struct {
	*replica
	node, placement string
	address         netip.Addr
}

// place prepares replicas on as many nodes, each with an address of its own, since their ports are always the same.
func place(t *testing.T, first *pool, n int) (all []*site) {
	t.Helper()
	net24 := [3]byte{127, byte(20 + rand.IntN(200)), byte(rand.IntN(256))}
	for i := range n {
		s := &site{
			node: "n" + strconv.Itoa(i+1), placement: fmt.Sprintf("%d-x", i+1),
			address: netip.AddrFrom4([4]byte{net24[0], net24[1], net24[2], byte(i + 1)}),
		}
		dir, p := t.TempDir(), *first
		p.config.DataDir = filepath.Join(dir, "data")
		p.moveCertificates(filepath.Join(dir, "certificates"))
		s.replica = &replica{
			pool: &p, name: contract.ReplicaName(s.node), dir: p.config.DataDir, cert: p.of(pki.Replica),
		}
		s.process = &process{
			server: &server{
				pool: &p, url: &url.URL{
					Scheme: "https", Host: net.JoinHostPort(s.address.String(), strconv.Itoa(contract.CoordinatorPort)),
				},
			},
		}
		hosts := []net.IP{s.address.AsSlice()}
		for _, f := range []struct {
			subject pkix.Name
			uses    []x509.ExtKeyUsage
			file    string
		}{
			{
				pkix.Name{CommonName: "coordinator"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, p.of(pki.Coordinator),
			},
			{
				pkix.Name{
					CommonName:   contract.ReplicaUser("p", s.name),
					Organization: []string{contract.ReplicaGroup, contract.PoolGroupPrefix + "p"},
				},
				[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, s.cert,
			},
		} {
			_, _, cert, key := p.ca.sign(&x509.Certificate{Subject: f.subject, IPAddresses: hosts, ExtKeyUsage: f.uses})
			keep(t, f.file, cert, key)
		}
		all = append(all, s)
	}
	return all
}

// start runs it beside others; none: alone.
func (s *site) start(state string, cluster ...*site) {
	flags := []string{"--bind-address=" + s.address.String(), "--placement=" + s.placement, "--fresh-within=5s"}
	if len(cluster) > 0 {
		flags = append(flags, "--name="+s.name, "--initial-cluster-state="+state, "--initial-cluster-token=p/1")
	}
	for _, o := range cluster {
		flags = append(flags, "--initial-cluster="+o.name+"=https://"+net.JoinHostPort(o.address.String(),
			strconv.Itoa(contract.PeerPort)), "--replica-server="+o.name+"="+o.url.String())
	}
	at := s.url
	s.process = s.pool.spawnAt(at.Port(), flags...)
	s.url = at
}

// TestReplicaPlacedElsewhere: of three replicas one is lost with its machine, and comes to another node: the two others
// hear of it from the hub that leads, take it in at the place of the former one, and none of them is restarted. The
// former one comes back with its disk, and has no part any more. All know each other after a restart.
func TestReplicaPlacedElsewhere(t *testing.T) {
	all := place(t, newPool(t), 4)
	one, two, three, four := all[0], all[1], all[2], all[3]
	first := []*site{one, two, three}
	for _, s := range first {
		s.start("new", first...)
	}
	for _, s := range first {
		s.healthy()
	}
	leader := leaderRelay(t, 100)
	hub := one.hub("a")
	hub.show(leader)
	hub.brings(placed(first...))
	hub.elect("a_1")
	for _, s := range first {
		eventually(t, "replica on "+s.node+" to have what the first is fed",
			func() bool { return s.hub("x").reached() == 100 })
	}

	three.kill()
	four.start("existing", one, two, four)
	// Nobody has told the others of it: it is not taken in.
	eventually(t, "the fourth to wait", func() bool {
		return strings.Contains(four.stderr.String(), "there is no replica")
	})
	hub.brings(placed(one, two, four))
	four.healthy()
	eventually(t, "the fourth to have what the others have", func() bool { return four.hub("x").reached() == 100 })
	put(t, leader, "behind", 101)
	for _, s := range []*site{one, two, four} {
		eventually(t, "replica on "+s.node+" to have what comes", func() bool { return s.hub("x").reached() == 101 })
	}

	three.start("new", first...)
	eventually(t, "the former one to be refused by the others", func() bool {
		return strings.Contains(one.stderr.String()+two.stderr.String()+four.stderr.String(),
			"a connection between replicas is refused") ||
			strings.Contains(three.stderr.String(), "removed")
	})
	former := three.as("")
	former.http.Timeout = 3 * time.Second // one that waits for a majority takes connections and answers nothing
	if code, _, err := former.do(http.MethodGet, "/healthz", ""); err == nil && code == http.StatusOK {
		t.Error("the former replica is healthy")
	}
	three.kill()

	// One of those that stay is lost: the new one makes a majority with the other.
	one.kill()
	uses := two.hub("a")
	uses.shows = hub.shows
	eventually(t, "the leader to write its Lease with one of three away", func() bool {
		code, _, err := two.as("").do(http.MethodGet, "/healthz", "")
		return err == nil && code == http.StatusOK
	})
	uses.elect("a_1")
	// The flags of the second know nothing of the fourth: what it was told does.
	two.kill()
	four.kill()
	two.start("new", first...)
	four.start("existing", one, two, four)
	two.healthy()
	four.healthy()
}

// TestPlacement: the data of another stay on the node is no longer valid, and a coordinator in whose place the pool has
// another one elects nobody: who holds the Lease may renew it.
func TestPlacement(t *testing.T) {
	p := newPool(t)
	p.config.Placement = "1-x"
	s := p.start()
	incarnation := s.viewer().state().Incarnation
	at := &site{node: "n1", placement: "1-x", address: netip.MustParseAddr("127.0.0.1")}
	next := &site{node: "n2", placement: "2-x", address: netip.MustParseAddr("127.0.0.2")}
	hub := s.hub("a")
	hub.show(leaderRelay(t, 100))
	hub.brings(placed(at))
	hub.elect("a_1")
	other := s.hub("b")
	now := func() string {
		l, err := s.hub("b").leases(contract.LeaseNamespace).Get(t.Context(), contract.ElectionLease, metav1.GetOptions{})
		check(t, err)
		return fmt.Sprintf(`"name":"yurthub","uid":%q,"resourceVersion":%q`, l.UID, l.ResourceVersion)
	}
	take := func(c *caller, holder string) (int, string) {
		code, text, err := c.do(http.MethodPut, leasesPath+"/"+contract.ElectionLease, leaseOf(now(), holder, 15))
		check(t, err)
		return code, text
	}
	s.clear()
	if code, text := take(other, "b_1"); code != http.StatusOK {
		t.Fatalf("nobody is elected where the coordinator is: %d %s", code, text)
	}
	s.clear()
	hub.elect("a_1")
	lied, err := json.Marshal(directory.Entry{Pool: "p", Version: 9e18, Replicas: placed(next).Replicas})
	check(t, err)
	if code, text, err := hub.do(http.MethodPost, contract.DirectoryPath, string(lied)); err != nil ||
		code != http.StatusBadRequest {
		t.Errorf("replicas that nobody signed: %d %s %v", code, text, err)
	}
	if code, text := take(hub, "a_1"); code != http.StatusOK {
		t.Errorf("what nobody signed counts: %d %s", code, text)
	}
	hub.brings(placed(next))
	eventually(t, "the coordinator to hear that it is left out", func() bool {
		code, text := take(other, "b_1")
		return code == http.StatusConflict && strings.Contains(text, "another coordinator now")
	})
	if code, text := take(hub, "a_1"); code != http.StatusOK {
		t.Errorf("the leader may not go on until it leaves: %d %s", code, text)
	}
	s.clear()
	if code, text := take(other, "b_1"); code != http.StatusConflict {
		t.Errorf("somebody is elected where the coordinator is no more: %d %s", code, text)
	}

	s.stop()
	s = p.start()
	if s.viewer().state().Incarnation != incarnation {
		t.Error("the same stay begins with other data")
	}
	s.stop()
	p.config.Placement = "3-x"
	s = p.start()
	if s.viewer().state().Incarnation == incarnation {
		t.Error("what was held counts at another stay")
	}
	if names, err := os.ReadDir(p.config.DataDir); err != nil ||
		!slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() == "placement" }) {
		t.Error(names, err)
	}
}
