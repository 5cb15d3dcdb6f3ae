package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/offline/writes"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
)

const (
	// waitWritten is how long a read waits for the relay, as long as kube-apiserver lets a read wait for its cache.
	waitWritten = 3 * time.Second
	// askUnknown is how long a cloud is waited for of which nobody knows yet whether it is there.
	askUnknown = time.Second
	// askSpacing is the time between two questions for the version of one resource, however many reads want one.
	askSpacing = 250 * time.Millisecond
	// askAgain is how long nobody asks how old a relay is after the cloud did not answer that.
	askAgain = 5 * time.Second
	// maxAsked is how many objects are asked for because of one read; for more, the version of the whole resource is.
	maxAsked = 8
)

// consistency sees to it that a read with unset resourceVersion that a relay answers shows what was written through this hub (owed), and nothing
// that is older than --max-stale-read (vintage). kube-apiserver would answer it from its etcd; a relay cannot. So the read waits for the relay, and for what it
// has to wait only the cloud may know: it is asked, once for all who want to know, by a read of one object's metadata. That is some hundred bytes, and
// at most four a second and resource, whatever clients do; a question about one object follows a write of it, which cost more.
type consistency struct {
	relays []*relay.Relay
	owed   []*owed    // by target.index, as relays
	ages   []*vintage // likewise
	cloud  *source.Upstream
	reach  func() writes.Reach
	// patience is how long a cloud is waited for of which nothing is known.
	patience func() time.Duration
	clock    clock.WithTicker
	ctx      context.Context // bounds questions, which outlive the read that began them
	lists    []chan struct{} // one list at a time goes to the cloud because its relay is behind
	count    func(about, outcome string)
}

func newConsistency(relays []*relay.Relay, maxStale time.Duration, cloud *source.Upstream, reach func() writes.Reach, patience func() time.Duration, c clock.WithTicker, count func(about, outcome string)) *consistency {
	k := &consistency{relays: relays, cloud: cloud, reach: reach, patience: patience, clock: c, ctx: context.Background(), count: count}
	for _, r := range relays {
		k.owed = append(k.owed, &owed{relay: r, clock: c, facts: map[string]*fact{}})
		k.ages = append(k.ages, &vintage{relay: r, clock: c, max: maxStale})
		k.lists = append(k.lists, make(chan struct{}, 1))
	}
	return k
}

// start binds questions to the life of the hub.
func (c *consistency) start(ctx context.Context) { c.ctx = ctx }

// reset forgets what was written: the cloud is in another history.
func (c *consistency) reset() {
	for _, o := range c.owed {
		o.reset()
	}
}

// current waits until the relay shows what a read with unset version has to show; false if it does not within waitWritten. While the cloud is away,
// what only the cloud can tell is left, and the answer tells its age.
func (c *consistency) current(ctx context.Context, t *target) bool {
	r, o, v := c.relays[t.index], c.owed[t.index], c.ages[t.index]
	if s := r.Status(); !s.Synced || s.Denied != "" {
		return true // it says so itself, or the cloud answers
	}
	facts, doubt := o.unknown(t)
	old := v.old()
	if !old && !doubt && len(facts) == 0 && o.shown(t) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, waitWritten)
	defer cancel()
	if c.reach() == writes.Away {
		facts, doubt, old = nil, false, false
	}
	if len(facts) > maxAsked {
		o.doubtAll(facts)
		facts, doubt = nil, true
	}
	g, asking := errgroup.WithContext(ctx)
	for _, f := range facts {
		g.Go(func() error { return c.askObject(asking, t.index, f) })
	}
	if doubt {
		g.Go(func() error { return c.askVersion(asking, t.index) })
	}
	if g.Wait() != nil {
		return false
	}
	if old && v.worthAsking() {
		asking, stop := ctx, context.CancelFunc(func() {})
		if c.reach() == writes.Unknown {
			asking, stop = context.WithTimeout(ctx, c.patience())
		}
		_ = c.askVersion(asking, t.index) // if it cannot tell, the answer tells its age
		stop()
	}
	if old && v.lags() { // others have waited already
		return false
	}
	return r.WaitUntil(ctx, func() bool { return o.shown(t) && (!old || !v.old() || !v.asked()) }) == nil
}

// ahead notes that a client has seen a version that the relay has not reached: reads with unset version must not show less than that later.
func (c *consistency) ahead(t *target, version uint64) {
	if s := c.relays[t.index].Status(); s.Synced && version > s.Version {
		c.owed[t.index].doubt("")
	}
}

// askVersion asks for the version that the cloud is at, or waits for somebody who began to ask after the doubts that there are now.
func (c *consistency) askVersion(ctx context.Context, index int) error {
	o, v := c.owed[index], c.ages[index]
	for need := o.doubtful(); ; {
		q := v.asks(func(q *question) { go c.version(index, q) })
		select {
		case <-q.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if q.covers >= need {
			return q.err
		}
	}
}

// version is a question for the version that the cloud is at.
func (c *consistency) version(index int, q *question) {
	o, v := c.owed[index], c.ages[index]
	defer v.answered(q)
	sleep(c.ctx, c.clock, askSpacing-c.clock.Since(q.last))
	q.covers, q.began = o.doubtful(), c.clock.Now()
	q.version, _, q.err = c.look(index, "", "")
	if q.err == nil {
		o.solve(q.covers, q.version)
	}
}

// askObject asks for one object.
func (c *consistency) askObject(ctx context.Context, index int, f *fact) error {
	o := c.owed[index]
	done := o.asks(f, func() {
		go func() {
			namespace, name, namespaced := strings.Cut(f.key, "/")
			if !namespaced {
				namespace, name = "", f.key
			}
			version, found, err := c.look(index, namespace, name)
			o.learn(f, version, found, err)
		}()
	})
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !o.knows(f) {
		return errors.New("the cloud did not tell")
	}
	return nil
}

func (c *consistency) look(index int, namespace, name string) (version uint64, found *wire.Object, err error) {
	limit := waitWritten
	if c.reach() != writes.Here {
		limit = askUnknown
	}
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	version, found, err = c.cloud.Look(ctx, c.relays[index].Resource(), namespace, name)
	about, outcome := "version", "answered"
	if name != "" {
		about = "object"
	}
	if err != nil {
		outcome = "failed"
	}
	c.count(about, outcome)
	return version, found, err
}

// pass lets a read go to the cloud because its relay is behind, until the function returned is called. A get may, and one list at a time: of many
// clients that list at once, as after a restart, each would fetch everything over the uplink that the relay needs for that. So the others are told to
// come again, and so are watches: what the cloud sent them would come beside the relay for as long as they last.
func (c *consistency) pass(t *target) (done func(), refusal *apierrors.StatusError) {
	switch t.Verb {
	case "get":
		return func() {}, nil
	case "list":
		select {
		case c.lists[t.index] <- struct{}{}:
			return func() { <-c.lists[t.index] }, nil
		default:
		}
	}
	return nil, apierrors.NewTimeoutError(fmt.Sprintf("the cache of %s is behind the cloud and catches up; try again, or read with resourceVersion=0 what there is",
		c.relays[t.index].Resource()), retryLater)
}
