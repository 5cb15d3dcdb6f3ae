package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// leap is how far a relay's version goes in a minute only if somebody made it up: the cloud counts each of its writes.
const leap = 1 << 32

// ContradictionError says that the cloud contradicts what a relay holds, which came from another relay. It is no mere
// lag: the cloud was asked after the relay had come so far. It may be that the cloud was restored from a backup, and
// that who feeds the pool learns it next.
type ContradictionError struct {
	Proof   string
	witness *wire.Object // nil: the version alone
	history uint64
	version uint64
	count   bool // of objects; it is contradicted
}

func (e *ContradictionError) Error() string { return "the cloud contradicts: " + e.Proof }

// Held is the object that was compared, as the relay holds it; without a name its version and the number of objects
// were.
func (e *ContradictionError) Held() (namespace, name string, version uint64) {
	if e.witness == nil {
		return "", "", e.version
	}
	return e.witness.Namespace, e.witness.Name, e.witness.Version
}

// Sampler is what was compared of a relay so far. The zero value is ready; one goroutine uses it.
type Sampler struct {
	floor   uint64            // what changed until then was compared, or was there at the first look
	checked map[string]uint64 // versions of objects that changed since and were compared
	looks   int
}

// Sample compares what the relay holds, at the word of others, with the cloud, by small reads: how many objects there
// are, which shows what was added or is withheld; and each second time the metadata of one object out of those that
// changed and were not compared yet. The error is a *ContradictionError if the cloud proves the contrary. Nothing is
// asked if nothing changed. It cannot see an object whose content alone was forged.
func (f *Feeder) Sample(ctx context.Context, cloud *hop.Upstream, of *Sampler) error {
	s := f.cfg.Relay.Status()
	if !s.Synced || s.Restored || s.Version < of.floor { // in another history it begins again
		*of = Sampler{}
		return nil
	}
	if s.Version == of.floor {
		return nil
	}
	witness := f.unchecked(of)
	if leaps := s.Version-of.floor >= leap; witness == nil && !leaps {
		*of = Sampler{floor: s.Version}
		return nil
	} else if witness == nil || of.looks%2 == 0 || leaps {
		if err := f.contradicted(ctx, cloud, s, witness); err != nil {
			return err
		}
		of.note(witness, s.Version)
	}
	of.looks++
	return f.counted(ctx, cloud, s)
}

// note remembers that an object was compared. What is there at the first look is not asked for one by one.
func (of *Sampler) note(witness *wire.Object, reached uint64) {
	if of.floor == 0 || witness == nil {
		*of = Sampler{floor: reached, looks: -1} // the next one is compared at once
		return
	}
	if of.checked == nil {
		of.checked = map[string]uint64{}
	}
	of.checked[witness.Key] = witness.Version
}

// waits reports whether an object changed and was not compared.
func (of *Sampler) waits(o *wire.Object) bool {
	return o.Version > of.floor && of.checked[o.Key] != o.Version
}

// Confirm asks the cloud once more about what it contradicted. nil: the relay holds something else by now.
func (f *Feeder) Confirm(ctx context.Context, cloud *hop.Upstream, before *ContradictionError) error {
	s := f.cfg.Relay.Status()
	switch {
	case s.History.Number != before.history || before.witness != nil && !f.holds(before.witness):
		return nil
	case before.count:
		return f.counted(ctx, cloud, s)
	}
	return f.contradicted(ctx, cloud, s, before.witness)
}

// Compare compares one object with the cloud, or without a name the version and the number of objects, if the relay
// holds it in a version. known: it does.
func (f *Feeder) Compare(ctx context.Context, cloud *hop.Upstream, namespace, name string, version uint64) (
	known bool, err error) {
	s := f.cfg.Relay.Status()
	var witness *wire.Object
	for o := range f.cfg.Relay.Objects() {
		if name != "" && o.Namespace == namespace && o.Name == name && o.Version == version {
			witness = o
		}
	}
	if !s.Synced || name != "" && witness == nil || name == "" && s.Version < version {
		return false, nil
	}
	if err := f.contradicted(ctx, cloud, s, witness); err != nil || witness != nil {
		return true, err
	}
	return true, f.counted(ctx, cloud, s)
}

// Distrust makes the relay be listed again as soon as the cloud is the upstream: what it holds was forged.
func (f *Feeder) Distrust() {
	s := f.cfg.Relay.Status()
	f.Overrule(s.History.Next(s.Version).Number)
}

func (f *Feeder) contradicted(ctx context.Context, cloud *hop.Upstream, s relay.Status, witness *wire.Object) error {
	_, err := f.check(ctx, cloud, witness)
	var other *member.AnotherHistoryError
	if errors.As(err, &other) {
		return &ContradictionError{Proof: other.Proof, witness: witness, history: s.History.Number, version: s.Version}
	}
	return err
}

// counted compares how many objects the relay holds with how many there were in the cloud at that version. A cloud that
// has forgotten the version, or is ignored, says nothing.
func (f *Feeder) counted(ctx context.Context, cloud *hop.Upstream, s relay.Status) error {
	f.count(&f.status.Checks)
	n, known, err := cloud.CountAt(ctx, f.cfg.Relay.Resource(), s.Version)
	switch {
	case hop.Gone(err):
		return nil
	case err != nil:
		return err
	case known && n != s.Objects:
		proof := fmt.Sprintf("at version %d there were %d objects, not %d", s.Version, n, s.Objects)
		return &ContradictionError{Proof: proof, history: s.History.Number, version: s.Version, count: true}
	}
	return nil
}

// Unchecked is how many objects changed and were not compared. A leap of the version counts as more than any of these.
func (f *Feeder) Unchecked(of *Sampler) (n int) {
	if s := f.cfg.Relay.Status(); s.Version >= of.floor+leap {
		return math.MaxInt32
	}
	for o := range f.cfg.Relay.Objects() {
		if of.waits(o) {
			n++
		}
	}
	return n
}

// unchecked is an object out of those that changed and were not compared: the newest half of the time, since a lie is
// followed by more, or any one.
func (f *Feeder) unchecked(of *Sampler) (one *wire.Object) {
	newest, n := rand.N(2) == 0, 0
	for o := range f.cfg.Relay.Objects() {
		if !of.waits(o) {
			continue
		}
		n++
		if one == nil || newest && o.Version > one.Version || !newest && rand.N(n) == 0 {
			one = o
		}
	}
	return one
}

// holds reports whether the relay still holds an object as it was.
func (f *Feeder) holds(o *wire.Object) bool {
	for held := range f.cfg.Relay.Objects() {
		if held.Key == o.Key {
			return sameObject(held, o)
		}
	}
	return false
}
