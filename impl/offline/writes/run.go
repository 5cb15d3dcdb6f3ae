package writes

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/member"
)

// maxRetry is the longest pause between two tries to push what waits.
const maxRetry = 30 * time.Second

// comeback is the return of a node to the cloud.
type comeback struct {
	waiting
	changed chan struct{} // wakes Run

	mu   sync.Mutex
	turn turn
}

func newComeback(c Config) comeback {
	q := c.Store.Queue()
	return comeback{
		waiting: waiting{Config: c, queue: q, written: make(chan struct{}, 1)}, changed: make(chan struct{}, 1),
		turn: newTurn(c.Spread, c.Patience, rand.New(rand.NewPCG(c.Seed, 31)), c.Clock.Now(), q.Len() > 0),
	}
}

// Changed says that Reach may give another answer. It never blocks.
func (w *comeback) Changed() { poke(w.changed) }

// Renewing says that Config.Cloud is about to have new credentials, and done that it has. What it did not take for the
// old ones is then tried at once, and clients are held back until it has; also if Patience was over, since nobody of
// this node could see the cloud's state meanwhile. Neither blocks.
func (w *comeback) Renewing() (done func()) {
	w.mu.Lock()
	moved := w.turn.again(w.Clock.Now(), w.queue.Statuses())
	w.mu.Unlock()
	if moved {
		w.Moved()
		poke(w.changed)
	}
	return func() { poke(w.written) }
}

// Phase is how far the return to the cloud has come.
func (w *comeback) Phase() Phase {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.turn.phase
}

// Holding reports whether the cloud is back, or may be, and this node's clients should not see its latest state yet:
// they are to be answered as if it were away, where that is possible.
func (w *comeback) Holding() bool {
	p := w.Phase()
	return w.Reach() != member.CloudAway && p != Open
}

// Run brings to the cloud what waits, until ctx ends.
func (w *comeback) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.watch(ctx) })
	g.Go(func() error { return w.drain(ctx) })
	return g.Wait()
}

// watch follows the cloud.
func (w *comeback) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		at, due := w.see()
		w.rest(ctx, at.Sub(w.Clock.Now()), due, w.changed)
	}
	return nil
}

// rest waits until it is woken, or for some time, if that is limited.
func (w *comeback) rest(ctx context.Context, d time.Duration, limited bool, woken <-chan struct{}) {
	var over <-chan time.Time
	if limited {
		t := w.Clock.NewTimer(max(d, 0))
		defer t.Stop()
		over = t.C()
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-woken:
	}
}

func (w *comeback) see() (wake time.Time, due bool) {
	reach := w.Reach()
	w.mu.Lock()
	before := w.turn.phase
	w.turn.see(w.Clock.Now(), reach, w.queue.Statuses())
	now := w.turn.phase
	wake, due = w.turn.wake()
	w.mu.Unlock()
	if before != now {
		w.tell(before, now, wake)
		w.Moved()
		poke(w.written)
	}
	return wake, due
}

func (w *comeback) tell(before, now Phase, until time.Time) {
	switch {
	case now == Apart:
		w.Logger.Warn("the cloud is away: statuses and events of this node are kept until it is back", "node", w.Node)
	case before == Apart && now == Waiting:
		w.Logger.Info("the cloud is back: what waits is pushed when it is this node's turn", "entries", w.queue.Len(),
			"turn", until.UTC().Format(time.RFC3339Nano), "seed", w.Seed)
	case now == Open && w.queue.Statuses() > 0:
		w.Logger.Warn("not all statuses that waited could be pushed in time: clients see the cloud's latest state "+
			"before they are", "statuses", w.queue.Statuses())
	case now == Open:
		w.Logger.Info("clients see the cloud's latest state again", "eventsThatWait", w.queue.Len())
	}
}

// drain pushes what waits whenever that is possible.
func (w *comeback) drain(ctx context.Context) error {
	wait, last := firstRetry, Apart
	for ctx.Err() == nil {
		phase := w.Phase()
		if phase != last {
			wait, last = firstRetry, phase
		}
		var err error
		if w.queue.Len() > 0 && w.Reach() != member.CloudAway && phase >= Pushing {
			began := w.queue.Stats()
			if err = w.push(ctx, phase); err == nil {
				wait = firstRetry
			} else if ctx.Err() == nil {
				w.Logger.Info("what waits for the cloud could not be pushed; it is tried again", "err", err, "again", wait)
			}
			if now := w.queue.Stats(); now.Pushed+now.Dropped+now.Unneeded > began.Pushed+began.Dropped+began.Unneeded {
				w.Logger.Info("writes of before were pushed to the cloud", "pushed", now.Pushed-began.Pushed,
					"dropped", now.Dropped-began.Dropped,
					"alreadyThere", now.Unneeded-began.Unneeded, "left", now.Entries)
			}
		}
		poke(w.changed) // there may be no status left
		w.rest(ctx, wait, err != nil, w.written)
		if err != nil {
			wait = min(2*wait, maxRetry)
		}
	}
	return nil
}

func (w *comeback) push(ctx context.Context, p Phase) error {
	c := &cloud{Config: w.Config}
	if err := w.queue.DrainStatuses(ctx, c); err != nil || p < Open {
		return err
	}
	return w.queue.Drain(ctx, c)
}
