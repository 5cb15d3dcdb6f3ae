package overlay

import (
	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// shown is what clients see of one resource.
type shown struct {
	view  *moved.View
	forms map[string]form // of objects, since the set last changed
}

// form is what an object is now.
type form struct{ of, is *wire.Object }

func newShown(make moved.Form, owed map[string]uint64) *shown {
	s := &shown{forms: map[string]form{}}
	s.view = moved.NewView(wire.Protobuf, func(x *wire.Object) *wire.Object {
		if f := s.forms[x.Key]; f.of == x {
			return f.is
		}
		f := form{x, make(x)}
		s.forms[x.Key] = f
		return f.is
	}, owed)
	return s
}
