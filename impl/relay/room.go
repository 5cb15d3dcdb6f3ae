package relay

import (
	"fmt"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// objectCost is what an object takes beside its bytes: keys, metadata, places in trees. So many small ones are bounded
// as well.
const objectCost = 1 << 10

// Room is what is left for what another relay sends, until it is handed to this one: a list, or a batch. What comes
// from the cloud is not bounded so. It is not safe for concurrent use.
type Room struct {
	resource Resource
	most     int64
	taken    int64
}

// Room is as much as the relay may hold.
func (r *Relay) Room() *Room { return &Room{resource: r.cfg.Resource, most: r.cfg.MaxBytes} }

// Take notes an object, or refuses it.
func (m *Room) Take(o *wire.Object) error {
	m.taken += size(o)
	if m.taken > m.most {
		return &FullError{m.resource, m.most}
	}
	return nil
}

// FullError refuses what another relay sends, because it is more than a relay may hold at the word of another.
type FullError struct {
	Resource Resource
	Most     int64
}

func (e *FullError) Error() string {
	return fmt.Sprintf("more of %s than %d bytes, with %d beside each object: raise --relay-max-bytes if the cloud "+
		"has as much", e.Resource, e.Most, objectCost)
}

// size is what an object counts; nil counts nothing.
func size(o *wire.Object) int64 {
	if o == nil {
		return 0
	}
	return int64(len(o.Raw)) + objectCost
}

// fits tells why changed objects may not take the place of those that the relay holds under the same keys; r.mu is
// held.
func (r *Relay) fits(changed ...*wire.Object) error {
	more := int64(0)
	for _, o := range changed {
		more += size(o)
		more -= size(r.state.Get(o))
	}
	if more > 0 && r.state.Bytes()+int64(r.state.Len())*objectCost+more > r.cfg.MaxBytes {
		return &FullError{r.cfg.Resource, r.cfg.MaxBytes}
	}
	return nil
}
