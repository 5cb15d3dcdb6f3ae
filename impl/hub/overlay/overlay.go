package overlay

import (
	"iter"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Resources that are read or shown.
const (
	slicesOf  = "endpointslices.v1.discovery.k8s.io"
	endpoints = "endpoints.v1."
	pods      = "pods.v1."
	services  = "services.v1."
)

// Overlay is that of a hub. A nil one lays nothing over.
type Overlay struct {
	Config
	began   time.Time
	poke    chan struct{}
	quiet   *limit.Quiet
	metrics *metrics
	speaker speaker
	outage  outage
	laying  atomic.Bool  // something is corrected
	held    *uplink.Link // away: clients of the store stay with it, though the cloud is there

	mu      sync.Mutex
	file    file
	set     moved.Set
	nodes   map[string]peer   // of the pool, as far as is known
	shown   map[string]*shown // by resource
	number  uint64            // of what the set shows
	objects int               // that it shows otherwise than the cloud
	pods    int               // that it corrected
	freed   bool              // the cloud is there, and a correction has ended
	changed chan struct{}     // closed when that has another number
}

// peer is another node of the pool, or this one.
type peer struct {
	chain [][]byte      // of its hub; nil: not known
	heard time.Duration // last, since the hub began
}

// New brings back what was kept, and notes what this boot of the machine has ended. It starts nothing.
func New(c Config) *Overlay {
	o := &Overlay{
		Config: c, began: c.Clock.Now(), poke: make(chan struct{}, 1), quiet: limit.NewQuiet(c.Clock, c.Logger),
		nodes: map[string]peer{}, shown: map[string]*shown{}, changed: make(chan struct{}),
	}
	o.file = open(filepath.Join(c.Dir, fileName), o.quiet)
	for _, node := range append(o.file.kept.Nodes, c.Node) {
		o.nodes[node] = peer{}
	}
	o.members()
	o.boots()
	counts := func(of func() int) func() float64 {
		return func() float64 {
			o.mu.Lock()
			defer o.mu.Unlock()
			return float64(of())
		}
	}
	o.metrics = newMetrics(counts(func() int { return o.set.Len() }), counts(func() int { return o.objects }))
	o.held = uplink.NewLink(func() bool { return !o.laying.Load() || o.freed })
	o.speaker = newSpeaker(c, &o.file, &o.mu)
	o.shown[slicesOf] = newShown(o.set.SliceForm(wire.Protobuf, o.publishes), o.file.kept.Owed[slicesOf])
	o.shown[endpoints] = newShown(o.set.EndpointsForm(wire.Protobuf, o.publishes), o.file.kept.Owed[endpoints])
	o.shown[pods] = newShown(o.set.PodForm(), o.file.kept.Owed[pods])
	return o
}

// boots notes which boot of the machine it is, and which pods it has ended. The kubelet has not said anything since.
func (o *Overlay) boots() {
	was := o.file.kept.Boot
	if was == o.Boot {
		return
	}
	o.file.kept.Boot = o.Boot
	o.file.write()
	if was == "" || o.Boot == "" {
		return
	}
	o.outage.rebooted = map[types.UID]*corev1.PodStatus{}
	for pod := range o.Pods {
		o.outage.rebooted[pod.UID] = nil
	}
	for pod, status := range o.Statuses {
		o.outage.rebooted[pod.UID] = status
	}
}

// Collectors are the metrics.
func (o *Overlay) Collectors() []prometheus.Collector {
	if o == nil {
		return nil
	}
	return []prometheus.Collector{o.metrics.statements, o.metrics.pods, o.metrics.objects}
}

// Look says that a status waits, or that the cloud may be away or back. It never blocks.
func (o *Overlay) Look() {
	if o == nil {
		return
	}
	select {
	case o.poke <- struct{}{}:
	default:
	}
}

// members tells the set which nodes there are. mu is held, or nobody else is there.
func (o *Overlay) members() {
	names := make([]string, 0, len(o.nodes))
	for node := range o.nodes {
		names = append(names, node)
	}
	if err := o.set.Members(names); err != nil { // which the bound of nodes forbids
		o.Logger.Error("the nodes of the pool are not known", "err", err)
	}
}

// now is the monotonic time of the set.
func (o *Overlay) now() time.Duration { return o.Clock.Since(o.began) }

// publish shows clients what the set says now. Before that it is noted, in one write, which objects they are shown
// corrected. mu is held.
func (o *Overlay) publish() {
	o.objects = 0
	for name, s := range o.shown {
		clear(s.forms)
		if r := o.Relay(name); r != nil && !o.set.Idle() {
			for x := range r.Objects() {
				if s.view.Show(x) != x {
					o.objects++
				}
			}
		}
	}
	o.keep()
	o.number++
	o.laying.Store(!o.set.Idle())
	had, now := o.pods, o.set.Len()
	away, _ := o.Away()
	o.pods, o.freed = now, !away && (o.freed || now < had)
	o.held.Look()
	close(o.changed)
	o.changed = make(chan struct{})
}

// keep writes down what clients may have, if that is more than before. mu is held.
func (o *Overlay) keep() {
	news := false
	for name, s := range o.shown {
		if s.view.Unkept() {
			news, o.file.kept.Owed[name] = true, s.view.Owed()
		}
	}
	if news {
		o.file.write()
	}
}

// prune forgets what the cloud has replaced. mu is held.
func (o *Overlay) prune() {
	had := false
	for name, s := range o.shown {
		if r := o.Relay(name); r != nil && s.view.Owes() && r.Status().Synced {
			s.view.Prune(r.Objects())
			had, o.file.kept.Owed[name] = true, s.view.Owed()
		}
	}
	if had {
		o.file.write()
	}
}

// settle forgets what the cloud says by now. mu is held.
func (o *Overlay) settle() {
	was := o.set.Len()
	reached := o.reached()
	if reached == (moved.Reached{}) && !o.outage.released { // nobody here hears what the cloud says
		return
	}
	if o.set.Settle(reached); o.set.Len() != was {
		o.publish()
	}
}

// reached are the versions up to which the relays have all.
func (o *Overlay) reached() (at moved.Reached) {
	for i, name := range []string{slicesOf, endpoints, pods} {
		if r := o.Relay(name); r != nil {
			if s := r.Status(); s.Synced {
				at[i] = s.Version
			}
		}
	}
	return at
}

// decoded are the objects of a relay. One that cannot be read is left out.
func decoded[T any, P interface {
	*T
	Unmarshal([]byte) error
}](r *relay.Relay) iter.Seq[P] {
	return func(yield func(P) bool) {
		for x := range r.Objects() {
			if m := P(new(T)); m.Unmarshal(x.Raw) == nil && !yield(m) {
				return
			}
		}
	}
}

// publishes reports whether a Service publishes addresses that are not ready.
func (o *Overlay) publishes(namespace, service string) bool {
	r := o.Relay(services)
	if r == nil || r.Resource().Encoding() != wire.Protobuf {
		return false
	}
	x := r.Object(namespace + "/" + service)
	if x == nil {
		return false
	}
	var s corev1.Service
	return s.Unmarshal(x.Raw) == nil && s.Spec.PublishNotReadyAddresses
}
