package access

import (
	"cmp"
	"encoding/hex"
	"math"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"

	"github.com/weir-edge/weir/impl/limit"
)

// Gate bounds what callers may take of the uplink, the memory and the connections that all of them share. This node,
// its heartbeats and the hub's own probes pass no gate: they never wait behind others. docs/limits.md lists the bounds.
//
// A caller is a service account, or a token if it belongs to none. But that counts only of a token that the cloud has
// taken; until then its sender is one of those at an address that have shown nothing.
type Gate struct {
	GateConfig
	prove     *prover       // asks the cloud
	known     *lru.Cache    // digests of tokens that the cloud took, with the names of their callers
	calls     limit.Rate    // new requests to the cloud, by caller
	public    limit.Rate    // the same of all who have no credential
	underway  limit.Shares  // requests of known callers, by what they take
	others    limit.Ways    // to the cloud, see Admission.Way
	lists     limit.Ways    // the same of requests about collections
	Strangers limit.Slots   // requests of all others, by address
	Refusals  limit.Slots   // being answered, by address
	Reviews   limit.Slots   // that wait or are under way, by caller
	reviewing chan struct{} // holds one for each that is under way

	trusted trusting

	mu   sync.Mutex
	told map[string]tally // by reason
}

// tally is what the log has not said yet.
type tally struct {
	since time.Time
	n     int
}

// NewGate makes a gate that nobody has passed yet.
func NewGate(c GateConfig) *Gate {
	every := time.Second / time.Duration(c.Rate)
	g := &Gate{
		GateConfig: c, known: lru.New(limit.MaxKnownTokens), told: map[string]tally{},
		trusted:   trusting{clock: c.Clock, tokens: map[digest]trust{}},
		calls:     limit.Rate{Every: every, Burst: c.Burst, Keys: limit.MaxCallers},
		public:    limit.Rate{Every: time.Second / limit.PublicRate, Burst: limit.PublicBurst},
		underway:  limit.Shares{Budget: c.Bytes},
		Strangers: limit.Slots{Sum: limit.MaxUnproven, Each: limit.MaxUnprovenAddress},
		Refusals:  limit.Slots{Sum: limit.MaxUntaken, Each: limit.MaxUntakenAddress},
		Reviews:   limit.Slots{Sum: limit.MaxReviews, Each: limit.MaxCallerReviews},
		others:    limit.Ways{Each: limit.CallerWays},
		lists:     limit.Ways{Each: limit.CallerWays},
		reviewing: make(chan struct{}, limit.ParallelReviews),
	}
	if c.Anonymous {
		g.public = limit.Rate{Every: every, Burst: c.Burst}
	}
	g.prove = newProver(c, g.learn, g.busy)
	return g
}

// busy counts a refusal, and words it.
func (g *Gate) busy(reason, message string, wait time.Duration) *apierrors.StatusError {
	g.refuse(reason)
	return apierrors.NewTooManyRequests(message, max(1, int(math.Ceil(wait.Seconds()))))
}

// refuse counts a refusal. The log says it once a minute.
func (g *Gate) refuse(reason string) {
	g.Count(reason)
	g.mu.Lock()
	defer g.mu.Unlock()
	now, t := g.Clock.Now(), g.told[reason]
	t.n++
	if t.since.IsZero() || now.Sub(t.since) >= limit.TellRefused {
		g.Logger.Warn("requests are refused by a limit, see docs/limits.md", "limit", reason, "requests", t.n)
		t = tally{since: now}
	}
	g.told[reason] = t
}

// Away reports whether nobody can be asked what a token is worth.
func (g *Gate) Away() bool {
	away, _ := g.Cloud.IsAway()
	return away
}

func (g *Gate) knows(t *shown) bool {
	_, ok := g.known.Get(t.digest)
	return ok
}

// keyOf names the caller that shows a token; nil: it shows none.
func (g *Gate) keyOf(t *shown) string {
	if t == nil {
		return "anonymous"
	}
	if key, ok := g.known.Get(t.digest); ok {
		return key.(string)
	}
	return "unproven"
}

// learn takes what the cloud said to a request with a token; nil: with none.
func (g *Gate) learn(t *shown, code int) {
	switch {
	case t == nil:
	case code == http.StatusUnauthorized:
		g.known.Remove(t.digest)
		g.prove.suspect()
	case !g.knows(t):
		if g.Called != nil {
			if p := t.podOf(); p.UID != "" {
				g.Called(p)
			}
		}
		g.known.Add(t.digest, cmp.Or(t.claims().Subject, hex.EncodeToString(t.digest[:])))
	}
}

// share is what a caller may send to the cloud.
func (g *Gate) share(t *shown) (*limit.Rate, string) {
	key := g.keyOf(t)
	if key == "anonymous" {
		return &g.public, key
	}
	return &g.calls, key
}

func (g *Gate) spent(wait time.Duration) *apierrors.StatusError {
	return g.busy(refusedRate, "this caller has used up its share of requests to the cloud", wait)
}

// Passes says why a request should not begin its way to the cloud: its caller's share is used up. That is found out
// again on the way, but costs more there.
func (g *Gate) Passes(req *http.Request, who Caller) *apierrors.StatusError {
	if who.Kind == ThisNode || g.Away() {
		return nil
	}
	rate, key := g.share(who.shows(req.Header))
	if wait := rate.Wait(key, g.Clock.Now()); wait > 0 {
		return g.spent(wait)
	}
	return nil
}
