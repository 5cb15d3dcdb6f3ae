package source

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// leap is how far a relay's version goes in a minute only if somebody made it up: the cloud counts each of its writes.
const leap = 1 << 32

// ContradictionError says that the cloud contradicts what a relay holds, which came from another relay. It is no mere lag: the cloud was
// asked after the relay had come so far. It may be that the cloud was restored from a backup, and that who feeds the pool learns it next.
type ContradictionError struct {
	Proof   string
	witness *wire.Object // nil: the version alone
	history uint64
	version uint64
}

func (e *ContradictionError) Error() string { return "the cloud contradicts: " + e.Proof }

// Held is the object that was compared, as the relay holds it; without a name the version of the relay alone was.
func (e *ContradictionError) Held() (namespace, name string, version uint64) {
	if e.witness == nil {
		return "", "", e.version
	}
	return e.witness.Namespace, e.witness.Name, e.witness.Version
}

// Sample compares what the relay holds, at the word of others, with the cloud: the metadata of one object out of those that changed after a
// version. It returns the version up to which there is nothing more to compare, and a *ContradictionError if the cloud proves the contrary.
// Nothing is asked if nothing changed. It cannot see an object whose content alone was forged, nor one that is withheld.
func (f *Feeder) Sample(ctx context.Context, cloud *hop.Upstream, since uint64) (uint64, error) {
	s := f.cfg.Relay.Status()
	if !s.Synced || s.Restored || s.Version <= since {
		return min(since, s.Version), nil
	}
	witness := f.changed(since)
	if witness == nil && s.Version-since < leap {
		return s.Version, nil
	}
	return s.Version, f.contradicted(ctx, cloud, s, witness)
}

// Confirm asks the cloud once more about what it contradicted. nil: the relay holds something else by now.
func (f *Feeder) Confirm(ctx context.Context, cloud *hop.Upstream, before *ContradictionError) error {
	s := f.cfg.Relay.Status()
	if s.History.Number != before.history || before.witness != nil && !f.holds(before.witness) {
		return nil
	}
	return f.contradicted(ctx, cloud, s, before.witness)
}

// Compare compares one object with the cloud, or without a name the version alone, if the relay holds it in a version. known: it does.
func (f *Feeder) Compare(ctx context.Context, cloud *hop.Upstream, namespace, name string, version uint64) (known bool, err error) {
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
	return true, f.contradicted(ctx, cloud, s, witness)
}

// Distrust makes the relay be listed anew as soon as the cloud is the upstream: what it holds was forged.
func (f *Feeder) Distrust() {
	s := f.cfg.Relay.Status()
	f.Overrule(s.History.Next(s.Version).Number)
}

func (f *Feeder) contradicted(ctx context.Context, cloud *hop.Upstream, s relay.Status, witness *wire.Object) error {
	_, err := f.check(ctx, cloud, witness)
	var other *historyError
	if errors.As(err, &other) {
		return &ContradictionError{other.proof, witness, s.History.Number, s.Version}
	}
	return err
}

// changed is an object out of those that changed after a version: the newest half of the time, since a lie is followed by more, or any one.
func (f *Feeder) changed(since uint64) (one *wire.Object) {
	newest, n := rand.N(2) == 0, 0
	for o := range f.cfg.Relay.Objects() {
		if o.Version <= since {
			continue
		}
		n++
		if one == nil || newest && o.Version > one.Version || !newest && rand.N(n) == 0 {
			one = o
		}
	}
	return one
}

// holds tells whether the relay still holds an object as it was.
func (f *Feeder) holds(o *wire.Object) bool {
	for held := range f.cfg.Relay.Objects() {
		if held.Key == o.Key {
			return sameObject(held, o)
		}
	}
	return false
}
