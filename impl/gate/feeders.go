package gate

import (
	"maps"
	"slices"
	"sync"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/source"
)

// feeders are what feeds each relay. It is safe for concurrent use.
type feeders struct {
	pulse source.Pulse // of all

	mu   sync.Mutex
	each map[*relay.Relay]*source.Feeder
}

func (x *feeders) add(r *relay.Relay, f *source.Feeder) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.each == nil {
		x.each = map[*relay.Relay]*source.Feeder{}
	}
	x.each[r] = f
}

func (x *feeders) remove(r *relay.Relay) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.each, r)
}

func (x *feeders) of(r *relay.Relay) *source.Feeder {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.each[r]
}

func (x *feeders) all() []*source.Feeder {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Values(x.each))
}

// lists are the full lists so far, by resource.
func (x *feeders) lists() map[string]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := map[string]int{}
	for r, f := range x.each {
		n[r.Resource().String()] = f.Status().Lists.Total()
	}
	return n
}
