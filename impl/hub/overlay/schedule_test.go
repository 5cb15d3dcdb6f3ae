package overlay

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/relay/wire"
)

var (
	schedules = flag.Int("schedules", 64, "how many random schedules")
	from      = flag.Uint64("from", 0, "the first seed")
)

// Times within which a pool has to find out. Statements are made each Every and read each readEvery; a pool is known to
// be cut off freshFor after it was. By then each node has had Notices to state something.
const (
	movedWithin = moved.Every + 2*readEvery + time.Second
	deadWithin  = freshFor + moved.Notices + movedWithin
)

// life is a pool whose machines lose power, links and hubs. It knows where each pod truly is.
type life struct {
	*bed
	rnd     *rand.Rand
	nodes   []string
	pods    map[string]*pod
	machine map[string]*machine
	cut     bool                      // the pool is
	version uint64                    // of the cloud
	cache   uint64                    // that the pool's cache has
	cloud   map[string]shownPod       // its slice
	writes  map[string]uint64         // the versions of the cloud's pods
	hears   map[string][]*wire.Object // what the relay of a node has yet to hear
	counts  map[string]int            // of what happened
	wrongs  map[string]time.Duration  // for how long a hub has shown a pod wrongly, by hub and pod
	lacks   map[string]time.Duration  // for how long it has not shown one that is there
	told    map[string]bool           // the node of the pod reaches the pool
	was     map[string]bool           // a hub has shown the pod rightly since it moved
	unheard map[string]time.Duration  // for how long the cloud has not heard a node
	trace   []string
}

// pod is one as it truly is.
type pod struct {
	node, uid string
	address   string
	ready     bool
	starts    time.Time // when its containers run, on a machine that was restarted; zero: they do
	said      time.Time // when its kubelet last reported a change
}

type machine struct {
	on, hub bool
	alone   bool          // cut off from the cloud by itself
	since   time.Time     // on is what it is
	there   time.Duration // how long the cloud is
}

// shownPod is a pod as somebody shows it.
type shownPod struct {
	address string
	ready   bool
	marked  bool // the cloud has made it not ready
}

// status is what a kubelet, or the cloud, tells of it.
func (p shownPod) status() string {
	switch {
	case p.marked:
		return p.address + " marked"
	case !p.ready:
		return p.address + " not"
	}
	return p.address
}

func newLife(t *testing.T, seed uint64, counts map[string]int) *life {
	nodes := []string{"a", "b", "c", "d"}
	l := &life{
		bed: newBed(t, nodes...), rnd: rand.New(rand.NewPCG(seed, 35)), nodes: nodes, pods: map[string]*pod{},
		machine: map[string]*machine{}, version: 1 << 21, cloud: map[string]shownPod{}, hears: map[string][]*wire.Object{},
		counts: counts, wrongs: map[string]time.Duration{}, lacks: map[string]time.Duration{}, was: map[string]bool{},
		told: map[string]bool{}, writes: map[string]uint64{}, unheard: map[string]time.Duration{},
	}
	for i, n := range nodes {
		l.machine[n] = &machine{on: true, hub: true, since: l.clock.Now()}
		for j := range 2 {
			uid := fmt.Sprint(n, j)
			l.pods[uid] = &pod{node: n, uid: uid, address: fmt.Sprintf("10.0.%d.%d", i, 1+j), ready: true}
			l.cloud[uid] = shownPod{address: l.pods[uid].address, ready: true}
		}
	}
	l.publishes()
	l.running(func(h *hub) { l.hear(h.node, len(l.hears[h.node])) })
	return l
}

func (l *life) uids() []string { return slices.Sorted(maps.Keys(l.pods)) }

func (l *life) says(format string, args ...any) {
	at := l.clock.Now().Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	l.trace = append(l.trace, fmt.Sprintf("%v %s", at, fmt.Sprintf(format, args...)))
}

// write has the cloud write a pod. Pods and slices have their versions of one sequence.
func (l *life) write(uid string) {
	l.version++
	l.writes[uid] = l.version
}

