package overlay

import (
	"context"
	"iter"

	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Stored is what is laid over objects that the store has, at a version; nil: nothing ever is. objects reads them
// again each time.
func (o *Overlay) Stored(res relay.Resource, version uint64, objects func() iter.Seq[*wire.Object]) rest.Overlay {
	if o == nil {
		return nil
	}
	name, enc := res.String(), res.Encoding()
	form := o.form(name, enc)
	if form == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	owed := map[string]uint64{}
	if len(o.file.kept.Stored[name]) > 0 {
		for x := range objects() {
			if o.owes(name, x) {
				owed[x.Key] = x.Version
			}
		}
	}
	l := layer{o, moved.NewView(enc, form, owed), func() uint64 { return version }, objects, name}
	if !o.set.Idle() { // all is noted in one write
		for x := range objects() {
			l.view.Show(x)
		}
		l.keep()
	}
	return l
}

// form is how objects of a resource are corrected; nil: they are not.
func (o *Overlay) form(resource string, enc wire.Encoding) moved.Form {
	switch resource {
	case slicesOf:
		return o.set.SliceForm(enc, o.publishes)
	case endpoints:
		return o.set.EndpointsForm(enc, o.publishes)
	}
	return nil
}

// owes reports whether a client of the store may have an object in a corrected form. mu is held.
func (o *Overlay) owes(resource string, x *wire.Object) bool {
	return o.file.kept.Stored[resource][x.Key] >= x.Version
}

// keep writes down what clients may have, if that is more than before. mu is held.
func (l layer) keep() {
	if l.stored == "" {
		l.Overlay.keep()
		return
	}
	if !l.view.Unkept() {
		return
	}
	kept, news := l.file.kept.Stored[l.stored], false
	if kept == nil {
		kept = map[string]uint64{}
		l.file.kept.Stored[l.stored] = kept
	}
	for key, version := range l.view.Owed() {
		if kept[key] < version {
			kept[key], news = version, true
		}
	}
	if news {
		l.file.write()
	}
}

// Holds reports whether clients of the store stay with it though the cloud is there, as long as what they are shown is
// nearer to the truth than what the cloud says. until ends when that changes.
func (o *Overlay) Holds() (yes bool, until context.Context) {
	if o == nil {
		return false, nil
	}
	return o.held.State()
}

// Owed is what a client that goes on at the cloud is shown before all else: what it may have from the store in a
// corrected form, as the cloud had it at that version.
func (o *Overlay) Owed(res relay.Resource, version uint64, objects func() iter.Seq[*wire.Object]) (all []*wire.Object) {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	name := res.String()
	if len(o.file.kept.Stored[name]) == 0 {
		return nil
	}
	for x := range objects() {
		if x.Version <= version && o.owes(name, x) {
			all = append(all, x)
		}
	}
	return all
}
