package filter

import (
	"slices"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// reading is a get, list or watch that is filtered.
type reading struct {
	asked  *request.Request
	use    use
	rules  []rule
	client string // the same for a list and the watch that follows
}

// apply is what all rules make of an object. What is no such object passes as it is.
func (q *reading) apply(v *view, enc wire.Encoding, o *wire.Object) (raw []byte, shown bool) {
	at := o
	for _, r := range q.rules {
		raw, shown, err := r.apply(v, enc, at)
		if err != nil {
			return o.Raw, true
		}
		if !shown {
			return nil, false
		}
		if len(raw) == len(at.Raw) && &raw[0] == &at.Raw[0] {
			continue
		}
		next, err := wire.ParseObject(enc, raw)
		if err != nil {
			return o.Raw, true
		}
		at = next
	}
	return at.Raw, true
}

// learns reports whether Services that pass teach the view.
func (q *reading) learns() bool {
	return slices.Contains(q.rules, rule(learn{}))
}

// follows reports whether what passes depends on the view.
func (q *reading) follows() bool { return q.use.resource == slicesOf || q.use.component == thisNode }

// teach notes the topology of a Service.
func (q *reading) teach(enc wire.Encoding, o *wire.Object, taught map[string]scope) {
	if !q.learns() {
		return
	}
	if h, err := headOf(enc, o); err == nil {
		taught[o.Namespace+"/"+o.Name] = scopeOf(h.Metadata.Annotations[contract.TopologyKeys])
	}
}
