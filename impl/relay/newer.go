package relay

import "github.com/weir-edge/weir/impl/relay/wire"

// newer finds the first field of objects that their compiled type does not know: from then on transcoding would lose
// it.
type newer struct {
	schema *wire.Schema // nil for custom resources
	field  string       // as a path of numbers; "": all are known
}

// look reports whether an object has the first one.
func (n *newer) look(o *wire.Object) bool {
	if n.schema == nil || n.field != "" {
		return false
	}
	n.field = n.schema.Unknown(o.Raw)
	return n.field != ""
}
