package filter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// world is what the cloud holds, at each version, and what an edge node should see of it: rewritten, on decoded
// objects.
type world struct {
	mu       sync.Mutex
	services map[string]*corev1.Service
	slices   map[string]*discoveryv1.EndpointSlice
	members  map[string]bool
	past     map[uint64]map[string]string // what kube-proxy should see of the resource under test
	latest   uint64
}

func (w *world) expected(res request.Resource) map[string]string {
	out := map[string]string{}
	put := func(key string, o any) {
		b, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		out[key] = string(b)
	}
	if res == services {
		for name, s := range w.services {
			if s.Spec.Type != corev1.ServiceTypeLoadBalancer || s.Annotations[contract.DiscardService] != "true" {
				put("default/"+name, s)
			}
		}
		return out
	}
	for name, s := range w.slices {
		s = s.DeepCopy()
		keys := ""
		if of := w.services[s.Labels[serviceLabel]]; of != nil {
			keys = of.Annotations[contract.TopologyKeys]
		}
		label := s.Labels[contract.TopologyLabel]
		var left []discoveryv1.Endpoint
		for _, e := range s.Endpoints {
			switch {
			case label == "node" || label != "pool" && keys == contract.HostnameTopology:
				if *e.NodeName != "edge-1" {
					continue
				}
			case label == "pool" || keys == contract.PoolTopology:
				if w.members != nil && !w.members[*e.NodeName] {
					continue
				}
			}
			left = append(left, e)
		}
		s.Endpoints = left
		put("default/"+name, s)
	}
	return out
}

// TestProperty: under random changes of objects and of topology, and random cuts, clients have at every version what
// the filter makes of the state.
func TestProperty(t *testing.T) {
	for _, res := range []request.Resource{services, slicesOf} {
		for _, enc := range []wire.Encoding{wire.Protobuf, wire.JSON} {
			for _, streaming := range []bool{false, true} {
				for seed := range uint64(3) {
					t.Run(fmt.Sprintf("%s/%v/streaming=%v/seed=%d", res.Name, enc, streaming, seed), func(t *testing.T) {
						t.Parallel()
						property(t, res, enc, streaming, seed)
					})
				}
			}
		}
	}
}

