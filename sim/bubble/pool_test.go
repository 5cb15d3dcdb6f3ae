package bubble

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-edge/weir/impl/hub"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/sim/testca"
)

var (
	hubs = flag.Int("hubs", 50, "how many hubs")
	seed = flag.Uint64("seed", 0, "of the schedule; 0: a random one")
)

// node is one hub that runs, and a client of it.
type node struct {
	name   string
	ip     string
	kill   func()
	client *client
}

// TestPool runs a pool of real hubs in fake time: the leader dies, the coordinator is lost for longer than the grace
// period and comes back empty. It promises the same verdict for a seed, not the same schedule.
func TestPool(t *testing.T) {
	number := *seed
	if number == 0 {
		number = rand.Uint64N(1 << 32)
	}
	t.Logf("repeat with: go test ./sim/bubble -run TestPool -hubs %d -seed %d -v", *hubs, number)
	synctest.Test(t, func(t *testing.T) { pool(t, rand.New(rand.NewPCG(number, 0))) })
}

func pool(t *testing.T, rng *rand.Rand) {
	began := time.Now()
	defer time.Sleep(time.Minute) // what was cut off notices; who does not is a leak, and synctest says so
	say := func(format string, args ...any) {
		t.Logf("%8v %s", time.Since(began).Round(time.Millisecond), fmt.Sprintf(format, args...))
	}
	ca, err := testca.NewAuthority("all")
	if err != nil {
		t.Fatal(err)
	}
	n := NewNetwork()
	cloud, stopCloud, err := NewCloud(n, ca)
	if err != nil {
		t.Fatal(err)
	}
	defer stopCloud()
	coordinator, stopCoordinator, err := NewCoordinator(n, ca, 1)
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]*node{}
	var dying sync.WaitGroup
	defer func() {
		dying.Wait()
		for _, x := range nodes {
			x.kill()
		}
		stopCoordinator()
	}()
	for i := range 20 {
		if _, err := cloud.Write(fmt.Sprintf("s%02d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range *hubs {
		x := newNode(t, n, ca, fmt.Sprintf("edge-%03d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250+1))
		nodes[x.name] = x
	}
	write := func() {
		if _, err := cloud.Write(fmt.Sprintf("s%02d", rng.IntN(30))); err != nil {
			t.Fatal(err)
		}
	}
	churn := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); {
			time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
			write()
		}
	}
	// converge waits until every client holds what the cloud does.
	converge := func(what string, limit time.Duration) {
		t.Helper()
		asked := time.Now()
		for {
			late := ""
			for _, x := range nodes {
				if d := cloud.Holds(x.client.snapshot()); d != "" {
					late = x.name + " has " + d
				}
			}
			if late == "" {
				say("%s: all %d clients after %v, %d lists at the cloud", what, len(nodes),
					time.Since(asked).Round(time.Millisecond), cloud.lists.Load())
				return
			}
			if time.Since(asked) > limit {
				t.Fatalf("%s: after %v %s", what, limit, late)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	converge("started", time.Minute)
	churn(10 * time.Second)
	converge("churn", 5*time.Second)
	lists := cloud.lists.Load()
	if lists > 2 {
		t.Errorf("%d lists at the cloud to start a pool", lists)
	}

	leader := coordinator.Leader().Node
	say("the leader %s dies", leader)
	n.Kill(nodes[leader].ip)
	dying.Go(nodes[leader].kill) // its goroutines end, and nobody hears of it
	delete(nodes, leader)
	write()
	converge("leader killed", 5*time.Second)
	churn(5 * time.Second)

	leader = coordinator.Leader().Node
	say("the leader %s is in a black hole", leader)
	hole := nodes[leader]
	delete(nodes, leader)
	for _, other := range []string{"cloud", "coordinator"} {
		n.Cut(hole.ip, other, true)
	}
	write()
	converge("leader black-holed", 10*time.Second)
	churn(20 * time.Second)
	for _, other := range []string{"cloud", "coordinator"} {
		n.Cut(hole.ip, other, false)
	}
	nodes[leader] = hole
	churn(20 * time.Second)
	converge("leader back", 20*time.Second)

	say("the coordinator is lost")
	stopCoordinator()
	n.Reset("coordinator")
	churn(2*grace + 10*time.Second) // hubs go to the cloud over as long again
	converge("coordinator lost", 10*time.Second)
	if coordinator, stopCoordinator, err = NewCoordinator(n, ca, 2); err != nil {
		t.Fatal(err)
	}
	say("it is back, empty")
	churn(30 * time.Second)
	converge("coordinator back", 10*time.Second)
	if leader := coordinator.Leader().Node; nodes[leader] == nil {
		t.Errorf("%q leads", leader)
	}
	if got := cloud.lists.Load(); got != lists {
		t.Errorf("%d lists at the cloud since the start", got-lists)
	}
	for _, x := range nodes {
		if lists, broken := x.client.verdict(); lists != 1 || broken != "" {
			t.Errorf("client of %s: %d lists, %s", x.name, lists, broken)
		}
	}
}

const grace = 30 * time.Second // longer than a relay counts as fresh without its source

func newNode(t *testing.T, n *Network, ca *testca.Authority, name, ip string) *node {
	t.Helper()
	dir := t.TempDir()
	issue := func(file string, k weirpki.Kind, s weirpki.Subject) {
		p, err := ca.IssueTo(k, s, 0)
		if err == nil {
			_, err = testca.WriteBoth(dir, file, p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c := hub.Default()
	c.NodeName, c.NodePoolName, c.DataDir, c.StoreKeyFile = name, "pool", filepath.Join(dir, "data"), hub.NoKey
	c.CloudServers, c.BindAddress, c.HealthBindAddress = []string{"https://cloud:443"}, ip, ip
	c.PoolBindAddress, c.SecurePort, c.PoolPort = ip, 10268, 10269
	c.EnableCoordinator, c.CoordinatorServers = true, []string{"https://coordinator:10270"}
	c.FailoverGracePeriod, c.PoolScopeResources = grace, []string{resource}
	c.Probes = hub.Probes{
		HeartbeatInterval: 10 * time.Second, HeartbeatTimeout: 2 * time.Second, HeartbeatFailedRetry: 3,
		HeartbeatHealthyThreshold: 2,
	}
	c.Net, c.Logger = n.Host(ip), slog.New(slog.DiscardHandler)
	c.EtcDir, c.CloudClientCertFile = dir, filepath.Join(dir, "cloud.pem")
	for _, name := range []string{"cloud-ca.crt", "pool-ca.crt"} {
		if _, err := testca.WriteFile(dir, name, ca.CertPEM()); err != nil {
			t.Fatal(err)
		}
	}
	issue("cloud.pem", weirpki.Kubelet, weirpki.Subject{Node: name})
	issue("serving.pem", weirpki.Door, weirpki.Subject{Hosts: []string{ip}})
	for _, k := range []weirpki.Kind{weirpki.HubAtCloud, weirpki.Hub} {
		p, err := ca.IssueTo(k, weirpki.Subject{Pool: "pool", Node: name}, 0)
		if err == nil {
			err = testca.Keep(filepath.Join(c.DataDir, "pki"), k, p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h, err := hub.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := h.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	x := &node{name: name, ip: ip, client: &client{state: map[string]uint64{}}}
	transport := &http.Transport{
		DialContext:     n.Host("client-" + name).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS13}, ForceAttemptHTTP2: true,
	}
	x.client.http = &http.Client{Transport: transport}
	running.Go(func() {
		x.client.run(ctx, "https://"+ip+":10268")
		transport.CloseIdleConnections()
	})
	x.kill = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	return x
}
