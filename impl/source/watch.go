package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	// lag is how much later than its timeout a watch ends over a link that is not full.
	lag = 2 * time.Second
	// short is how soon a watch that showed nothing must not end: else an upstream that ends each at once is asked without
	// rest.
	short = time.Second
)

// errCheaper says that a list costs less than the rest of a watch.
var errCheaper = errors.New("a list costs less")

// watch feeds the relay from a version by one watch, which lasts so long. One that lasts longer than the ordinary ones
// is proved to live as a stream is. It is left once the rest of a backlog costs more than a list.
func (f *Feeder) watch(ctx context.Context, up *hop.Upstream, from uint64, lasts time.Duration) error {
	ctx, stop := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop(nil)
	began := alongside
	heard := make(chan struct{}, 1)
	if lasts > f.cfg.WatchTimeout {
		began = func(w *openWatch) { beside.Go(func() { stop(f.prove(ctx, up, w, heard)) }) }
	}
	intake, first := f.intake(up), true
	err := f.short(ctx, up, hop.Question{}, from, lasts, began, func(ev *wire.Event) error {
		select {
		case heard <- struct{}{}:
		default:
		}
		if first && up.Consistent {
			intake.Behind(f.asked.Load())
		}
		first = false
		if err := f.apply(intake, ev, up.Gzip); err != nil {
			return err
		}
		if f.plan.Cheaper(f.upstream(up), f.cfg.Relay.Status(), f.asked.Load()) {
			return errCheaper
		}
		return nil
	})
	if errors.Is(err, errCheaper) {
		return nil
	}
	return err
}

// apply hands an event to the relay. plain: it came uncompressed from where it might have been compressed.
func (f *Feeder) apply(intake *relay.Intake, ev *wire.Event, plain bool) error {
	if ev.Object != nil {
		f.plan.Came(f.cfg.Clock.Now(), len(ev.Object.Raw), plain)
	}
	return intake.Apply(ev)
}

// short opens a watch from a version that lasts so long, whole seconds, and hands its events to take. began is told
// when it is open. nil: the watch ended in order.
func (f *Feeder) short(ctx context.Context, up *hop.Upstream, q hop.Question, from uint64, lasts time.Duration,
	began func(*openWatch), take func(*wire.Event) error) error {
	limit := lasts + slack
	watching, cancel := f.limit(ctx, up, limit, fmt.Errorf("the upstream did not end the watch after %v: the link is dead",
		limit))
	defer cancel(nil)
	opened, shown := f.cfg.Clock.Now(), false
	q.Query = url.Values{
		"resourceVersion": {wire.FormatVersion(from)}, "timeoutSeconds": {strconv.Itoa(int(lasts / time.Second))},
	}
	w, err := f.open(watching, up, q)
	if err != nil {
		return err
	}
	defer w.body.Close()
	if err := f.trust(watching, up, w.conn); err != nil {
		return err
	}
	began(w)
	err = f.read(watching, up, w, func(ev *wire.Event) error {
		shown = true
		return take(ev)
	})
	if lasted := f.cfg.Clock.Since(opened); err == nil && (lasted < lasts-short || lasted > lasts+lag) {
		f.doubts() // its server ended it before its time, or the link holds back what it carries: how far is the cloud?
	}
	if err == nil && !shown && f.cfg.Clock.Since(opened) < short {
		return errors.New("the upstream ended the watch at once")
	}
	if err == nil && !shown && up.Consistent {
		return f.confirm(ctx, up)
	}
	return err
}

// alongside is for short, of a watch that needs nothing beside it.
func alongside(*openWatch) {}

// openWatch is a watch that was opened.
type openWatch struct {
	body       io.ReadCloser
	events     interface{ Next() (*wire.Event, error) }
	compressed bool
	history    relay.History // of an upstream that is a relay
	conn       net.Conn      // that it came over
	arrived    func() int64  // bytes of it so far
	taken      atomic.Int64  // of them when the last event was taken
}

// whole reports whether nothing of an event has come whose rest has not.
func (w *openWatch) whole() bool { return w.arrived() == w.taken.Load() }

// open opens a watch in the relay's history; the caller closes its body.
func (f *Feeder) open(ctx context.Context, up *hop.Upstream, q hop.Question) (*openWatch, error) {
	if s := f.cfg.Relay.Status(); s.Synced {
		q.History = &s.History
	}
	return f.openIn(ctx, up, q)
}

// openIn opens the watch that a question asks for.
func (f *Feeder) openIn(ctx context.Context, up *hop.Upstream, q hop.Question) (*openWatch, error) {
	f.count(&f.status.Watches)
	q.Query.Set("watch", "1")
	q.Query.Set("allowWatchBookmarks", "true")
	res := f.cfg.Relay.Resource()
	before := func(func(*wire.Object) bool) {}
	if q.Delta = up.Delta && q.Of == hop.Whole && !f.wholes.Swap(false); q.Delta && !q.Query.Has("sendInitialEvents") {
		before = f.cfg.Relay.Objects()
	}
	a, err := up.Get(ctx, res, q, follows(q.History))
	if err != nil {
		return nil, cause(ctx, err)
	}
	kind := res.WireKind()
	if q.Of == hop.Metadata {
		kind = hop.MetadataKind
	}
	w := &openWatch{body: a.Body, compressed: a.Compressed, history: a.History, conn: a.Conn, arrived: a.Arrived}
	if a.Delta {
		r := wire.NewDeltaReader(a.Body, res.Encoding(), kind, before)
		if q.Since > 0 {
			r.Has(f.cfg.Relay.Objects())
		}
		w.events = r
	} else {
		w.events = wire.NewEventReader(a.Body, res.Encoding(), kind)
	}
	return w, nil
}

// read hands the events of a watch to take until it ends. nil: it ended in order.
func (f *Feeder) read(ctx context.Context, up *hop.Upstream, w *openWatch, take func(*wire.Event) error) error {
	for {
		ev, err := w.events.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if broken := (*wire.MalformedError)(nil); errors.Is(err, wire.ErrBase) || errors.As(err, &broken) {
			f.wholes.Store(true) // the next watch brings objects
		}
		if errors.Is(err, wire.ErrBase) {
			f.count(&f.status.Mismatches)
			f.cfg.Logger.Warn("a difference is to what is not here; it is asked for whole", "upstream", up.Name, "err", err)
			return err
		}
		if err != nil {
			return cause(ctx, err)
		}
		if ev.Type == wire.Error {
			return hop.FromStatus(ev.Status)
		}
		if err := up.Admits(); err != nil {
			return err
		}
		if err := take(ev); err != nil {
			return err
		}
		w.taken.Store(w.arrived())
		if up.Consistent {
			f.cfg.Pulse.sign(w.conn, f.cfg.Clock.Now())
		}
		f.works(up)
	}
}
