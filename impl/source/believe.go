package source

import (
	"context"
	"fmt"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// What a relay of the pool says of the cloud's history is unconfirmed: the leader of the pool, or its coordinator, may
// lie. It is believed within bounds, and no further than the cloud itself does not contradict while it can be asked.
// Against the cloud's own list it counts nothing.

// believe asks the cloud, if it can be reached, whether a relay can have reached a version in a history that is new to
// this one.
func (f *Feeder) believe(ctx context.Context, up *hop.Upstream, in relay.History, version uint64) error {
	cloud := f.judge()
	if cloud == nil {
		return nil
	}
	at, err := f.reaches(ctx, cloud)
	if err != nil {
		return fmt.Errorf("ask the cloud about history %d: %w", in.Number, err)
	}
	if at < version {
		err = fmt.Errorf("%s is at version %d of history %d, and the cloud at %d", up.Name, version, in.Number, at)
		f.doubted(err)
		return err
	}
	return nil
}

// intake begins to take a watch of an upstream.
func (f *Feeder) intake(up *hop.Upstream) *relay.Intake {
	i := relay.NewIntake(f.cfg.Relay)
	if up.Unconfirmed {
		i = relay.NewRefill(f.cfg.Relay)
	}
	if up.Progress {
		i.Bound()
	}
	return i
}

// room bounds a list of an upstream, if that is a relay.
func (f *Feeder) room(up *hop.Upstream) func(*wire.Object) error {
	if up.Progress {
		return f.cfg.Relay.Room().Take
	}
	return func(*wire.Object) error { return nil }
}

func (f *Feeder) judge() *hop.Upstream {
	if f.cfg.Judge == nil {
		return nil
	}
	return f.cfg.Judge()
}

func (f *Feeder) doubted(err error) {
	if f.cfg.Doubt != nil {
		f.cfg.Doubt(err)
	}
}

// reaches is the version that the cloud is at, by a consistent read of the metadata of one object.
func (f *Feeder) reaches(ctx context.Context, cloud *hop.Upstream) (uint64, error) {
	ctx, cancel := f.limit(ctx, cloud, f.cfg.WatchTimeout, fmt.Errorf("no answer after %v", f.cfg.WatchTimeout))
	defer cancel(nil)
	f.count(&f.status.Checks)
	at, _, err := f.look(ctx, cloud, nil, 0)
	if err != nil {
		return 0, cause(ctx, err)
	}
	return at, nil
}

// Ahead looks whether others of the pool can have reached a version that is later than the relay's, which is fed from
// the cloud. If the cloud has not, theirs is not its history: the relay goes on in the next one, with all that it
// holds, and they have to follow. Nothing is listed.
func (f *Feeder) Ahead(ctx context.Context, reached uint64) error {
	f.mu.Lock()
	up := f.up
	f.mu.Unlock()
	if up != nil && up.Name == Gate && f.cfg.Judge != nil { // which cannot be asked
		up = f.cfg.Judge()
	}
	if up == nil || !up.Consistent {
		return nil
	}
	s := f.cfg.Relay.Status()
	at, err := f.reaches(ctx, up)
	if err != nil {
		return fmt.Errorf("ask the cloud whether it has reached %d: %w", reached, err)
	}
	if at < reached {
		f.cfg.Logger.Error(
			"the pool holds a version that the cloud has not reached: it was made up, or the cloud was restored",
			"pool", reached, "cloud", at, "relay", s.Version)
		f.Renumber(s.History.Next(reached))
	}
	return nil
}

// Renumber goes on in another history with what the relay holds from the cloud.
func (f *Feeder) Renumber(h relay.History) {
	f.mu.Lock()
	f.overruled = min(f.overruled, h.Number)
	f.mu.Unlock()
	f.cfg.Relay.Renumber(h)
}
