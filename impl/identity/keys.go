package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/store"
)

const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/openid/v1/jwks"
	document      = "weir/identity" // in the store
	maxAnswer     = 1 << 20

	refreshPeriod = time.Hour
	// firstRefresh is when keys are fetched that no token has called for: after the start, and after a failure.
	firstRefresh = time.Minute
	// refreshPause is the least time between two refreshes because of an unknown key.
	refreshPause = 10 * time.Minute
	// tokenPatience is how long a refresh waits for a token to go with. Without one it takes a connection of its own.
	tokenPatience        = 10 * time.Minute
	retryFirst, retryMax = 15 * time.Second, 5 * time.Minute
)

// Documents keeps the keys. *store.Store is one.
type Documents interface {
	Document(name string) (store.Document, bool)
	PutDocument(name string, d store.Document) error
}

// kept is the document in the store.
type kept struct {
	Issuer string          `json:"issuer,omitempty"`
	Keys   json.RawMessage `json:"jwks,omitempty"`
	Time   time.Time       `json:"time"` // of the cloud
}

// keys holds the cluster's keys and fetches them again.
type keys struct {
	asHub   http.RoundTripper
	callers http.RoundTripper                             // sends a request with the token it carries
	shared  func(context.Context) (raw []byte, wait bool) // see Config.Shared
	found   func()
	docs    Documents // nil: they are in memory only
	now     func() time.Time
	clock   clock.Clock
	random  func() float64
	logger  *slog.Logger
	current atomic.Pointer[keySet] // nil: none are known
	raw     atomic.Pointer[[]byte] // as they came from the cloud
	offers  chan *offer
	welcome atomic.Bool // a token of a key that is known will do, too
	since   time.Time   // when those that were kept came
	told    string      // what was logged last
}

// offer is a token of a service account that the cloud has just taken. A caller with one may read the keys, unless a
// cluster forbids that (ClusterRole system:service-account-issuer-discovery), over a connection that is open for it
// anyway.
type offer struct {
	*token
	unknown bool // it names a key that is not here
	at      time.Time
}

func (k *keys) get() *keySet { return k.current.Load() }

// offer tells of a token that the cloud has just taken. It is cheap, and never blocks.
func (k *keys) offer(t *token, unknown bool) {
	if !unknown && !k.welcome.Load() {
		return
	}
	select {
	case k.offers <- &offer{t, unknown, k.clock.Now()}:
	default:
	}
}

// restore brings back what was kept.
func (k *keys) restore() {
	if k.docs == nil {
		return
	}
	d, ok := k.docs.Document(document)
	if !ok {
		return
	}
	var old kept
	err := json.Unmarshal(d.Body, &old)
	if err == nil && len(old.Keys) > 0 {
		var set *keySet
		if set, err = parseKeys(old.Issuer, old.Keys); err == nil {
			k.current.Store(set)
			k.since = old.Time
		}
	}
	if err != nil {
		k.logger.Error("the kept keys of the cluster cannot be used: while the cloud is away, only tokens count that it "+
			"has taken before", "err", err)
	}
}

func (k *keys) run(ctx context.Context) error {
	next, failures, forbidden := turn{due: k.jitter(firstRefresh)}, 0, false
	if age := k.now().Sub(k.since); k.get() != nil && age >= 0 { // a restart costs the cloud nothing
		next = k.routine(max(refreshPeriod-age, firstRefresh))
	}
	for {
		with, ok := k.pause(ctx, next)
		if !ok {
			return nil
		}
		if k.get() == nil && with != nil && k.fromPool(ctx, with) {
			next = k.routine(refreshPeriod)
			next.unknown = 0 // the pool showed more than this token could prove
			continue
		}
		err := k.fetch(ctx, with)
		before := forbidden
		if forbidden = isForbidden(err); !forbidden || before { // else it may be one in passing, see Stands
			k.report(err)
		}
		if err == nil || forbidden && before {
			failures = 0
			next = k.routine(refreshPeriod)
			continue
		}
		d := k.jitter(min(retryFirst<<min(failures, 8), retryMax))
		next = turn{unknown: refreshPause, token: d, due: d + firstRefresh}
		failures++
	}
}

// turn says when keys are fetched: with a token of an unknown key, with any token, and at last without one.
type turn struct{ unknown, token, due time.Duration }

func (k *keys) routine(d time.Duration) turn {
	d = k.jitter(d)
	return turn{unknown: refreshPause, token: d, due: d + tokenPatience}
}

// pause waits until keys are to be fetched, and returns the token to go with; nil: there is none.
func (k *keys) pause(ctx context.Context, w turn) (with *token, ok bool) {
	began := k.clock.Now()
	k.welcome.Store(w.token == 0)
	token := k.clock.NewTimer(w.token)
	due := k.clock.NewTimer(w.due - k.clock.Since(began))
	defer token.Stop()
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, false
		case <-token.C():
			k.welcome.Store(true)
		case <-due.C():
			return nil, true
		case o := <-k.offers:
			least := w.token
			if o.unknown {
				least = min(least, w.unknown)
			}
			if o.at.Sub(began) >= least {
				return o.token, true
			}
		}
	}
}

// jitter is a tenth less or more.
func (k *keys) jitter(d time.Duration) time.Duration {
	return d + time.Duration((k.random()-0.5)*0.2*float64(d))
}