// publishes has the cloud write its slice, and relays hear of it in their time.
func (l *life) publishes() {
	l.version++
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", ResourceVersion: wire.FormatVersion(l.version),
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, uid := range l.uids() {
		p, is := l.pods[uid], l.cloud[uid]
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{is.address}, NodeName: &p.node,
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", UID: types.UID(uid)},
			Conditions: discoveryv1.EndpointConditions{Ready: &is.ready, Serving: &is.ready},
		})
	}
	raw, err := s.Marshal()
	check(l.t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(l.t, err)
	for _, n := range l.nodes {
		l.hears[n] = append(l.hears[n], o)
	}
}

// hear has a relay hear the next of what the cloud has written.
func (l *life) hear(node string, n int) {
	for _, o := range l.hears[node][:n] {
		l.hubs[node].apply(o)
	}
	l.hears[node] = l.hears[node][n:]
}

// running walks over the hubs that run.
func (l *life) running(f func(*hub)) {
	for _, n := range l.nodes {
		if m := l.machine[n]; m.on && m.hub {
			f(l.hubs[n])
		}
	}
}

// away reports whether a node is cut off from the cloud.
func (l *life) away(node string) bool { return l.cut || l.machine[node].alone }

// happens draws what happens next.
func (l *life) happens() {
	n := l.nodes[l.rnd.IntN(len(l.nodes))]
	m, h := l.machine[n], l.hubs[n]
	var what string
	switch l.rnd.IntN(12) {
	case 0, 1:
		if l.cut = !l.cut; l.cut {
			what = "the pool is cut off"
		} else {
			what = "the pool is back"
		}
	case 2, 3, 4:
		m.since = l.clock.Now()
		if m.on = !m.on; m.on {
			what = "a machine starts"
			m.hub = true
			h.boot = l.clock.Now().String()
			l.moves(n)
			l.begins(h)
		} else {
			what = "a machine loses its power"
		}
	case 5:
		what = "a pod is ready, or not any more"
		p := l.pods[fmt.Sprint(n, l.rnd.IntN(2))]
		if !m.on {
			return
		}
		p.ready = !p.ready
		l.reports(p)
	case 6:
		what = "two pods of a node swap addresses"
		if !m.on {
			return
		}
		p, q := l.pods[n+"0"], l.pods[n+"1"]
		p.address, q.address = q.address, p.address
		l.reports(p)
		l.reports(q)
	case 7:
		if !m.on {
			return
		}
		if m.hub = !m.hub; m.hub {
			what = "a hub starts"
			l.begins(h)
		} else {
			what = "a hub ends"
		}
	case 8:
		what = "the desk loses all"
		l.desk.Reset()
	case 9:
		if h.alone = !h.alone; h.alone {
			what = "a node does not reach the desk"
		} else {
			what = "it does again"
		}
	case 10:
		if m.alone = !m.alone; m.alone {
			what = "a node alone is cut off"
		} else {
			what = "it is not any more"
		}
	default:
		return
	}
	l.counts[what]++
	l.says("%s: %s", n, what)
}

// begins starts a hub, which has to find out again who is silent.
func (l *life) begins(h *hub) {
	h.restart()
	l.again(h)
	l.machine[h.node].there = 0
}

// again has the judge wait: what a hub knows of the others is new.
func (l *life) again(h *hub) {
	for _, uid := range l.uids() {
		delete(l.wrongs, h.node+" "+uid)
		delete(l.lacks, h.node+" "+uid)
	}
}

// moves gives the pods of a machine that was restarted other addresses, each out of a small range of its node.
func (l *life) moves(node string) {
	octets := l.rnd.Perm(4)
	for j := range 2 {
		p := l.pods[fmt.Sprint(node, j)]
		before := p.address
		p.address = before[:len(before)-1] + fmt.Sprint(1+octets[j])
		// A kubelet that finds no containers says so before it starts others.
		l.hubs[node].statuses[p.uid], l.hubs[node].since[p.uid] = before+" not", l.clock.Now()
		p.ready, p.starts = true, l.clock.Now().Add(time.Duration(2+l.rnd.IntN(10))*time.Second)
		if p.address != before {
			l.counts["a pod has another address"]++
		}
	}
}