func property(t *testing.T, res request.Resource, enc wire.Encoding, streaming bool, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	b := newBed(t, everything)
	w := &world{
		services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{},
		past: map[uint64]map[string]string{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	client := b.informer("kube-proxy", res, enc, streaming)
	var wrong string
	synced := false
	client.look = func(version uint64, objects map[string]string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if want, ok := w.past[version]; ok && synced && wrong == "" && !maps.Equal(objects, want) {
			wrong = fmt.Sprintf("at %d it has %v\nwant %v", version, objects, want)
		}
	}
	// another component from which the annotation is learnt.
	teacher := b.informer("coredns", services, wire.Protobuf, false)
	for _, i := range []*informer{client, teacher} {
		running.Go(func() { i.run(ctx) })
	}
	settled := func(what string) {
		t.Helper()
		var have, want map[string]string
		deadline := time.NewTimer(20 * time.Second)
		defer deadline.Stop()
		poll := time.NewTicker(time.Millisecond)
		defer poll.Stop()
		for {
			client.mu.Lock()
			have = maps.Clone(client.objects)
			odd := client.strange
			client.mu.Unlock()
			w.mu.Lock()
			want = w.expected(res)
			bad := wrong
			w.mu.Unlock()
			if bad != "" || len(odd) > 0 {
				t.Fatalf("%s: %s %v", what, bad, odd)
			}
			if maps.Equal(have, want) {
				return
			}
			select {
			case <-poll.C:
			case <-deadline.C:
				t.Fatalf("%s: it has %v\nwant %v", what, have, want)
			}
		}
	}
	// A change of topology shows at a client as fast as the teacher learns it; versions in between have no one right
	// content.
	topology := func(f func()) {
		w.mu.Lock()
		clear(w.past)
		synced = false
		w.mu.Unlock()
		f()
	}
	write := func(typ string, o message) {
		b.put(typ, o)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.latest = b.version
	}
	note := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.past[b.version] = w.expected(res)
		synced = true
	}
	nodes := []string{"edge-1", "edge-2", "edge-3", "cloud-1"}
	object := func() {
		name := fmt.Sprintf("s%d", rnd.IntN(6))
		w.mu.Lock()
		old, oldSlice := w.services[name], w.slices[name+"-x"]
		w.mu.Unlock()
		if res == services {
			s := service(name, func(s *corev1.Service) {
				if rnd.IntN(2) == 0 {
					s.Annotations = map[string]string{contract.DiscardService: "true"}
				}
				if rnd.IntN(4) == 0 {
					s.Spec.Type = "ClusterIP"
				}
				s.Spec.ExternalName = fmt.Sprint(rnd.IntN(1000))
			})
			typ := wire.Added
			if old != nil {
				typ = wire.Modified
				if rnd.IntN(4) == 0 {
					typ = wire.Deleted
					s = old.DeepCopy()
				}
			}
			w.mu.Lock()
			if w.services[name] = s; typ == wire.Deleted {
				delete(w.services, name)
			}
			w.mu.Unlock()
			write(typ, s)
			note()
			return
		}
		var endpoints []string
		for range rnd.IntN(5) {
			endpoints = append(endpoints, nodes[rnd.IntN(len(nodes))])
		}
		label := map[string]string{}
		switch rnd.IntN(4) {
		case 0:
			label[contract.TopologyLabel] = "node"
		case 1:
			label[contract.TopologyLabel] = "pool"
		}
		s := slice(name, label, endpoints...)
		typ := wire.Added
		if oldSlice != nil {
			typ = wire.Modified
			if rnd.IntN(4) == 0 {
				typ = wire.Deleted
				s = oldSlice.DeepCopy()
			}
		}
		w.mu.Lock()
		if w.slices[s.Name] = s; typ == wire.Deleted {
			delete(w.slices, s.Name)
		}
		w.mu.Unlock()
		write(typ, s)
		note()
	}
	for step := range 150 {
		what, told := fmt.Sprintf("step %d", step), false
		switch op := rnd.IntN(10); {
		case op < 5:
			for range 1 + rnd.IntN(5) {
				object()
			}
		case op == 5 && res == slicesOf: // a node changes its pool
			topology(func() {
				var in []string
				m := map[string]bool{"edge-1": true}
				for _, n := range nodes[1:] {
					if rnd.IntN(2) == 0 {
						in = append(in, n)
						m[n] = true
					}
				}
				w.mu.Lock()
				w.members = m
				w.mu.Unlock()
				b.setMembers(in)
			})
			told, what = true, what+": members"
		case op == 6 && res == slicesOf: // a Service changes its topology
			topology(func() {
				name := fmt.Sprintf("s%d", rnd.IntN(6))
				s := service(name, func(s *corev1.Service) {
					keys := []string{"", contract.HostnameTopology, contract.PoolTopology}[rnd.IntN(3)]
					s.Annotations = map[string]string{contract.TopologyKeys: keys}
				})
				w.mu.Lock()
				typ := wire.Added
				if w.services[name] != nil {
					typ = wire.Modified
				}
				w.services[name] = s
				w.mu.Unlock()
				write(typ, s)
				eventually(t, "the topology to be learnt", func() bool {
					return b.now().services["default/"+name] == scopeOf(s.Annotations[contract.TopologyKeys])
				})
			})
			told, what = true, what+": a Service"
		case op == 7: // cut now
			client.mu.Lock()
			if client.cut != nil {
				client.cut()
			}
			client.mu.Unlock()
			what += ": cut"
		case op == 8: // cut after some events, also in the middle of what the filter says itself
			client.mu.Lock()
			client.cutAfter = rnd.IntN(4)
			client.mu.Unlock()
			what += ": cuts"
		default:
			client.mu.Lock()
			client.cutAfter = 0
			client.mu.Unlock()
		}
		if told || rnd.IntN(3) > 0 {
			settled(what)
		}
	}
	settled("at the end")
	client.mu.Lock()
	defer client.mu.Unlock()
	t.Logf("%d watches, %d ended with an error", client.resumed, client.expired)
}
