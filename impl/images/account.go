package images

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/limit"
)

// Times of an account.
const (
	lookEvery  = 2 * time.Second // at the store
	renewEvery = 5 * time.Second // of pulls that are under way
	settles    = 3 * time.Second // a folder whose time is older has no change that its time does not show
)

// account is what a node says to the desk of its pool: what it holds, what it pulls, and from whom it could not read.
type account struct {
	store *Store
	pool  Pool // nil: the node is in none
	clock clock.PassiveClock
	quiet *limit.Quiet
	off   func() bool                  // the pool shares nothing
	words func() []exchange.Resolution // what registries said of tags to this node
	seen  *Metrics
	poke  chan struct{}

	mu      sync.Mutex
	desk    string // that knows what this node holds; "": none does
	holds   []exchange.Digest
	pulls   map[exchange.Digest]*pulled
	reports []exchange.ReadReport
	barred  []string // see Standing

	// of Run alone
	changed, listed, said time.Time
	now                   []exchange.Digest // in the store
	ended                 []exchange.Digest // pulls, without the blob
}

// pulled is a pull of this node.
type pulled struct {
	bytes int64
	at    time.Time // of the last new byte
	has   int64     // bytes at the last look; those before the pull are of a member, or counted
	alone bool      // nobody could be asked: its bytes count, and no member hears of it
}

// ask asks the desk. Reports that wait go with it.
func (a *account) ask(ctx context.Context, q exchange.ImagesAsk) (exchange.ImagesAnswer, error) {
	a.mu.Lock()
	q.Desk = a.desk
	q.Failed = append(q.Failed, a.reports...)
	a.reports = nil
	a.mu.Unlock()
	q.Failed = q.Failed[:min(len(q.Failed), maxReports)]
	answer, err := a.pool.Ask(ctx, q)
	if err == nil {
		a.hear(answer.Barred)
	}
	switch {
	case err == nil && !answer.Known && !q.Whole:
		a.stir()
	case err != nil && len(q.Failed) > 0:
		a.mu.Lock()
		a.reports = append(q.Failed, a.reports...)[:min(len(q.Failed)+len(a.reports), maxReports)]
		a.mu.Unlock()
	}
	return answer, err
}

// hear takes which members the desk does not listen to about tags.
func (a *account) hear(barred []string) {
	a.mu.Lock()
	before := a.barred
	a.barred = barred
	a.mu.Unlock()
	a.seen.barred.Set(float64(len(barred)))
	for _, node := range barred {
		if !slices.Contains(before, node) {
			a.quiet.Say(slog.LevelWarn, "barred "+node, "a member of the pool said something else of a tag than registries "+
				"said to two others: the pool does not listen to it for an hour", "node", node)
		}
	}
}

// maxReports bounds what waits to be said of others: a desk takes as many at a time.
const maxReports = 16

// report says of a member, with the next question, that it could not be read from.
func (a *account) report(r exchange.ReadReport) {
	a.mu.Lock()
	if len(a.reports) < maxReports {
		a.reports = append(a.reports, r)
	}
	a.mu.Unlock()
	a.stir()
}

// stir has Run look at once.
func (a *account) stir() {
	select {
	case a.poke <- struct{}{}:
	default:
	}
}

// begin notes that this node is to pull; alone: since nobody could be asked.
func (a *account) begin(d exchange.Digest, alone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pulls[d]
	switch {
	case p != nil:
		p.at, p.alone = a.clock.Now(), p.alone && alone
	case len(a.pulls) < exchange.MaxPulls:
		has, _, _ := a.store.Ingested(d)
		a.pulls[d] = &pulled{at: a.clock.Now(), has: has, alone: alone}
	}
}

// end notes that this node is to read from another one, and not to pull.
func (a *account) end(d exchange.Digest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pulls[d]; p != nil {
		_, _, _, _ = a.count(d, p) // what the store cannot tell is not counted
		delete(a.pulls, d)
	}
}