// reports has the kubelet tell what is true of a pod.
func (l *life) reports(p *pod) {
	for _, n := range l.nodes {
		l.was[n+" "+p.uid] = false
	}
	p.said = l.clock.Now()
	l.hubs[p.node].since[p.uid] = p.said
	l.hubs[p.node].statuses[p.uid] = shownPod{address: p.address, ready: p.ready}.status()
	l.says("%s: %s is at %s, ready %v", p.node, p.uid, p.address, p.ready)
}

// steps has two seconds pass.
func (l *life) passes() {
	l.clock.Step(readEvery)
	now := l.clock.Now()
	for _, uid := range l.uids() {
		if p := l.pods[uid]; !p.starts.IsZero() && !now.Before(p.starts) && l.machine[p.node].on {
			p.starts = time.Time{}
			l.reports(p)
		}
	}
	news := false
	l.running(func(h *hub) {
		h.away = l.away(h.node)
		if h.away {
			l.machine[h.node].there = 0
			return
		}
		l.machine[h.node].there += readEvery
		// What waits reaches the cloud, the slices follow, and relays hear of them, some seconds apart.
		for _, uid := range slices.Sorted(maps.Keys(h.statuses)) {
			if l.rnd.IntN(3) == 0 && l.machine[h.node].there > readEvery { // a hub that starts has read them by then
				address, not, _ := strings.Cut(h.statuses[uid], " ")
				l.write(uid) // also if it says what the cloud has: times of conditions are others
				l.cloud[uid] = shownPod{address: address, ready: not == ""}
				delete(h.statuses, uid)
				news = true
			}
		}
		for j := range 2 {
			uid := fmt.Sprint(h.node, j)
			h.known[uid], h.showed[uid] = l.cloud[uid].status(), l.writes[uid]
		}
		if n := len(l.hears[h.node]); n > 0 && l.rnd.IntN(2) == 0 {
			l.hear(h.node, 1+l.rnd.IntN(n))
		}
	})
	// A hub that reaches the pool's cache has what anybody brought there.
	reaches := func(f func(h *hub, has uint64)) {
		l.running(func(h *hub) {
			if !h.alone {
				f(h, h.relay.Object("shop/web").Version)
			}
		})
	}
	reaches(func(_ *hub, has uint64) { l.cache = max(l.cache, has) })
	reaches(func(h *hub, has uint64) {
		for has < l.cache {
			l.again(h) // a relay that hears something counts as fresh
			l.hear(h.node, 1)
			has = h.relay.Object("shop/web").Version
		}
	})
	// The cloud takes a node that it does not hear for dead, also if it hears nobody of the pool. A node alone that is cut
	// off is heard by others.
	for _, n := range l.nodes {
		m := l.machine[n]
		heard := m.on && m.hub && !l.cut
		if heard {
			l.unheard[n] = 0
		}
		for j := range 2 {
			uid := fmt.Sprint(n, j)
			for _, other := range l.nodes { // nobody hears it: then the cloud is right
				l.was[other+" "+uid] = l.was[other+" "+uid] && (heard || l.cut)
			}
			p, is, waits := l.pods[uid], l.cloud[uid], l.hubs[n].statuses[uid] != ""
			switch {
			case l.unheard[n] > 50*time.Second && is.ready:
				l.cloud[uid] = shownPod{address: is.address, marked: true}
				l.counts["the cloud makes a pod not ready"]++
			case l.unheard[n] == 0 && !l.away(n) && is.marked && !waits && l.rnd.IntN(5) == 0: // its kubelet sees it
				l.cloud[uid] = shownPod{address: p.address, ready: p.ready && p.starts.IsZero()}
			default:
				continue
			}
			l.write(uid)
			l.hubs[n].since[uid], news = now, true
		}
		l.unheard[n] += readEvery
	}
	if news {
		l.publishes()
	} else if !l.cut && l.rnd.IntN(4) == 0 {
		l.publishes() // others of the cloud change
	}
	l.running(func(h *hub) { h.step(l.t.Context()) })
	l.running(l.judge)
}

