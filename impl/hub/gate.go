package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/limit"
)

// Why a request is refused before it takes anything of others, as the metric says it.
const (
	refusedAnonymous = "anonymous"       // it has no credential
	refusedRate      = "caller-rate"     // its caller asks the cloud too often
	refusedCaller    = "caller-requests" // its caller has too much under way
	refusedSum       = "requests"        // all callers together have
	refusedUnproven  = "unproven"        // those who have not shown a good credential yet have
)

// gate bounds what callers may take of the uplink, the memory and the connections that all of them share. This node, its heartbeats and
// the hub's own probes pass no gate: they never wait behind others. docs/limits.md lists the bounds.
//
// A caller is a service account, or a token if it belongs to none. But that counts only of a token that the cloud has taken; until
// then its sender is one of those at an address that have shown nothing.
type gate struct {
	anonymous bool          // all paths are for those without a credential
	away      func() bool   // nobody can be asked what a token is worth
	prove     *prover       // asks the cloud
	known     *lru.Cache    // digests of tokens that the cloud took
	rate      limit.Rate    // new requests to the cloud, by caller
	public    limit.Rate    // the same of all who have no credential
	underway  limit.Slots   // requests of known callers
	strangers limit.Slots   // requests of all others, by address
	refusals  limit.Slots   // being answered, by address
	reviews   limit.Slots   // that wait or are under way, by caller
	reviewing chan struct{} // holds one for each that is under way
	clock     clock.PassiveClock
	count     func(reason string)
	logger    *slog.Logger

	mu      sync.Mutex
	told    map[string]tally // by reason
	trusted map[digest]trust // tokens that nobody was asked about
}

// tally is what the log has not said yet.
type tally struct {
	since time.Time
	n     int
}

func newGate(s *settings, c clock.PassiveClock, count func(string)) *gate {
	every := time.Second / time.Duration(s.CallerRate)
	g := &gate{
		anonymous: s.Anonymous, known: lru.New(maxKnownTokens), clock: c, count: count, logger: s.Logger, told: map[string]tally{}, trusted: map[digest]trust{},
		rate:      limit.Rate{Every: every, Burst: s.CallerBurst, Keys: maxCallers},
		public:    limit.Rate{Every: time.Second / publicRate, Burst: publicBurst},
		underway:  limit.Slots{Sum: maxRequests, Each: maxCallerRequests},
		strangers: limit.Slots{Sum: maxUnproven, Each: maxUnprovenAddress},
		refusals:  limit.Slots{Sum: maxUntaken, Each: maxUntakenAddress},
		reviews:   limit.Slots{Sum: maxReviews, Each: maxCallerReviews},
		reviewing: make(chan struct{}, parallelReviews),
	}
	if s.Anonymous {
		g.public = limit.Rate{Every: every, Burst: s.CallerBurst}
	}
	return g
}

// busyError says that a bound is reached. Nothing was done.
type busyError struct{ status *apierrors.StatusError }

func (e *busyError) Error() string { return e.status.Error() }

// busy counts a refusal, and words it.
func (g *gate) busy(reason, message string, wait time.Duration) *apierrors.StatusError {
	g.refuse(reason)
	return apierrors.NewTooManyRequests(message, max(1, int(math.Ceil(wait.Seconds()))))
}

// refuse counts a refusal. The log says it once a minute.
func (g *gate) refuse(reason string) {
	g.count(reason)
	g.mu.Lock()
	defer g.mu.Unlock()
	now, t := g.clock.Now(), g.told[reason]
	t.n++
	if t.since.IsZero() || now.Sub(t.since) >= tellRefused {
		g.logger.Warn("requests are refused by a limit, see docs/limits.md", "limit", reason, "requests", t.n)
		t = tally{since: now}
	}
	g.told[reason] = t
}

// digest stands for a token. Tokens are not kept.
type digest [sha256.Size]byte

func digestOf(h http.Header) (d digest) {
	s := sha256.New()
	for _, name := range []string{"Authorization", "Sec-Websocket-Protocol"} {
		put(s, h.Get(name))
	}
	s.Sum(d[:0])
	return d
}

