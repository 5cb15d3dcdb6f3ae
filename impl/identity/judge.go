package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/weir-edge/weir/impl/limit"
)

// Defaults of Config.
const (
	DefaultAllowance = 24 * time.Hour
	DefaultTTL       = 7 * 24 * time.Hour
)

// Config is what a Judge judges by.
type Config struct {
	// Node is the name of this node.
	Node string
	// Cloud sends requests as the hub, Callers with the token that they carry; Run asks them for keys.
	Cloud, Callers http.RoundTripper
	// Shared asks the pool for the keys that another hub has, nil: there are none, but if wait is true there may be soon.
	// May be nil: there is no pool.
	Shared func(context.Context) (raw []byte, wait bool)
	// Found is called when keys came from the cloud. May be nil.
	Found func()
	// Documents keeps the keys and the audiences of tokens, nil for no longer than the process lives. A *store.Store is
	// one.
	Documents Documents
	// Pods knows the pods of this node, see PodsOf. If it is nil, nothing is kept of them, and a token must name this node
	// itself.
	Pods Pods
	// File is where decisions are kept, "" for nowhere.
	File string
	// Allowance is how long after its end a token is still valid. 0 is none.
	Allowance time.Duration
	// TTL is how long a decision counts for others than the node. Default DefaultTTL.
	TTL time.Duration
	// Away reports whether the cloud is away. Default: it never is. Unbroken is for how long it has been there without
	// a break, as far as connections show. Default: for ever.
	Away     func() bool
	Unbroken func() time.Duration
	// Ask asks the cloud again about a denial that does not stand yet, see Stands. May be nil: then its caller has to.
	Ask Ask
	// Now is the time by which validity is judged: that of the cloud, or the latest that was proved. Default: Clock's.
	Now func() time.Time
	// Clock is for tests. Default the real one.
	Clock clock.Clock
	// Random spreads refreshes, from 0 to 1. Default math/rand.
	Random func() float64
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
}

// Validate checks a configuration.
func (c Config) Validate() error {
	switch {
	case c.Node == "" || c.Cloud == nil || c.Callers == nil:
		return errors.New("identity: it needs Node, Cloud and Callers")
	case c.Allowance < 0:
		return fmt.Errorf("identity: an allowance of %v: 0 or more", c.Allowance)
	case c.TTL < 0:
		return fmt.Errorf("identity: decisions count for %v: more than 0", c.TTL)
	}
	return nil
}

// Judge tells who calls and what they may read. See the package comment.
type Judge struct {
	Config
	node      User
	keys      *keys
	verdicts  *verdicts
	refused   *refused
	doubts    *doubts
	audiences *audiences
	said      *sayings
	judged    *lru.Cache // of *judged, by digest
	log       *limit.Quiet
	streams
}

// New brings back what was kept.
func New(c Config) (*Judge, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.TTL, c.Clock, c.Logger = cmp.Or(c.TTL, DefaultTTL), cmp.Or[clock.Clock](c.Clock, clock.RealClock{}),
		cmp.Or(c.Logger, slog.Default())
	if c.Found == nil {
		c.Found = func() {}
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	if c.Now == nil {
		c.Now = c.Clock.Now
	}
	if c.Away == nil {
		c.Away = func() bool { return false }
	}
	if c.Unbroken == nil {
		c.Unbroken = func() time.Duration { return math.MaxInt64 }
	}
	j := &Judge{
		Config: c, node: nodeUser(c.Node), log: limit.NewQuiet(c.Clock, c.Logger), refused: newRefused(c.Clock, c.Away),
		doubts: newDoubts(c.Ask, c.Clock), audiences: newAudiences(c.Documents, c.Logger), said: newSayings(),
		judged: lru.New(maxJudged),
	}
	j.streams = streams{clock: c.Clock, now: c.Now, pods: c.Pods, refused: j.refused}
	j.keys = &keys{
		asHub: c.Cloud, callers: c.Callers, shared: c.Shared, found: c.Found, docs: c.Documents, now: c.Now, clock: c.Clock,
		random: c.Random, logger: c.Logger, offers: make(chan *offer, 1),
	}
	j.keys.restore()
	j.verdicts = newVerdicts(j.node.at.caller, c.File, c.Logger)
	return j, nil
}

// Run keeps the keys fresh and the decisions on disk until ctx ends.
func (j *Judge) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return j.keys.run(ctx) })
	g.Go(func() error { return j.verdicts.run(ctx, j.Clock) })
	if j.Pods != nil {
		g.Go(func() error { return j.lookAfterPods(ctx) })
	}
	if j.Ask != nil {
		g.Go(func() error { return j.askAgain(ctx) })
	}
	return g.Wait()
}

// Unsaved is how many changes of what is remembered would be lost if this process were killed now.
func (j *Judge) Unsaved() int {
	j.verdicts.mu.Lock()
	defer j.verdicts.mu.Unlock()
	return j.verdicts.unsaved
}

// Doubts is how many denials the cloud will be asked about again: they do not stand yet.
func (j *Judge) Doubts() int { return j.doubts.len() }

// Keys are those that this process has from the cloud, for the rest of its pool; nil: none.
func (j *Judge) Keys() []byte {
	if raw := j.keys.raw.Load(); raw != nil {
		return *raw
	}
	return nil
}

