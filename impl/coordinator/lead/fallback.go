package lead

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	hearAnswer   = 2 * time.Second // for an answer
	hearParallel = 8               // hubs that are asked at once
	hearLasts    = time.Minute     // for what one of them holds
)

// fallback asks hubs while nobody leads.
type fallback struct {
	PullConfig
	feeder func(*relay.Relay) *source.Feeder // nil: nothing feeds it
	read   func() bool                       // somebody is
}

// run asks, while nobody leads because no hub reaches the cloud, what the hubs hold, until ctx ends. The relays that
// are not ready are moved forward to the latest that any of them has. It is served with its age and makes nothing
// ready: that is the word of one hub.
func (h *fallback) run(ctx context.Context) {
	var rounds member.Rounds
	for ctx.Err() == nil {
		wait := rounds.Wait()
		process.Pause(ctx, h.Clock, wait/2+rand.N(wait/2))
		if ctx.Err() != nil || h.Fence.Leader().Node != "" || h.Majority() != nil ||
			!slices.ContainsFunc(h.Relays(), func(r *relay.Relay) bool { return h.Unready(r) != nil }) {
			continue
		}
		if h.round(ctx) {
			rounds.Came()
		}
	}
}

// round asks once, and reports whether anything came of it.
func (h *fallback) round(ctx context.Context) (any bool) {
	var all sync.WaitGroup
	var mu sync.Mutex
	said, slots := map[string][]member.Offer{}, make(chan struct{}, hearParallel)
	asked := map[string]*hop.Line{}
	defer func() {
		for _, l := range asked {
			l.Close()
		}
	}()
	for node, address := range h.Leases.Hubs(ctx) {
		l := h.Line(node, address)
		asked[node] = l
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
				said[s.Resource] = append(said[s.Resource], member.Offer{
					Node: node, Synced: s.Synced, Denied: s.Denied != "", History: s.History, Version: s.Version,
				})
			}
		})
	}
	all.Wait()
	for _, r := range h.Relays() {
		if best := member.Latest(r.Status(), said[r.Resource().String()]); best != nil && h.Unready(r) != nil &&
			h.take(ctx, r, asked[best.Node], best) {
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

// take moves a relay forward to what a hub holds, and reports whether that came.
func (h *fallback) take(ctx context.Context, r *relay.Relay, line *hop.Line, from *member.Offer) bool {
	ctx, cancel := context.WithTimeout(ctx, hearLasts)
	defer cancel()
	f, before := h.feeder(r), r.Status()
	if f == nil {
		return false
	}
	up := line.Upstream()
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
	h.Refilled(name, from.Node)
	h.Logger.Warn("refilled at the word of one hub, with what it holds: served with its age, and not ready until the "+
		"cloud is heard", "resource", name,
		"node", from.Node, "version", now.Version, "history", now.History.Number, "was", before.Version,
		"age", age.Round(time.Second).String())
	return true
}
