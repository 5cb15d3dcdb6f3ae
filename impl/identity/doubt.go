package identity

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// askAfter is when the hub asks about a denial: so much later that the answer tells, see Stands.
	askAfter = Stands + 2*time.Second
	// askTimeout bounds one question, maxAsked how often one is asked that brings no answer, maxDoubts those that wait.
	// Further denials wait for their callers to ask again.
	askTimeout = 10 * time.Second
	maxAsked   = 20
	maxDoubts  = 64
)

// Ask asks the cloud whether a caller with these credentials may read, and says what it answered: 200, 403 or 401.
// certified means the node, by its certificate.
type Ask func(ctx context.Context, credentials http.Header, certified bool, a Attributes) (code int, err error)

// doubts are denials that do not stand yet, of what is valid without the cloud. Their callers may never ask again, so
// the hub does, once, in their name: who is denied, and leaves it at that, must not be let in when the cloud is away.
type doubts struct {
	ask   Ask // nil: nobody asks
	clock clock.Clock
	more  chan struct{} // has one when there may be something to do

	mu  sync.Mutex
	all map[digest]*doubt // by what is denied to whom
}

// doubt is one of them, with what it takes to ask. It is in memory only.
type doubt struct {
	credentials http.Header
	certified   bool
	read        Attributes
	pending     func() bool // the cloud has not decided it since
	due         time.Time
	asked       int
}

func newDoubts(ask Ask, c clock.Clock) *doubts {
	return &doubts{ask: ask, clock: c, more: make(chan struct{}, 1), all: map[digest]*doubt{}}
}

// add notes a denial, unless it is there, or there are too many.
func (d *doubts) add(name digest, header http.Header, certified bool, a Attributes, pending func() bool) {
	if d.ask == nil || !pending() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) >= maxDoubts || d.all[name] != nil {
		return
	}
	credentials := http.Header{}
	for key, values := range header {
		if key == "Authorization" || strings.HasPrefix(key, "Impersonate-") {
			credentials[key] = slices.Clone(values)
		}
	}
	d.all[name] = &doubt{
		credentials: credentials, certified: certified, read: a, pending: pending, due: d.clock.Now().Add(askAfter),
	}
	select {
	case d.more <- struct{}{}:
	default:
	}
}

func (d *doubts) len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// due gives what is to be asked now, and drops what the cloud has decided meanwhile.
func (d *doubts) due() (all []*doubt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	for name, x := range d.all {
		switch {
		case !x.pending() || x.asked >= maxAsked:
			delete(d.all, name)
		case !now.Before(x.due):
			x.due, x.asked = now.Add(askAfter), x.asked+1 // again, if that brings no answer
			all = append(all, x)
		}
	}
	return all
}

// askAgain asks the cloud about denials that do not stand yet, until ctx ends.
func (j *Judge) askAgain(ctx context.Context) error {
	for {
		if j.doubts.len() == 0 {
			select {
			case <-j.doubts.more:
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case <-j.Clock.After(Stands / 10):
		case <-ctx.Done():
			return nil
		}
		if j.Away() {
			continue
		}
		for _, x := range j.doubts.due() {
			asking, cancel := context.WithTimeout(ctx, askTimeout)
			code, err := j.doubts.ask(asking, x.credentials, x.certified, x.read)
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				j.Logger.Debug("the cloud cannot be asked whether it still denies a read", "read", x.read.String(), "err", err)
			}
			if err == nil {
				j.Learn(x.credentials, x.certified, x.read, code)
			}
		}
	}
}