// trust is an unknown token that requests carry unasked.
type trust struct {
	underway int
	left     int           // requests that were left before their answer: what they asked may still reach the cloud
	until    time.Time     // so long the latter count
	changed  chan struct{} // closed when less is under way
}

// trust lets a request with an unknown token pass unasked, if there are few such tokens, and few requests with this one. distrust has to be
// called when it is over. If others with the same token are under way, wait is closed when it is worth to look again.
func (g *gate) trust(d digest) (ok bool, wait <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	t, known := g.trusted[d]
	if !known && len(g.trusted) >= maxTrusting {
		maps.DeleteFunc(g.trusted, func(_ digest, t trust) bool { return t.underway == 0 && !now.Before(t.until) })
		if len(g.trusted) >= maxTrusting {
			return false, nil
		}
	}
	if !now.Before(t.until) {
		t.left = 0
	}
	switch {
	case t.left+t.underway < maxTrusted:
	case t.underway > 0:
		return false, t.changed
	default:
		return false, nil
	}
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	t.underway++
	g.trusted[d] = t
	return true, nil
}

// distrust ends what trust began. A request that was left before its answer counts on for a while: the cloud may still get it, and end
// the connection that it comes over.
func (g *gate) distrust(d digest, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.trusted[d]
	t.underway--
	close(t.changed)
	t.changed = make(chan struct{})
	if !answered {
		t.left++
		t.until = g.clock.Now().Add(trustTime)
	}
	if t.underway == 0 && t.left == 0 {
		delete(g.trusted, d)
		return
	}
	g.trusted[d] = t
}

func (g *gate) knows(d digest) bool {
	_, ok := g.known.Get(d)
	return ok
}

// keyOf names the caller of a request.
func (g *gate) keyOf(h http.Header) string {
	d := digestOf(h)
	switch {
	case !hasToken(h):
		return "anonymous"
	case !g.knows(d):
		return "unproven"
	}
	if account := serviceAccountOf(h); account != "" {
		return account
	}
	return hex.EncodeToString(d[:])
}

// learn takes what the cloud said to a request.
func (g *gate) learn(h http.Header, code int) {
	switch {
	case !hasToken(h):
	case code == http.StatusUnauthorized:
		g.known.Remove(digestOf(h))
		g.prove.suspect()
	default:
		g.known.Add(digestOf(h), struct{}{})
	}
}

// admission is a request that has passed the gate.
type admission struct {
	g     *gate
	conn  *limit.Conn // nil: it is not counted
	rc    *http.ResponseController
	req   *http.Request
	mu    sync.Mutex
	slots *limit.Slots // nil: it holds none
	key   string
	// over is called once, when nobody has to be asked about its token any more, or nobody will answer; may be nil.
	over func(answered bool)
}

type admissionKey struct{}

func admissionOf(ctx context.Context) *admission {
	a, _ := ctx.Value(admissionKey{}).(*admission)
	return a
}

// admit lets a request pass, or says why not; refused tells that the cloud has refused its credentials just now. The request that is returned is to be used, and leave to be called when it is over.
func (g *gate) admit(w http.ResponseWriter, req *http.Request, who caller, refused bool) (_ *http.Request, a *admission, refusal *apierrors.StatusError) {
	a = &admission{g: g, rc: http.NewResponseController(w), req: req}
	if c, _ := req.Context().Value(connKey{}).(*conn); c != nil {
		a.conn = c.below
	}
	defer func() {
		if refusal != nil {
			a.slow()
		}
	}()
	switch {
	case refused:
		return req, a, unauthorized("Unauthorized")
	case who.kind == thisNode:
		a.rank(limit.Kept)
		return req, a, nil
	case who.kind == stranger:
		return req, a, who.refusal
	case who.kind == anonymous && !g.anonymous && !isPublic(req):
		g.refuse(refusedAnonymous)
		return req, a, unauthorized("Unauthorized")
	}
	if who.kind == bearer && g.knows(digestOf(req.Header)) {
		if refusal = a.enter(&g.underway, g.keyOf(req.Header)); refusal == nil {
			a.rank(limit.Proven)
		}
	} else if refusal = a.enter(&g.strangers, addressOf(req)); refusal == nil && who.kind == bearer {
		refusal = a.ask()
	}
	if refusal != nil {
		a.leave()
		return req, a, refusal
	}
	return req.WithContext(context.WithValue(req.Context(), admissionKey{}, a)), a, nil
}

