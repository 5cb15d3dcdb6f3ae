package access

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/limit"
)

// prover asks the cloud what a token is worth before a request with it goes over the connection that all callers share.
// kube-apiserver ends an HTTP/2 connection that carries a token which it refuses, so each would cost all others a new
// connection; but over HTTP/1.1 it does not, and that is how a prover asks.
//
// A question costs a round trip and some hundred bytes, so nobody is asked about before the cloud has refused a token.
type prover struct {
	GateConfig
	learn func(t *shown, code int)
	busy  func(reason, message string, wait time.Duration) *apierrors.StatusError
	each  limit.Rate // questions, by address
	all   limit.Rate

	until   atomic.Int64 // the end of suspicion, in ns
	flights singleflight.Group
}

func newProver(c GateConfig, learn func(*shown, int),
	busy func(string, string, time.Duration) *apierrors.StatusError) *prover {
	return &prover{
		GateConfig: c, learn: learn, busy: busy,
		each: limit.Rate{
			Every: time.Second / limit.ProofRateAddress, Burst: limit.ProofBurstAddress, Keys: limit.MaxCallers,
		},
		all: limit.Rate{Every: time.Second / limit.ProofRate, Burst: limit.ProofBurst},
	}
}

// suspect says that the cloud refused a token.
func (p *prover) suspect() {
	p.until.Store(p.Clock.Now().Add(limit.Suspicion).UnixNano())
}

// suspicious reports whether tokens that nobody knows have to be proved.
func (p *prover) suspicious() bool { return p.Clock.Now().UnixNano() < p.until.Load() }

// prove reports whether the cloud takes the token of a request, and what to answer if it does not. Neither means that
// the cloud cannot be asked.
func (p *prover) prove(ctx context.Context, t *shown, h http.Header, address string) (good bool,
	refusal *apierrors.StatusError) {
	away, until := p.Cloud.IsAway()
	if away {
		return false, nil
	}
	flight := p.flights.DoChan(string(t.digest[:]), func() (any, error) {
		for _, r := range []struct {
			*limit.Rate
			key string
		}{{&p.each, address}, {&p.all, ""}} {
			if wait := r.Take(r.key, p.Clock.Now()); wait > 0 && p.suspicious() {
				return p.busy(refusedUnproven, "too many tokens that the hub does not know have come lately", wait), nil
			}
		}
		return p.ask(t, h)
	})
	select {
	case <-ctx.Done():
		return false, answer.Unavailable("the request was cancelled")
	case <-until.Done():
		return false, nil
	case r := <-flight:
		refusal, _ = r.Val.(*apierrors.StatusError)
		return r.Err == nil && refusal == nil, refusal
	}
}

func (p *prover) ask(t *shown, h http.Header) (*apierrors.StatusError, error) {
	ctx, cancel := context.WithTimeout(context.Background(), reviewTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud/version", nil)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Authorization", "Sec-Websocket-Protocol"} {
		if v := h.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	resp, err := p.Unproven.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	p.learn(t, resp.StatusCode)
	if resp.StatusCode == http.StatusUnauthorized {
		p.Judge.Refuse(req.Header, identity.Attributes{Verb: "get", Path: "/version"})
		return answer.Decode(resp, said), nil
	}
	return nil, nil
}