// Size is the number of decisions that are remembered.
func (j *Judge) Size() int { return j.verdicts.size() }

// Verify tells who sent a request with these headers. certified says that it came over a connection that proved to be
// this node; other certificates, the hub has refused before. The error is a *RefusalError.
func (j *Judge) Verify(header http.Header, certified bool) (User, error) {
	u, err := j.verify(header, certified)
	if err != nil {
		kind := ""
		var r *RefusalError
		if errors.As(err, &r) {
			kind = r.kind
		}
		j.log.Say(slog.LevelWarn, kind, "the cloud is away, and a caller is refused", "reason", err.Error(), "client",
			header.Get("User-Agent"))
		return User{}, err
	}
	return u, nil
}

func (j *Judge) verify(header http.Header, certified bool) (u User, err error) {
	raw, carries, err := bearerOf(header)
	switch {
	case err != nil:
		return u, refuse("%v", err)
	case carries:
		u, err = j.ofToken(raw)
	case certified:
		u = j.node
	default:
		err = refuse("no credentials")
	}
	return u.acting(header), err
}

// authenticated is the decision that a token is good.
func authenticated() digest { return hashOf("authenticated") }

func (j *Judge) ofToken(raw string) (User, error) {
	t := j.known(raw)
	itself := t.itself
	last := j.verdicts.last(itself.at, authenticated())
	if last.stands() {
		return User{}, refuse("the cloud refused this token when it was there")
	}
	taken := last.allowed != 0 && j.counts(last.allowed)
	switch {
	case t.err != nil:
		return User{}, t.err
	case !t.ours && !taken:
		return User{}, unsure("only the cloud knows this token, and has not been seen to take it")
	case t.signed == nil:
		return itself, nil
	}
	if err := j.inTime(t.token); err != nil {
		return User{}, err
	}
	if t.claims.ofServiceAccount() {
		if err := j.bound(t.token, t.ours, taken); err != nil {
			return User{}, err
		}
		if t.ours {
			return t.account, nil
		}
	} else if t.ours {
		return User{}, refuse("the cluster signed it, but for no service account")
	}
	return itself, nil
}

// counts reports whether an allowance is young enough for others than the node. One in the future is of a clock that
// was set back.
func (j *Judge) counts(at second) bool { return j.recent(at.time()) }

func (j *Judge) recent(at time.Time) bool { return j.Now().Sub(at) < j.TTL }

// known is a token as judge has it. To verify a signature costs a request more than all else, so tokens are remembered;
// but not beyond the keys by which they were judged.
func (j *Judge) known(raw string) *judged {
	name, set := hashOf("token", raw), j.keys.get()
	if known, ok := j.judged.Get(name); ok {
		if x := known.(*judged); x.by == set && x.raw == raw {
			return x
		}
	}
	x := judge(raw, set)
	j.judged.Add(name, x)
	return x
}

func (j *Judge) inTime(t *token) error {
	now, c := j.Now(), t.claims
	switch {
	case c.NotBefore != nil && now.Add(Skew).Before(c.NotBefore.Time()):
		return refuse("it is not valid before %v", c.NotBefore.Time().UTC())
	case c.IssuedAt != nil && now.Add(Skew).Before(c.IssuedAt.Time()):
		return refuse("it is issued in the future, at %v", c.IssuedAt.Time().UTC())
	case c.Expiry != nil && now.After(c.Expiry.Time().Add(j.Allowance)):
		return refuse("it expired at %v, more than %v ago", c.Expiry.Time().UTC(), j.Allowance)
	}
	return nil
}

// bound reports whether the token of a service account is for this cluster's API and for a pod of this node.
func (j *Judge) bound(t *token, ours, taken bool) error {
	meant := !ours || taken || j.audiences.meant(&t.claims, j.recent) // what the cloud took is meant for it
	pod, node := t.claims.Kubernetes.Pod, t.claims.Kubernetes.Node
	switch {
	case !meant:
		return refuse("it is for %.200q, not for the API", []string(t.claims.Audience))
	case node != nil && node.Name != j.Node:
		return refuse("it is bound to node %.64q, not to this one", node.Name)
	case pod == nil && node == nil && !taken:
		return unsure("it is bound to no pod, and the cloud has not been seen to take it")
	case pod == nil:
		return nil
	case j.Pods == nil && node == nil && !taken:
		return unsure("it names no node, and nothing is kept of pods")
	case j.Pods == nil:
		return nil
	}
	name := t.claims.Kubernetes.Namespace + "/" + pod.Name
	switch p, ok := j.Pods(t.claims.Kubernetes.Namespace, pod.Name); {
	case !ok:
		return refuse("pod %.320q, to which it is bound, is not known on this node", name)
	case p.Node != j.Node:
		return refuse("pod %.320q, to which it is bound, is on another node", name)
	case p.UID != pod.UID:
		return refuse("pod %.320q, to which it is bound, was replaced by another of the same name", name)
	case !p.Gone.IsZero() && j.Now().After(p.Gone.Add(Skew)):
		return refuse("pod %.320q, to which it is bound, is deleted", name)
	}
	return nil
}
