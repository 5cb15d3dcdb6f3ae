package access

import (
	"context"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/request"
)

// Admission is a request that has passed the gate.
type Admission struct {
	g     *Gate
	conn  *limit.Conn // nil: it is not counted
	rc    *http.ResponseController
	req   *http.Request
	asked *request.Request
	token *shown // that it shows; nil: none
	mu    sync.Mutex
	slots *limit.Slots // of strangers; nil: it holds none
	holds bool         // a share of known callers'
	bytes int64        // of that
	key   string
	// over is called once, when nobody has to be asked about its token any more, or nobody will answer; may be nil.
	over func(answered bool)
}

type admissionKey struct{}

// AdmissionOf is that of a request; of one that passed no gate it is nil, which Proven and Unproven take.
func AdmissionOf(ctx context.Context) *Admission {
	a, _ := ctx.Value(admissionKey{}).(*Admission)
	return a
}

// shows is the token of a request that has passed the gate, or none (nil).
func (a *Admission) shows(h http.Header) *shown {
	if a == nil {
		return tokenOf(h)
	}
	return a.token
}

// Admit lets a request pass, or says why not; refused tells that the cloud has refused its credentials just now. The
// request that is returned is to be used, and leave to be called when it is over.
func (g *Gate) Admit(w http.ResponseWriter, req *http.Request, asked *request.Request, who Caller, refused bool) (
	_ *http.Request, a *Admission, refusal *apierrors.StatusError) {
	a = &Admission{
		g: g, rc: http.NewResponseController(w), req: req, asked: asked, token: who.shows(req.Header), bytes: takes(asked),
	}
	if c, _ := req.Context().Value(connKey{}).(*conn); c != nil {
		a.conn = c.below
	}
	defer func() {
		if refusal != nil {
			a.Slow()
		}
	}()
	switch {
	case refused:
		return req, a, apierrors.NewUnauthorized("Unauthorized")
	case who.Kind == ThisNode:
		a.rank(limit.Kept)
		return req, a, nil
	case who.Kind == Stranger:
		return req, a, who.Refusal
	case who.Kind == Anonymous && !g.Anonymous && !isPublic(req):
		g.refuse(RefusedAnonymous)
		return req, a, apierrors.NewUnauthorized("Unauthorized")
	}
	if who.Kind == Bearer && g.knows(a.token) {
		if refusal = a.share(g.keyOf(a.token)); refusal == nil {
			a.rank(limit.Proven)
		}
	} else if refusal = a.strange(AddressOf(req)); refusal == nil && who.Kind == Bearer {
		refusal = a.ask()
	}
	if refusal != nil {
		a.Leave()
		return req, a, refusal
	}
	return req.WithContext(context.WithValue(req.Context(), admissionKey{}, a)), a, nil
}

// takes is what a request counts as while it is under way.
func takes(asked *request.Request) int64 {
	if asked.Verb == "watch" && asked.Reads() {
		return limit.WatchBytes
	}
	return limit.RequestBytes
}

// AddressOf is where a request comes from.
func AddressOf(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return req.RemoteAddr
	}
	return host
}

// isPublic reports whether a request is for what kube-apiserver shows to everybody (system:public-info-viewer).
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

// strange takes a slot of those who have shown nothing that counts.
func (a *Admission) strange(address string) *apierrors.StatusError {
	if a.g.Strangers.Enter(address) != "" {
		return a.g.busy(refusedUnproven,
			"too many requests of callers that have not shown a good credential yet are under way", time.Second)
	}
	a.slots, a.key = &a.g.Strangers, address
	if a.req.Body != nil && a.req.ContentLength != 0 {
		_ = a.rc.SetReadDeadline(time.Now().Add(limit.UnprovenBody))
	}
	return nil
}

// share takes what the request counts as of what known callers may have.
func (a *Admission) share(key string) *apierrors.StatusError {
	switch a.g.underway.Enter(key, a.bytes) {
	case "":
		a.holds, a.key = true, key
		return nil
	case "each":
		return a.g.busy(refusedCaller,
			"too many requests of this caller are under way, beside those of others; see --callers-max-bytes", time.Second)
	}
	return a.g.busy(refusedSum, "too many requests are under way; see --callers-max-bytes", time.Second)
}

// ask finds out what an unknown token is worth, if somebody has sent a bad one lately, or many come at once.
func (a *Admission) ask() *apierrors.StatusError {
	for {
		away, until := a.g.Cloud.IsAway()
		if away {
			return nil
		}
		if a.g.prove.suspicious() {
			break
		}
		ok, wait := a.g.trusted.begin(a.token.digest)
		if ok {
			a.over = func(answered bool) { a.g.trusted.end(a.token.digest, answered) }
			return nil
		}
		if wait == nil {
			break
		}
		select {
		case <-wait:
		case <-until.Done(): // those under way may be answered here, and stay for long
		case <-a.req.Context().Done():
			return answer.Unavailable("the request was cancelled")
		}
		if a.g.knows(a.token) {
			a.Proven()
			return nil
		}
	}
	good, refusal := a.g.prove.prove(a.req.Context(), a.token, a.req.Header, a.key)
	if good {
		a.Proven()
	}
	return refusal
}

// Proven says that the caller has shown a credential that is valid. It holds a slot of its own from now on.
func (a *Admission) Proven() {
	if a == nil {
		return
	}
	a.rank(limit.Proven)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.slots == nil || a.token == nil {
		return
	}
	if key := a.g.keyOf(a.token); a.g.underway.Enter(key, a.bytes) == "" { // else it stays where it is
		a.slots.Leave(a.key)
		a.slots, a.holds, a.key = nil, true, key
	}
	a.settle(true)
	_ = a.rc.SetReadDeadline(time.Time{})
}

// Stays says that the request is answered here, without the cloud: others with its token wait for it no longer. unsent
// says that nothing of it can reach the cloud.
func (a *Admission) Stays(unsent bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle(unsent)
}

// settle ends the trust in an unknown token; a.mu is held.
func (a *Admission) settle(answered bool) {
	if a.over != nil {
		a.over(answered)
		a.over = nil
	}
}

// Unproven reports whether the caller has shown nothing that counts.
func (a *Admission) Unproven() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.slots != nil
}

// Slow makes who was refused ask more slowly: else a flood of refusals would take the processor.
func (a *Admission) Slow() {
	if a.conn != nil {
		a.conn.Slow(limit.RefusalPause)
	}
}

func (a *Admission) rank(r limit.Rank) {
	if a.conn != nil {
		a.conn.Prove(r)
	}
}

// Leave gives back what the request holds.
func (a *Admission) Leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle(false)
	if a.slots != nil {
		a.slots.Leave(a.key)
	}
	if a.holds {
		a.g.underway.Leave(a.key, a.bytes)
	}
	a.slots, a.holds = nil, false
}
