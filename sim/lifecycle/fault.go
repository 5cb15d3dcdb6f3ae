package lifecycle

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// What a Fault does; those of a node's parts are named as these.
const (
	cut         = "cut"     // the node from the cloud
	isolate     = "isolate" // from the cloud and its pool
	leader      = "kill-leader"
	coordinator = "coordinator"
	poolCut     = "pool-cut"
	away        = "cloud-away"
	clock       = "clock" // of the node is set by Value
	controllers = "controllers"
	weirManager = "manager"
	policy      = "policy"
	liar        = "liar"  // a leader of the pool lies about who was heard
	empty       = "empty" // the coordinator's disk is lost
	first       = "first" // of the replicas of weir-manager; else all
)

// controllersPatience is how long controllers stay without the cloud: then their leader election ends them.
const controllersPatience = 10 * time.Second

// deed is the beginning or the end of a fault.
type deed struct {
	at    time.Duration
	fault *Fault
	end   bool
}

// play lets the schedule happen, then what follows: the aftermath, and the end of all faults.
func (w *World) play(ctx context.Context, running *sync.WaitGroup) {
	var deeds []deed
	calm := w.config.Schedule.Calm()
	for i := range w.config.Schedule.Faults {
		f := &w.config.Schedule.Faults[i]
		deeds = append(deeds, deed{f.At, f, false})
		switch {
		case f.For > 0:
			deeds = append(deeds, deed{f.At + f.For, f, true})
		case f.What == power:
			deeds = append(deeds, deed{calm + aftermath, f, true})
		}
	}
	slices.SortStableFunc(deeds, func(a, b deed) int { return int(a.at - b.at) })
	for _, d := range deeds {
		if !sleep(ctx, d.at-w.now()) {
			return
		}
		w.trace("end %t: %v", d.end, d.fault)
		w.do(ctx, running, d)
	}
	if !sleep(ctx, calm+aftermath-w.now()) || !sleep(ctx, recovery) {
		return
	}
	w.judge.healed(ctx)
}

// do does it.
func (w *World) do(ctx context.Context, running *sync.WaitGroup, d deed) {
	f, by, gone := d.fault, 1, false
	if d.end {
		by = -1
	}
	switch f.What {
	case away:
		w.locked(func() {
			w.outage += by
			gone = w.outage > 0
			w.judge.disturbed()
			w.judge.look()
		})
		w.cloud.Away(gone)
		if d.end && f.For >= controllersPatience {
			w.controllers.stop()
			w.controllers.start()
		}
		return
	case controllers:
		w.turn(d.end, w.controllers)
		return
	case weirManager:
		some := w.managers
		if f.Value == first {
			some = some[:1]
		}
		if len(some) == len(w.managers) {
			w.judge.managed(d.end)
		}
		w.turn(d.end, some...)
		return
	case policy:
		running.Go(func() { w.setPolicy(ctx, f.Target, f.Value) })
		return
	}
	w.locked(func() {
		w.hold(f, by)
		w.judge.look()
	})
}

// turn starts or ends processes.
func (w *World) turn(on bool, processes ...*process) {
	for _, p := range processes {
		if p.stop(); on {
			p.start()
		}
	}
	w.locked(w.judge.disturbed)
}

// hold lets a fault of a node or a pool begin or end. The lock is held.
func (w *World) hold(f *Fault, by int) {
	n := w.named(f.Target)
	switch f.What {
	case cut:
		n.hold(cloud, by)
	case lan:
		n.hold(lan, by)
	case isolate:
		n.hold(cloud, by)
		n.hold(lan, by)
	case power, kubelet, hubDown:
		n.hold(f.What, by)
	case clock:
		d, err := time.ParseDuration(f.Value)
		if err != nil {
			panic(err)
		}
		n.skew += d
	}
	i := slices.IndexFunc(w.pools, func(p *pool) bool { return p.name == f.Target })
	if i < 0 {
		return
	}
	p := w.pools[i]
	switch f.What {
	case leader:
		if by > 0 {
			w.killed[f] = p.leader
		}
		if n := w.killed[f]; n != nil {
			n.hold(hubDown, by)
		}
	case coordinator:
		p.hold(by, f.Value == empty)
	case liar:
		p.lies += by
	case poolCut:
		for _, n := range p.nodes {
			n.hold(cloud, by)
		}
	}
}

// hold lets something of a node be down, or up again. The lock is held.
func (n *node) hold(what string, by int) {
	n.down[what] += by
	switch {
	case n.hub != nil && !n.works():
		n.hub.stop()
		n.hub = nil
	case n.hub == nil && n.works():
		n.boot()
	}
}

// setPolicy writes the policy of a pool, keep or evict:<duration>, as its operator does.
func (w *World) setPolicy(ctx context.Context, name, text string) {
	silent := map[string]any{"action": poolv1.Keep, "after": nil}
	if _, after, evict := strings.Cut(text, ":"); evict {
		silent = map[string]any{"action": poolv1.Evict, "after": after}
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"whenSilent": silent}})
	if err != nil {
		panic(err)
	}
	for { // the cloud may be away
		err = w.admin.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath("/apis", poolv1.GroupVersion.Group,
			poolv1.GroupVersion.Version, "pools", name).
			Body(patch).Do(ctx).Error()
		if err == nil || !sleep(ctx, time.Second) {
			break
		}
	}
	w.locked(func() { w.judge.policy(name, text) })
}