// count counts what came of a pull since the last look. A pull that began again counts again.
func (a *account) count(d exchange.Digest, p *pulled) (bytes int64, open, ended bool, err error) {
	bytes, ended = a.store.Size(d)
	if !ended {
		bytes, open, err = a.store.Ingested(d)
	}
	if err == nil {
		a.seen.Bytes.WithLabelValues(byRegistry).Add(float64(max(bytes-p.has, 0)))
		p.has = bytes
	}
	return bytes, open, ended, err
}

func (a *account) pulling(d exchange.Digest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pulls[d]
	return p != nil && !p.alone
}

// shown is how many pulls the pool knows, or is to.
func (a *account) shown() (n int) {
	for _, p := range a.pulls {
		if !p.alone {
			n++
		}
	}
	return n
}

// look looks at the store, and says what is due.
func (a *account) look(ctx context.Context) {
	now := a.clock.Now()
	a.list(now)
	pulls := a.progress(now)
	a.mu.Lock()
	q := exchange.ImagesAsk{Desk: a.desk, Pulls: pulls}
	q.Holds, q.Gone = differ(a.now, a.holds), append(differ(a.holds, a.now), a.ended...)
	a.ended = nil
	known, waiting := a.desk != "", len(a.reports) > 0
	a.mu.Unlock()
	since := now.Sub(a.said)
	switch {
	case waiting, len(q.Holds)+len(q.Gone) > 0 && known, since >= exchange.ImagesEvery:
	case since >= renewEvery && (!known || len(pulls) > 0):
	default:
		return
	}
	if !known || len(q.Holds) > exchange.MaxHolds || len(q.Gone) > exchange.MaxHolds {
		q.Whole, q.Holds, q.Gone, q.Resolved = true, a.now, nil, a.words()
	}
	if !a.say(ctx, q) {
		a.say(ctx, exchange.ImagesAsk{Pulls: pulls, Whole: true, Holds: a.now, Resolved: a.words()})
	}
}

// say says it. False: the desk is another one than before, and wants to be told all.
func (a *account) say(ctx context.Context, q exchange.ImagesAsk) bool {
	answer, err := a.ask(ctx, q)
	a.said = a.clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.quiet.Say(slog.LevelDebug, "say", "the pool cannot be told which images this node has", "err", err)
		a.desk = ""
		return true // there is nobody to tell
	}
	if !answer.Known {
		a.desk = ""
		return false
	}
	a.desk, a.holds = answer.Desk, a.now
	return true
}

// list reads the store again if it has changed.
func (a *account) list(now time.Time) {
	if a.off() { // the pool is told that there is nothing
		a.changed, a.now = time.Time{}, nil
		return
	}
	changed := a.store.Changed()
	if changed.Equal(a.changed) && a.listed.Sub(changed) > settles {
		return
	}
	all, err := a.store.List(exchange.MaxHolds)
	if err != nil {
		a.quiet.Say(slog.LevelWarn, "list", "the content store of containerd cannot be read", "root", a.store.Root, "err",
			err)
		return
	}
	a.changed, a.listed, a.now = changed, now, all
}

// progress is how far the pulls of this node are. Those that are complete, or stand still, end.
func (a *account) progress(now time.Time) (all []exchange.PullProgress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	off := a.off()
	for d, p := range a.pulls {
		bytes, open, complete, err := a.count(d, p)
		switch {
		case complete:
			delete(a.pulls, d)
			continue
		case err == nil && bytes > p.bytes:
			p.bytes, p.at = bytes, now
		case off, err != nil && !errors.Is(err, fs.ErrNotExist), now.Sub(p.at) >= exchange.PullSlow,
			now.Sub(p.at) >= exchange.PullStall && !open:
			delete(a.pulls, d)
			if !p.alone {
				a.ended = append(a.ended, d)
			}
			continue
		}
		if !p.alone {
			all = append(all, exchange.PullProgress{Digest: d, Bytes: p.bytes})
		}
	}
	return all
}

// differ are those of a that b does not have; both are sorted.
func differ(a, b []exchange.Digest) (out []exchange.Digest) {
	for _, d := range a {
		if _, ok := slices.BinarySearchFunc(b, d, compare); !ok {
			out = append(out, d)
		}
	}
	return out
}

func compare(a, b exchange.Digest) int { return cmp.Compare(string(a[:]), string(b[:])) }
