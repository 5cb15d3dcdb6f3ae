package pull

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/pause"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	hearFirst    = 2 * time.Second  // after which nobody leading is taken for a lack of leaders
	hearMost     = 30 * time.Second // between two rounds of questions that brought nothing
	hearAnswer   = 2 * time.Second  // for an answer
	hearParallel = 8                // hubs that are asked at once
	hearLasts    = time.Minute      // for what one of them holds
)

// offer is what a hub says that it holds.
type offer struct {
	node string
	line *hop.Line
	hop.Shown
}

// fallback asks hubs while nobody leads.
type fallback struct {
	Config
	feeder func(*relay.Relay) *source.Feeder // nil: nothing feeds it
	read   func() bool                       // somebody is
}

// run asks, while nobody leads because no hub reaches the cloud, what the hubs hold, until ctx ends. The relays that
// are not ready are moved forward to the latest that any of them has. It is served with its age and makes nothing
// ready: that is the word of one hub.
func (h *fallback) run(ctx context.Context) {
	for wait := hearFirst; ctx.Err() == nil; wait = min(2*wait, hearMost) {
		pause.For(ctx, h.Clock, wait/2+rand.N(wait/2))
		if ctx.Err() != nil || h.Fence.Leader().Node != "" || h.Majority() != nil ||
			!slices.ContainsFunc(h.Relays(), func(r *relay.Relay) bool { return h.Unready(r) != nil }) {
			continue
		}
		if h.round(ctx) {
			wait = hearFirst / 2
		}
	}
}

// round asks once, and reports whether anything came of it.
func (h *fallback) round(ctx context.Context) (any bool) {
	var all sync.WaitGroup
	var mu sync.Mutex
	said, slots := map[string][]offer{}, make(chan struct{}, hearParallel)
	var asked []*hop.Line
	defer func() {
		for _, l := range asked {
			l.Close()
		}
	}()
	for node, address := range h.Leases.Hubs(ctx) {
		l := h.Line(node, address)
		asked = append(asked, l)
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			asking, cancel := context.WithTimeout(ctx, hearAnswer)
			defer cancel()
			shown, err := ask(asking, l)
			if err != nil {
				h.Logger.Debug("a hub does not tell what it holds", "node", node, "err", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, s := range shown {
				said[s.Resource] = append(said[s.Resource], offer{node, l, s})
			}
		})
	}
	all.Wait()
	for _, r := range h.Relays() {
		if best := latest(r.Status(), said[r.Resource().String()]); best != nil && h.Unready(r) != nil &&
			h.take(ctx, r, best) {
			any = true
		}
	}
	return any
}

func ask(ctx context.Context, l *hop.Line) ([]hop.Shown, error) {
	if err := l.Connect(ctx); err != nil {
		return nil, err
	}
	return l.Upstream().Shown(ctx)
}

// latest is what moves a relay forward most: in its own history, or if it holds nothing, in the latest that can have
// been counted.
func latest(st relay.Status, said []offer) (best *offer) {
	for i := range said {
		switch s := &said[i]; {
		case !s.Synced || s.Denied != "":
		case st.Synced && (s.History != st.History.Number || s.Version <= st.Version):
		case !st.Synced && !(relay.History{Number: s.History}).First():
		case best == nil || s.History > best.History || s.History == best.History && s.Version > best.Version:
			best = s
		}
	}
	return best
}

// take moves a relay forward to what a hub holds, and reports whether that came.
func (h *fallback) take(ctx context.Context, r *relay.Relay, from *offer) bool {
	ctx, cancel := context.WithTimeout(ctx, hearLasts)
	defer cancel()
	f, before := h.feeder(r), r.Status()
	if f == nil {
		return false
	}
	up := from.line.Upstream()
	up.Unconfirmed, up.Admit = true, ctx.Err
	f.Use(up)
	err := r.WaitUntil(ctx, func() bool {
		s := r.Status()
		return s.Synced && s.History.Number == from.History && s.Version >= from.Version
	})
	cancel() // what comes later is no longer valid
	if !h.read() {
		f.Use(nil)
	}
	if err != nil {
		return false
	}
	name, now := r.Resource().String(), r.Status()
	age, _ := now.Age(h.Clock.Now())
	h.Refilled(name, from.node)
	h.Logger.Warn("refilled at the word of one hub, with what it holds: served with its age, and not ready until the "+
		"cloud is heard", "resource", name,
		"node", from.node, "version", now.Version, "history", now.History.Number, "was", before.Version,
		"age", age.Round(time.Second).String())
	return true
}