func addressOf(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return req.RemoteAddr
	}
	return host
}

// isPublic tells whether a request is for what kube-apiserver shows to everybody (system:public-info-viewer).
func isPublic(req *http.Request) bool {
	p := req.URL.Path
	if req.Method != http.MethodGet || path.Clean(p) != strings.TrimSuffix(p, "/") || len(req.Header["Upgrade"]) > 0 {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	switch first {
	case "healthz", "livez", "readyz", "version":
		return true
	}
	return false
}

func (a *admission) enter(s *limit.Slots, key string) *apierrors.StatusError {
	switch full := s.Enter(key); {
	case full == "":
		a.slots, a.key = s, key
		if s == &a.g.strangers && a.req.Body != nil && a.req.ContentLength != 0 {
			_ = a.rc.SetReadDeadline(time.Now().Add(unprovenBody))
		}
		return nil
	case s == &a.g.strangers:
		return a.g.busy(refusedUnproven, "too many requests of callers that have not shown a good credential yet are under way", time.Second)
	case full == "each":
		return a.g.busy(refusedCaller, fmt.Sprintf("%d requests of this caller are under way", s.Each), time.Second)
	}
	return a.g.busy(refusedSum, fmt.Sprintf("%d requests are under way", s.Sum), time.Second)
}

// ask finds out what an unknown token is worth, if somebody has sent a bad one lately, or many come at once.
func (a *admission) ask() *apierrors.StatusError {
	if a.g.away() {
		return nil
	}
	d := digestOf(a.req.Header)
	for !a.g.prove.suspicious() {
		ok, wait := a.g.trust(d)
		if ok {
			a.over = func(answered bool) { a.g.distrust(d, answered) }
			return nil
		}
		if wait == nil {
			break
		}
		select {
		case <-wait:
		case <-a.req.Context().Done():
			return unavailable("the request was cancelled")
		}
		if a.g.knows(d) {
			a.proven()
			return nil
		}
	}
	good, refusal := a.g.prove.prove(a.req.Context(), a.req.Header, a.key)
	if good {
		a.proven()
	}
	return refusal
}

// proven says that the caller has shown a credential that counts. It holds a slot of its own from now on.
func (a *admission) proven() {
	if a == nil {
		return
	}
	a.rank(limit.Proven)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.slots != &a.g.strangers || !hasToken(a.req.Header) {
		return
	}
	if key := a.g.keyOf(a.req.Header); a.g.underway.Enter(key) == "" { // else it stays where it is
		a.slots.Leave(a.key)
		a.slots, a.key = &a.g.underway, key
	}
	a.settle(true)
	_ = a.rc.SetReadDeadline(time.Time{})
}

// settle ends the trust in an unknown token; a.mu is held.
func (a *admission) settle(answered bool) {
	if a.over != nil {
		a.over(answered)
		a.over = nil
	}
}

// unproven tells whether the caller has shown nothing that counts.
func (a *admission) unproven() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.slots == &a.g.strangers
}

// slow makes who was refused ask more slowly: else a flood of refusals would take the processor.
func (a *admission) slow() {
	if a.conn != nil {
		a.conn.Slow(refusalPause)
	}
}

func (a *admission) rank(r limit.Rank) {
	if a.conn != nil {
		a.conn.Prove(r)
	}
}

func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle(false)
	if a.slots != nil {
		a.slots.Leave(a.key)
		a.slots = nil
	}
}

