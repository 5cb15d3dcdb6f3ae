package source

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// returning is the time after a start from the disk in which clients come back that have seen more than it held.
const returning = 2 * time.Minute

// tellMost is how many objects are asked about that metadata do not tell enough of.
const tellMost = 16

// traced opens a compressed stream for a relay that misses something, and beside it a watch of what it missed.
func (f *Feeder) traced(ctx context.Context, up *hop.Upstream, s relay.Status) error {
	settle, end := f.way(ctx, up, s)
	defer end()
	return f.streamList(ctx, up, nil, settle, member.CauseCheaper)
}

// partly tells who can say what led to a state of the pool's, to clients that have seen a part of it; nil if nobody
// can, or no client has. After a start from a disk that lacks its last changes, a coordinator that began from nothing
// cannot: it knows no more of the way than the list does. The cloud can, of which a hub that starts may not know yet
// that it is there.
func (f *Feeder) partly(ctx context.Context, up *hop.Upstream) *hop.Upstream {
	if up.Consistent || f.cfg.Judge == nil || f.restored.IsZero() || f.cfg.Clock.Since(f.restored) > returning {
		return nil
	}
	for f.judge() == nil && ctx.Err() == nil && f.cfg.Clock.Since(f.restored) < slack {
		process.Pause(ctx, f.cfg.Clock, slack/20)
	}
	return f.judge()
}

// way follows by metadata what an upstream says that happened since a state of the relay, until end is called. A list
// tells a client what it has not seen if the client has just what the relay has. But after a loss of power clients have
// seen more than the disk held, and so have hubs of the pool whose disks held more: with the trail of what happened
// they go on where they are, and none of them lists.
//
// The trail costs no more than a list does. What is behind that are the changes of a long time, of which no client has
// seen any.
func (f *Feeder) way(ctx context.Context, up *hop.Upstream, s relay.Status) (settle settle, end func()) {
	trail, stepped, over := mvcc.NewTrail(s.Version), make(chan struct{}, 1), make(chan struct{})
	tracing, stop := context.WithCancel(ctx)
	go func() {
		defer close(over)
		f.trace(tracing, up, trail, member.TrailLimit(s), stepped)
	}()
	settle = func(version uint64, items []*wire.Object) *mvcc.Trail {
		defer stop()
		waiting, cancel := f.limit(tracing, up, slack,
			fmt.Errorf("what led to version %d is not known after %v", version, slack))
		defer cancel(nil)
		newest := s.Version
		for _, o := range items {
			newest = max(newest, o.Version)
		}
		for known := false; !known && trail.Reached() < newest; {
			select {
			case <-stepped:
			case <-over:
				known = true
			case <-waiting.Done():
				return trail
			}
		}
		if unclear, ok := f.cfg.Relay.Unclear(trail, version, items); ok && len(unclear) <= tellMost {
			f.tell(waiting, up, trail, s.Version, unclear)
		}
		return trail
	}
	return settle, func() {
		stop()
		<-over
	}
}

// tell lets a trail know all that happened behind a version to objects of which metadata do not tell enough. What does
// not come in time is not known.
func (f *Feeder) tell(ctx context.Context, up *hop.Upstream, trail *mvcc.Trail, from uint64,
	unclear map[string]uint64) {
	var all sync.WaitGroup
	defer all.Wait()
	for key, last := range unclear {
		all.Go(func() {
			namespace, name, found := strings.Cut(key, "/")
			if !found {
				namespace, name = "", key
			}
			w, err := f.openIn(ctx, up, hop.Question{Namespace: namespace, Aside: true, Query: url.Values{
				"fieldSelector": {"metadata.name=" + name}, "resourceVersion": {wire.FormatVersion(from)},
				"timeoutSeconds": {strconv.Itoa(int(f.cfg.WatchTimeout / time.Second))},
			}})
			if err != nil {
				return
			}
			defer w.body.Close()
			var events []*wire.Event
			room := f.cfg.Relay.Room()
			_ = f.read(ctx, up, w, func(ev *wire.Event) error {
				if ev.Type == wire.Bookmark {
					return nil
				}
				events = append(events, ev)
				if last == 0 && ev.Type == wire.Deleted || last != 0 && ev.Version >= last {
					trail.Tell(key, events)
					return errEnough
				}
				return room.Take(ev.Object)
			})
		})
	}
}

// trace follows by metadata what happened from where a trail begins, until ctx ends or so many bytes were read. Where
// it fails, the trail ends.
func (f *Feeder) trace(ctx context.Context, up *hop.Upstream, trail *mvcc.Trail, most int64, stepped chan<- struct{}) {
	for ctx.Err() == nil {
		err := f.short(ctx, up, hop.Question{Of: hop.Metadata, Aside: true}, trail.Reached(), f.cfg.WatchTimeout,
			alongside, func(ev *wire.Event) error {
				if ev.Object != nil {
					most -= int64(len(ev.Object.Raw))
				}
				if !trail.Step(ev) || most < 0 {
					return errEnough
				}
				select {
				case stepped <- struct{}{}:
				default:
				}
				return nil
			})
		if err != nil {
			return
		}
	}
}
