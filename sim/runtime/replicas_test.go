package runtime

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/parts"
)

// witness is one watch through a node's hub that has to stay open.
type witness struct {
	node string

	mu    sync.Mutex
	seen  map[string]bool
	last  uint64
	wrong string
}

func newWitness(t *testing.T, s Site, node string) *witness {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	x := &witness{node: node, seen: map[string]bool{}}
	w, err := clientOf(t, s, node, "kube-proxy").DiscoveryV1().EndpointSlices("").Watch(ctx,
		metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for ev := range w.ResultChan() {
			x.take(ev)
		}
		if ctx.Err() == nil {
			x.fail("the watch ended")
		}
	})
	t.Cleanup(func() { cancel(); w.Stop(); done.Wait() })
	return x
}

func (x *witness) take(ev watch.Event) {
	o, ok := ev.Object.(*discoveryv1.EndpointSlice)
	if !ok {
		x.fail(fmt.Sprintf("%s %v", ev.Type, ev.Object))
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	version, _ := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if version <= x.last && len(x.seen) > 1 {
		x.wrong = fmt.Sprintf("%s %s at %d after %d", ev.Type, o.Name, version, x.last)
	}
	x.last = max(x.last, version)
	x.seen[o.Name] = true
}

func (x *witness) fail(why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wrong = why
}

func (x *witness) has(name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen[name]
}

func (x *witness) check(t *testing.T) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wrong != "" {
		t.Fatalf("the watch on %s: %s", x.node, x.wrong)
	}
}

// trio is a pool with three coordinators, and a witness on each node.
type trio struct {
	t         *testing.T
	site      Site
	admin     kubernetes.Interface
	ids       []PartID
	witnesses []*witness
}

func (x *trio) part(id PartID) Part {
	x.t.Helper()
	p, err := x.site.Part(id)
	if err != nil {
		x.t.Fatal(err)
	}
	return p
}

// fed is the replica that the leader feeds, by the word of any that serves.
func (x *trio) fed() (id PartID) {
	x.t.Helper()
	wait(x.t, "a replica to be fed", func() bool {
		for _, other := range x.ids {
			var st struct {
				Fed   string `json:"fed"`
				Ready bool   `json:"ready"`
			}
			ctx, cancel := context.WithTimeout(x.t.Context(), time.Second) // it may be frozen
			err := x.part(other).Status(ctx, &st)
			cancel()
			if err == nil && st.Ready {
				n, _ := strconv.Atoi(st.Fed)
				id = ReplicaOf("edge", n)
				return true
			}
		}
		return false
	})
	return id
}

// mark writes an object and waits until every witness saw it; it returns how long the last one took.
func (x *trio) mark() time.Duration {
	x.t.Helper()
	began := time.Now()
	name := fmt.Sprintf("marker-%d", began.UnixNano())
	createSlice(x.t, x.admin, name)
	for _, w := range x.witnesses {
		wait(x.t, name+" at "+w.node, func() bool { w.check(x.t); return w.has(name) })
	}
	return time.Since(began)
}

// healed waits until all replicas are ready and all hubs use the pool's cache.
func (x *trio) healed() {
	x.t.Helper()
	wait(x.t, "all to be well again", func() bool {
		for _, id := range x.site.Parts() {
			var st struct {
				Role        string `json:"role"`
				Source      string `json:"source"`
				Ready       bool   `json:"ready"`
				Coordinator struct {
					Ready bool `json:"ready"`
				} `json:"coordinator"`
			}
			if id == APIServer {
				continue
			}
			err := x.part(id).Status(x.t.Context(), &st)
			switch {
			case err != nil,
				id.Kind() == "coordinator" && !st.Ready,
				id.Kind() == "hub" && !st.Coordinator.Ready,
				id.Kind() == "hub" && st.Role != "Leader" && (st.Role != "Follower" || st.Source != "coordinator"):
				return false
			}
		}
		return true
	})
}

// TestReplicas: any of three coordinators may die under churn, also the one that is fed, and then two; every client's
// watch stays open, goes on, and all heals by itself.
func TestReplicas(t *testing.T) {
	t.Parallel()
	pool := Pool{
		Name: "edge", Nodes: 3, Mode: Weir, Unread: true, Coordinators: 3,
		Uplink:   Link{Up: 8_000_000, Down: 8_000_000, RTT: 20 * time.Millisecond},
		LAN:      &Link{RTT: time.Millisecond},
		HubFlags: parts.Flags{"failover-grace-period": "4s"},
	}
	site := up(t, Topology{Pools: []Pool{pool}})
	if err := Start(t.Context(), site, site.Parts()[1:]...); err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(site.Admin())
	if err != nil {
		t.Fatal(err)
	}
	x := &trio{t: t, site: site, admin: admin, ids: pool.CoordinatorIDs()}
	for _, n := range pool.NodeNames() {
		x.witnesses = append(x.witnesses, newWitness(t, site, n))
	}
	x.healed()
	first := x.mark()
	t.Logf("fed is %s; a change takes %v", x.fed(), first.Round(time.Millisecond))

	for _, id := range append([]PartID{x.fed()}, x.ids...) {
		fed := x.fed() == id
		began := time.Now()
		if err := x.part(id).Kill(); err != nil {
			t.Fatal(err)
		}
		took := x.mark()
		t.Logf("%s killed (fed: %v): a change arrived everywhere after %v, now fed: %s", id, fed,
			took.Round(time.Millisecond), x.fed())
		if took > 10*time.Second {
			t.Errorf("%s killed: a change took %v", id, took)
		}
		if err := x.part(id).Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.healed()
		t.Logf("all well %v after the kill", time.Since(began).Round(time.Millisecond))
		x.mark()
	}

	// The one that is fed stands still, with all its connections open.
	frozen := x.fed()
	if err := x.part(frozen).Freeze(); err != nil {
		t.Fatal(err)
	}
	took := x.mark()
	t.Logf("%s frozen: a change arrived everywhere after %v", frozen, took.Round(time.Millisecond))
	if err := x.part(frozen).Thaw(); err != nil {
		t.Fatal(err)
	}
	x.healed()
	x.mark()

	// Two are lost: the third cannot decide anything, the hubs go on with what they have, and then go to the cloud.
	lost := x.ids[1:]
	for _, id := range lost {
		if err := x.part(id).Kill(); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, "all hubs to be Pending", func() bool {
		for _, n := range pool.NodeNames() {
			var st struct {
				Role string `json:"role"`
			}
			if err := x.part(HubOf(n)).Status(t.Context(), &st); err != nil || st.Role != "Pending" {
				return false
			}
		}
		return true
	})
	took = x.mark()
	t.Logf("two lost: a change arrived everywhere after %v", took.Round(time.Millisecond))
	began := time.Now()
	if err := Start(t.Context(), site, lost...); err != nil {
		t.Fatal(err)
	}
	x.healed()
	t.Logf("all well %v after two came back, fed is %s", time.Since(began).Round(time.Millisecond), x.fed())
	x.mark()

	// A machine with a new disk.
	id := x.fed()
	if err := x.part(id).Kill(); err != nil {
		t.Fatal(err)
	}
	if err := x.part(id).LoseDisk(); err != nil {
		t.Fatal(err)
	}
	x.mark()
	if err := x.part(id).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.healed()
	x.mark()
	for _, w := range x.witnesses {
		w.check(t)
	}
}