// shown is what clients of a hub list.
func (l *life) shown(h *hub) map[string]shownPod {
	x := h.relay.Object("shop/web")
	if over := h.Over(h.relay); over != nil {
		x = over.Show(x)
	}
	var s discoveryv1.EndpointSlice
	check(l.t, s.Unmarshal(x.Raw))
	all := map[string]shownPod{}
	for _, e := range s.Endpoints {
		all[string(e.TargetRef.UID)] = shownPod{address: e.Addresses[0], ready: *e.Conditions.Ready}
	}
	return all
}

// judge compares what a hub shows with what is true.
func (l *life) judge(h *hub) {
	all := l.shown(h)
	for _, uid := range l.uids() {
		p, key := l.pods[uid], h.node+" "+uid
		m := l.machine[p.node]
		is, there := all[uid]
		lives := m.on && p.starts.IsZero() && p.ready
		right := !is.ready || lives && is.address == p.address
		lacks := lives && (!there || is != shownPod{address: p.address, ready: true})
		// A hub that reaches the desk, in a pool that is cut off, finds out.
		asks, told := l.cut && !h.alone, m.on && m.hub && !l.hubs[p.node].alone
		within := deadWithin
		if told {
			within = movedWithin
		}
		if l.told[key] != told {
			l.told[key], l.wrongs[key] = told, 0
		}
		if l.wrongs[key] = count(l.wrongs[key], asks && !right); l.wrongs[key] > within {
			l.fails(h, "wrong route: %s for %v: shown %v, truly %+v", uid, l.wrongs[key], is, *p)
		}
		if l.lacks[key] = count(l.lacks[key], asks && told && lacks); l.lacks[key] > movedWithin {
			l.fails(h, "not shown: %s for %v: shown %v, truly %+v", uid, l.lacks[key], is, *p)
		}
		// A client that was shown where a living pod is, is not sent back when the cloud is there again.
		switch {
		case h.alone || !told || l.machine[h.node].alone || m.alone || !lives && !l.cut ||
			l.machine[h.node].there >= returns: // then the cloud has the last word
			l.was[key] = false
		case l.was[key] && !right && !l.cut:
			l.fails(h, "sent back: %s: shown %v, truly %+v", uid, is, *p)
		case l.was[key] && lacks && !l.cut && l.clock.Since(p.said) > time.Minute: // else slices are under way
			l.fails(h, "hidden: %s: shown %v, truly %+v", uid, is, *p)
		case right && there && is.ready:
			l.was[key] = true
		}
	}
}

func count(so time.Duration, bad bool) time.Duration {
	if !bad {
		return 0
	}
	return so + readEvery
}

func (l *life) fails(h *hub, format string, args ...any) {
	l.t.Helper()
	l.t.Errorf("%s: "+format, append([]any{h.node}, args...)...)
	for _, n := range l.nodes {
		o := l.hubs[n]
		l.t.Logf("%s: away %v, waiting %v, at the cloud %v, states %v", n, o.away, o.statuses, o.known, o.speaker.last)
	}
	for _, line := range l.trace[max(0, len(l.trace)-40):] {
		l.t.Log(line)
	}
	l.t.FailNow()
}

// TestSchedules: through random faults no hub of a pool that is cut off sends callers where a pod is not, or hides one
// that is there, for longer than it needs to hear of it; and nobody is sent back when the cloud returns.
func TestSchedules(t *testing.T) {
	counts := map[string]int{}
	for seed := *from; seed < *from+uint64(*schedules); seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newLife(t, seed, counts)
			for range 40 { // all hear of each other
				l.passes()
			}
			for range 600 {
				if l.rnd.IntN(12) == 0 {
					l.happens()
				}
				l.passes()
			}
		}) {
			t.Fatalf("seed %d: go test ./impl/hub/overlay -run TestSchedules -schedules 1 -from %d", seed, seed)
		}
	}
	t.Log(counts)
}