// report says what is new about the keys, once.
func (k *keys) report(err error) {
	have := k.current.Load() != nil
	switch {
	case err == nil:
		if k.told != "" {
			k.logger.Info("the keys of the cluster's service accounts are known", "issuer", k.get().Issuer)
		}
		k.told = ""
	case err.Error() == k.told:
	case isForbidden(err):
		k.told = err.Error()
		k.logger.Warn("the cloud does not let this hub read the keys of service accounts: while it is away, only tokens "+
			"count that it has taken before; "+
			"apply the output of weir-manager --print-manifests: weir-manager binds the role weir:hub to this hub", "err", err)
	default:
		k.told = err.Error()
		k.logger.Info("the keys of the cluster's service accounts cannot be fetched; it is tried again", "have", have,
			"err", err)
	}
}

// answerError is an answer of the cloud that is not what was asked for.
type answerError struct {
	path string
	code int
}

func (e *answerError) Error() string {
	return fmt.Sprintf("GET %s: %d %s", e.path, e.code, http.StatusText(e.code))
}

// isForbidden reports whether the cloud does not let this hub read the keys.
func isForbidden(err error) bool {
	var answered *answerError
	return errors.As(err, &answered) && answered.code == http.StatusForbidden
}

// fetch asks the cloud for its keys, with a token if there is one that can.
func (k *keys) fetch(ctx context.Context, with *token) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var set *keySet
	var raw json.RawMessage
	var err error
	if with != nil {
		set, raw, err = k.askWith(ctx, with)
	}
	if with == nil || unfit(err) {
		set, raw, err = k.ask(ctx)
	}
	if err == nil {
		return k.use(set, raw)
	}
	return err
}

// use takes a set of keys, as it came from the cloud or the pool.
func (k *keys) use(set *keySet, raw json.RawMessage) error {
	k.logger.Debug("keys of the cluster's service accounts have come", "issuer", set.Issuer, "keys", len(set.Keys.Keys))
	k.current.Store(set)
	k.raw.Store((*[]byte)(&raw))
	k.found()
	return k.keep(kept{Issuer: set.Issuer, Keys: raw})
}

func (k *keys) keep(body kept) error {
	if k.docs == nil {
		return nil
	}
	body.Time = k.now().UTC().Truncate(time.Second)
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return k.docs.PutDocument(document, store.Document{ContentType: "application/json", Body: b, At: body.Time})
}

// askWith asks as the holder of a token that the cloud has taken. Its issuer is that of the cluster if one of the keys
// has signed it; a cluster with several says itself which one it uses.
func (k *keys) askWith(ctx context.Context, t *token) (*keySet, json.RawMessage, error) {
	if old := k.get(); old != nil && old.Issuer != t.claims.Issuer {
		return nil, nil, errIssuer
	}
	raw, err := k.read(ctx, k.callers, keysPath, t)
	if err != nil {
		return nil, nil, err
	}
	set, err := parseKeys(t.claims.Issuer, raw)
	if err == nil {
		own := *t // whoever offered it may still read its claims
		err = own.verify(&set.Keys)
	}
	return set, raw, err
}

// errIssuer says that a token is not of the issuer that the cluster names.
var errIssuer = errors.New("the token is of another issuer")

// unfit reports whether the keys may be had, but not with this token.
func unfit(err error) bool {
	var answered *answerError
	var key *unknownKeyError
	if errors.As(err, &answered) {
		return answered.code >= 400 && answered.code < 500 && answered.code != http.StatusTooManyRequests
	}
	return errors.Is(err, errIssuer) || errors.Is(err, errSignature) || errors.As(err, &key)
}

// ask asks as the hub.
func (k *keys) ask(ctx context.Context) (*keySet, json.RawMessage, error) {
	about, err := k.read(ctx, k.asHub, discoveryPath, nil)
	if err != nil {
		return nil, nil, err
	}
	var discovery struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(about, &discovery); err != nil || discovery.Issuer == "" {
		return nil, nil, fmt.Errorf("GET %s: it names no issuer", discoveryPath)
	}
	raw, err := k.read(ctx, k.asHub, keysPath, nil)
	if err != nil {
		return nil, nil, err
	}
	set, err := parseKeys(discovery.Issuer, raw)
	return set, raw, err
}

func (k *keys) read(ctx context.Context, cloud http.RoundTripper, path string, with *token) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	if with != nil {
		req.Header.Set("Authorization", "Bearer "+with.raw)
	}
	resp, err := cloud.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &answerError{path, resp.StatusCode}
	}
	return body, nil
}

// fromPool takes the key that has signed a token from what another hub of the pool has; false if it cannot.
//
// A member that shows keys to a pool could show one of its own. But kube-apiserver names its keys by their hashes
// (keyIDFromPublicKey in pkg/serviceaccount/jwt.go of Kubernetes), and the cloud has taken this token, so the name in
// it is the cluster's word: a key with this hash that has signed the token is the cluster's. No other key of the pool's
// is taken. Clusters with an external signer may name keys otherwise; there the cloud is asked.
func (k *keys) fromPool(ctx context.Context, t *token) bool {
	if k.shared == nil {
		return false
	}
	for began := k.clock.Now(); k.clock.Since(began) < poolPatience; {
		raw, wait := k.shared(ctx)
		if raw != nil {
			set, err := proven(t, raw)
			if err != nil {
				k.logger.Warn("the pool's copy of the cluster's keys is not used", "err", err)
				return false
			}
			reduced, err := json.Marshal(set.Keys)
			if err == nil {
				err = k.use(set, reduced)
			}
			k.report(err)
			return true
		}
		if !wait {
			return false
		}
		select {
		case <-k.clock.After(k.jitter(poolLook)):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

const (
	// poolPatience is how long a hub without keys waits for another one of its pool to have them, looking each poolLook.
	poolPatience, poolLook = 30 * time.Second, 5 * time.Second
)