// share is what a caller may send to the cloud.
func (g *gate) share(h http.Header) (*limit.Rate, string) {
	key := g.keyOf(h)
	if key == "anonymous" {
		return &g.public, key
	}
	return &g.rate, key
}

func (g *gate) spent(wait time.Duration) *apierrors.StatusError {
	return g.busy(refusedRate, "this caller has used up its share of requests to the cloud", wait)
}

// passes says why a request should not begin its way to the cloud: its caller's share is used up. That is found out again on the way, but costs more there.
func (g *gate) passes(req *http.Request, who caller) *apierrors.StatusError {
	if who.kind == thisNode || g.away() {
		return nil
	}
	rate, key := g.share(req.Header)
	if wait := rate.Wait(key, g.clock.Now()); wait > 0 {
		return g.spent(wait)
	}
	return nil
}

// gated is a way to the cloud for callers' own requests. It takes each from its caller's share.
type gated struct {
	gate *gate
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Its error is a *busyError if the share is used up.
func (d gated) RoundTrip(req *http.Request) (*http.Response, error) {
	rate, key := d.gate.share(req.Header)
	if wait := rate.Take(key, d.gate.clock.Now()); wait > 0 {
		closeBody(req)
		return nil, &busyError{d.gate.spent(wait)}
	}
	if key == "anonymous" && isPublic(req) {
		return d.whole(req)
	}
	resp, err := d.next.RoundTrip(req)
	if err == nil {
		d.gate.learn(req.Header, resp.StatusCode)
		if resp.StatusCode != http.StatusUnauthorized {
			admissionOf(req.Context()).proven()
		}
	}
	return resp, err
}

// whole gets a small answer as a whole, also for a caller that leaves: an HTTP/1.1 connection ends with an answer that is left.
func (d gated) whole(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), reviewTimeout)
	defer cancel()
	closeBody(req)
	out := req.WithContext(ctx)
	out.Body, out.ContentLength = nil, 0
	resp, err := d.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPublicAnswer))
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength, resp.Request = io.NopCloser(bytes.NewReader(body)), int64(len(body)), req
	return resp, nil
}

// reviewFunc asks the cloud whether a caller may do something.
type reviewFunc func(context.Context, caller, http.Header, identity.Attributes) (bool, string, *apierrors.StatusError, error)

// limited bounds reviews of others than the node: they outlive the requests that began them.
func (g *gate) limited(review reviewFunc) reviewFunc {
	return func(ctx context.Context, who caller, credentials http.Header, a identity.Attributes) (bool, string, *apierrors.StatusError, error) {
		if who.kind == thisNode {
			return review(ctx, who, credentials, a)
		}
		key := g.keyOf(credentials)
		if g.reviews.Enter(key) != "" {
			return false, "", nil, &busyError{g.busy(refusedRate, "too many access reviews are under way", time.Second)}
		}
		defer g.reviews.Leave(key)
		select {
		case g.reviewing <- struct{}{}:
		case <-ctx.Done():
			return false, "", nil, &unavailableError{fmt.Errorf("access review: %w", ctx.Err())}
		}
		defer func() { <-g.reviewing }()
		switch refusal := g.doubted(ctx, credentials); {
		case refusal == nil:
			return review(ctx, who, credentials, a)
		case refusal.ErrStatus.Code == http.StatusTooManyRequests:
			return false, "", nil, &busyError{refusal}
		default:
			return false, "", refusal, nil
		}
	}
}

// doubted asks about an unknown token that was to be trusted, if the cloud has refused another one since.
func (g *gate) doubted(ctx context.Context, h http.Header) *apierrors.StatusError {
	if !hasToken(h) || g.knows(digestOf(h)) || !g.prove.suspicious() {
		return nil
	}
	_, refusal := g.prove.prove(ctx, h, "")
	return refusal
}

// busyStatus is the answer to a request that met a bound on its way; nil: it met none.
func busyStatus(err error) *apierrors.StatusError {
	var busy *busyError
	if errors.As(err, &busy) {
		return busy.status
	}
	return nil
}
