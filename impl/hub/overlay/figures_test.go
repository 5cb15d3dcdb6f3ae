package overlay

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// uidOf is one as Kubernetes makes them.
func uidOf(node, pod int) string { return fmt.Sprintf("6f9d2c1e-5b7a-4c3d-%04d-%012d", node, pod) }

// manyBed is a pool of which some pods of each node have moved, and Services of ten pods each.
func manyBed(t *testing.T, nodes, moved int) (b *bed, names []string) {
	t.Helper()
	for i := range nodes {
		names = append(names, fmt.Sprintf("edge-%02d", i))
	}
	b = newBed(t, names...)
	var all []*wire.Object
	for s := range nodes * moved / 10 {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: fmt.Sprintf("web-%d", s), ResourceVersion: wire.FormatVersion(1<<21 + uint64(s)),
				Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "controller"},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
		}
		for i := s * 10; i < s*10+10; i++ {
			node, pod := i/moved, i%moved
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{fmt.Sprintf("10.%d.0.%d", node, pod)}, NodeName: &names[node],
				TargetRef: &corev1.ObjectReference{
					Kind: "Pod", Namespace: "shop", Name: fmt.Sprintf("web-%d-%d", node, pod), UID: types.UID(uidOf(node, pod)),
				},
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true)},
			})
		}
		raw, err := slice.Marshal()
		check(t, err)
		o, err := wire.ParseObject(wire.Protobuf, raw)
		check(t, err)
		all = append(all, o)
	}
	for _, h := range b.hubs {
		check(t, h.relay.Replace(1<<22, all))
	}
	b.steps(names...)
	b.steps(names...)
	b.cut(true)
	b.steps(names...)
	b.steps(names...)
	return b, names
}

func (b *bed) moves(names []string, moved int) {
	for node, name := range names {
		for pod := range moved {
			b.hubs[name].statuses[uidOf(node, pod)] = fmt.Sprintf("10.%d.1.%d", node, pod)
		}
	}
}

// TestMemory: a thousand corrections take a hub less than 1 MB, with the slices that it shows so.
func TestMemory(t *testing.T) {
	const nodes, moved, most = 10, 100, 1 << 20 // bytes
	b, names := manyBed(t, nodes, moved)
	b.moves(names, moved)
	b.steps(names[1:]...)
	h := b.hubs[names[0]]
	before := heap()
	b.steps(names[0])
	b.steps(names[0])
	bytes := heap() - before
	if h.set.Len() != nodes*moved || h.objects != nodes*moved/10 {
		t.Fatalf("%d corrections, %d slices are shown otherwise", h.set.Len(), h.objects)
	}
	t.Logf("%d corrections, %d slices: %d kB", h.set.Len(), h.objects, bytes>>10)
	if bytes > most {
		t.Errorf("%d bytes, want %d at most", bytes, most)
	}
	runtime.KeepAlive(b)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestBytes: what a moved pod costs inside a pool of ten nodes, beyond signs of life.
func TestBytes(t *testing.T) {
	const nodes, moved = 10, 10
	const most = 1400 // bytes of bodies for each moved pod: 50 to the desk and to each node, and signatures
	sum := func(moved int) (all int) {
		b, names := manyBed(t, nodes, 10)
		for _, h := range b.hubs {
			h.bytes = 0
		}
		b.moves(names, moved)
		b.passes(10*time.Second, names...)
		for _, h := range b.hubs {
			if h.set.Len() != nodes*moved {
				t.Fatalf("%d corrections", h.set.Len())
			}
			all += h.bytes
		}
		return all
	}
	each := (sum(moved) - sum(0)) / (nodes * moved)
	t.Logf("%d bytes for each moved pod, %d for each node that reads it", each, each/nodes)
	if each > most {
		t.Errorf("%d bytes, want %d at most", each, most)
	}
}
