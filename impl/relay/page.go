package relay

import (
	"errors"
	"strings"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// PageOptions is what of a list is wanted.
type PageOptions struct {
	At
	Selector Selector
	Exact    bool   // the state at Version, and no later one
	Limit    int64  // of objects; 0: none
	Start    string // Page.Next of the page before; "": the first page
}

// Page is a list, or a part of one: objects in the order of their keys, which must not be written to.
type Page struct {
	Version   uint64
	Items     []*wire.Object
	Next      string // where the next page starts; "": this is the last one
	Remaining *int64 // objects behind it, if nothing is selected among them
}

// ErrPast refuses a page of an exact version that the relay cannot go back to any more.
var ErrPast = errors.New("the relay holds nothing of that version any more")

// pageOf is what of a state is wanted.
func pageOf(v *mvcc.View, o PageOptions) *Page {
	p, s := &Page{Version: v.Version}, &o.Selector
	if s.key == "" && s.prefix == "" {
		p.Items = make([]*wire.Object, 0, v.Objects.Len())
	}
	more := false
	visit := func(x *wire.Object) bool {
		if !strings.HasPrefix(x.Key, s.prefix) {
			return false
		}
		if o.Limit > 0 && int64(len(p.Items)) == o.Limit {
			more = true // whether it matches or not: kube-apiserver does not look further either
			return false
		}
		if s.Matches(x) {
			p.Items = append(p.Items, x)
		}
		return true
	}
	from := s.prefix + o.Start
	if s.key != "" {
		if x, ok := v.Objects.Get(&wire.Object{Key: s.key}); ok && x.Key >= from {
			visit(x)
		}
	} else {
		v.Objects.AscendGreaterOrEqual(&wire.Object{Key: from}, visit)
	}
	if !more {
		return p
	}
	last := p.Items[len(p.Items)-1].Key
	p.Next = strings.TrimPrefix(last, s.prefix) + "\x00"
	if s.all() {
		left := int64(0)
		v.Objects.AscendGreaterOrEqual(&wire.Object{Key: last + "\x00"}, func(x *wire.Object) bool {
			if !strings.HasPrefix(x.Key, s.prefix) {
				return false
			}
			left++
			return true
		})
		p.Remaining = &left
	}
	return p
}
