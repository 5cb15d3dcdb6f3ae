package relayed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	// askUnknown is how long a cloud is waited for of which nobody knows yet whether it is there.
	askUnknown = time.Second
	// askSpacing is the time between two questions for the version of one resource, however many reads want one.
	askSpacing = 250 * time.Millisecond

	// maxAsked is how many objects are asked for because of one read; for more, the version of the whole resource is.
	maxAsked = 8
)

// Consistency sees to it that a read with unset resourceVersion that a relay answers shows what was written through
// this hub (owed), and nothing that is older than the hub allows (vintage). kube-apiserver would answer it from its
// etcd; a relay cannot. So the read waits for the relay, and for what it has to wait only the cloud may know: it is
// asked, once for all who want to know, by a read of one object's metadata. That is some hundred bytes, and at most
// four a second and resource, whatever clients do; a question about one object follows a write of it, which cost more.
type Consistency struct {
	maxStale time.Duration
	cloud    *hop.Upstream
	way      way
	clock    clock.WithTicker
	ctx      context.Context // bounds questions, which outlive the read that began them
	count    func(about, outcome string)

	mu   sync.Mutex
	held map[*relay.Relay]*held
}

// held is what is known of one relayed resource.
type held struct {
	relay *relay.Relay
	owed  *owed
	age   *vintage
	lists chan struct{} // one list at a time goes to the cloud because its relay is behind
}

// way is what is known of the way to the cloud.
type way interface {
	Reach() member.Reach
	Patience() time.Duration // how long a cloud is waited for of which nothing is known
}

// NewConsistency makes what nobody has written through yet.
func NewConsistency(maxStale time.Duration, cloud *hop.Upstream, via way, c clock.WithTicker,
	count func(about, outcome string)) *Consistency {
	return &Consistency{
		maxStale: maxStale, cloud: cloud, way: via, clock: c, ctx: context.Background(), count: count,
		held: map[*relay.Relay]*held{},
	}
}

// of is what is known of a resource.
func (c *Consistency) of(r *relay.Relay) *held {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[r]
	if h == nil {
		h = &held{
			relay: r, owed: &owed{relay: r, clock: c.clock, facts: map[string]*fact{}},
			age:   &vintage{relay: r, clock: c.clock, max: c.maxStale},
			lists: make(chan struct{}, 1),
		}
		c.held[r] = h
	}
	return h
}

// Forget forgets a relay that answers no more.
func (c *Consistency) Forget(r *relay.Relay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, r)
}

// Start binds questions to the life of the hub.
func (c *Consistency) Start(ctx context.Context) { c.ctx = ctx }

// Reset forgets what was written: the cloud is in another history.
func (c *Consistency) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.held {
		h.owed.reset()
	}
}

// Age is the time since what a relay holds was known to be all there was; ok is false if it never was.
func (c *Consistency) Age(r *relay.Relay) (age time.Duration, ok bool) { return c.of(r).age.age() }

// Old reports whether a read with unset version may not show what a relay holds.
func (c *Consistency) Old(r *relay.Relay) bool { return c.of(r).age.old() }

// Current waits until the relay shows what a read with unset version has to show; false if it does not within
// waitWritten. While the cloud is away, what only the cloud can tell is left, and the answer tells its age.
func (c *Consistency) Current(ctx context.Context, t *Target) bool {
	h := c.of(t.Relay)
	r, o, v := h.relay, h.owed, h.age
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
	if c.way.Reach() == member.CloudAway {
		facts, doubt, old = nil, false, false
	}
	if len(facts) > maxAsked {
		o.doubtAll(facts)
		facts, doubt = nil, true
	}
	g, asking := errgroup.WithContext(ctx)
	for _, f := range facts {
		g.Go(func() error { return c.askObject(asking, h, f) })
	}
	if doubt {
		g.Go(func() error { return c.askVersion(asking, h) })
	}
	if g.Wait() != nil {
		return false
	}
	if old && v.worthAsking() {
		asking, stop := ctx, context.CancelFunc(func() {})
		if c.way.Reach() == member.CloudUnknown {
			asking, stop = context.WithTimeout(ctx, c.way.Patience())
		}
		_ = c.askVersion(asking, h) // if it cannot tell, the answer tells its age
		stop()
	}
	if old && v.lags() { // others have waited already
		return false
	}
	return r.WaitUntil(ctx, func() bool { return o.shown(t) && (!old || !v.old() || !v.asked()) }) == nil
}

// Ahead notes that a client has seen a version that the relay has not reached: reads with unset version must not show
// less than that later.
func (c *Consistency) Ahead(t *Target, version uint64) {
	if s := t.Relay.Status(); s.Synced && version > s.Version {
		c.of(t.Relay).owed.doubt("")
	}
}

// askVersion asks for the version that the cloud is at, or waits for somebody who began to ask after the doubts that
// there are now.
func (c *Consistency) askVersion(ctx context.Context, h *held) error {
	o, v := h.owed, h.age
	for need := o.doubtful(); ; {
		q := v.asks(func(q *question) { go c.version(h, q) })
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
func (c *Consistency) version(h *held, q *question) {
	o, v := h.owed, h.age
	defer v.answered(q)
	process.Pause(c.ctx, c.clock, askSpacing-c.clock.Since(q.last))
	q.covers, q.began = o.doubtful(), c.clock.Now()
	q.version, _, q.err = c.look(h, "", "")
	if q.err == nil {
		o.solve(q.covers, q.version)
	}
}

// askObject asks for one object.
func (c *Consistency) askObject(ctx context.Context, h *held, f *fact) error {
	o := h.owed
	done := o.asks(f, func() {
		go func() {
			namespace, name, namespaced := strings.Cut(f.key, "/")
			if !namespaced {
				namespace, name = "", f.key
			}
			version, found, err := c.look(h, namespace, name)
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

func (c *Consistency) look(h *held, namespace, name string) (version uint64, found *wire.Object, err error) {
	limit := waitWritten
	if c.way.Reach() != member.CloudHere {
		limit = askUnknown
	}
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	version, found, err = c.cloud.Look(ctx, h.relay.Resource(), namespace, name)
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

// Pass lets a read go to the cloud because its relay is behind, until the function returned is called. A get may, and
// one list at a time: of many clients that list at once, as after a restart, each would fetch everything over the
// uplink that the relay needs for that. So the others are told to come again, and so are watches: what the cloud sent
// them would come beside the relay for as long as they last.
func (c *Consistency) Pass(t *Target) (done func(), refusal *apierrors.StatusError) {
	lists := c.of(t.Relay).lists
	switch t.Verb {
	case "get":
		return func() {}, nil
	case "list":
		select {
		case lists <- struct{}{}:
			return func() { <-lists }, nil
		default:
		}
	}
	return nil,
		apierrors.NewTimeoutError(
			fmt.Sprintf(
				"the cache of %s is behind the cloud and catches up; try again, or read with resourceVersion=0 what there is",
				t.Relay.Resource()), answer.RetryLater)
}
