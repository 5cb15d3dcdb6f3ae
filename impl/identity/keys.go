package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/store"
)

const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/openid/v1/jwks"
	document      = "weir/identity" // in the store
	maxAnswer     = 1 << 20

	refreshPeriod = time.Hour
	// firstRefresh is when keys are fetched that no token has called for.
	firstRefresh = time.Minute
	// refreshPause is the least time between two refreshes because of an unknown key.
	refreshPause         = 10 * time.Minute
	retryFirst, retryMax = 15 * time.Second, 5 * time.Minute
)

// Documents keeps the keys. *store.Store is one.
type Documents interface {
	Document(name string) (store.Document, bool)
	PutDocument(name string, d store.Document) error
}

// keySet is what tokens are verified by.
type keySet struct {
	Issuer string             `json:"issuer"`
	Keys   jose.JSONWebKeySet `json:"jwks"`
}

// kept is the document in the store.
type kept struct {
	Issuer string          `json:"issuer,omitempty"`
	Keys   json.RawMessage `json:"jwks,omitempty"`
	Time   time.Time       `json:"time"` // of the cloud
}

// keys holds the cluster's keys and fetches them again.
type keys struct {
	cloud   http.RoundTripper
	docs    Documents // nil: they are in memory only
	time    *cloudTime
	clock   clock.Clock
	random  func() float64
	logger  *slog.Logger
	current atomic.Pointer[keySet] // nil: none are known
	unknown chan struct{}
	since   time.Time // when those that were kept came
	told    string    // what was logged last
}

func (k *keys) get() *keySet { return k.current.Load() }

// miss asks for a refresh, since a token names a key that is not here.
func (k *keys) miss() {
	select {
	case k.unknown <- struct{}{}:
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
	if err == nil {
		k.time.restore(old.Time)
	}
	if err == nil && len(old.Keys) > 0 {
		var set *keySet
		if set, err = parseKeys(old.Issuer, old.Keys); err == nil {
			k.current.Store(set)
			k.since = old.Time
		}
	}
	if err != nil {
		k.logger.Error("the kept keys of the cluster cannot be used: while the cloud is away, only tokens count that it has taken before", "err", err)
	}
}

func (k *keys) run(ctx context.Context) error {
	first, least := firstRefresh, time.Duration(0)
	if age := k.time.Now().Sub(k.since); k.get() != nil && age >= 0 { // a restart costs the cloud nothing
		first, least = max(refreshPeriod-age, firstRefresh), refreshPause
	}
	if !k.pause(ctx, k.jitter(first), least) {
		return nil
	}
	failures := 0
	for {
		err := k.fetch(ctx)
		k.report(err)
		var answered *answerError
		wait := k.jitter(refreshPeriod)
		if err == nil || errors.As(err, &answered) && answered.code == http.StatusForbidden {
			failures = 0
		} else {
			wait = k.jitter(min(retryFirst<<min(failures, 8), retryMax))
			failures++
		}
		if !k.pause(ctx, wait, refreshPause) {
			return nil
		}
	}
}

// pause waits until it is time to ask again, or a token names an unknown key and least has passed.
func (k *keys) pause(ctx context.Context, d, least time.Duration) bool {
	began := k.clock.Now()
	due := k.clock.NewTimer(d)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C():
			return true
		case <-k.unknown:
			if k.clock.Since(began) >= least {
				return true
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
	var answered *answerError
	have := k.current.Load() != nil
	switch {
	case err == nil:
		if k.told != "" {
			k.logger.Info("the keys of the cluster's service accounts are known", "issuer", k.get().Issuer)
		}
		k.told = ""
	case err.Error() == k.told:
	case errors.As(err, &answered) && answered.code == http.StatusForbidden:
		k.told = err.Error()
		k.logger.Warn("the cloud does not let this hub read the keys of service accounts: while it is away, only tokens count that it has taken before; "+
			"apply sim/cloud/manifests/weir-hub.yaml, which grants it to group openyurt:yurthub", "err", err)
	default:
		k.told = err.Error()
		k.logger.Info("the keys of the cluster's service accounts cannot be fetched; it is tried again", "have", have, "err", err)
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

// fetch asks the cloud for its keys.
func (k *keys) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	set, raw, err := k.ask(ctx)
	said := k.time.Now()
	if err == nil {
		k.current.Store(set)
	}
	if k.docs == nil {
		return err
	}
	body := kept{Time: said.UTC().Truncate(time.Second)}
	switch old := (kept{}); {
	case err == nil:
		body.Issuer, body.Keys = set.Issuer, raw
	case !k.time.heardCloud(): // there is nothing new
		return err
	default:
		if d, ok := k.docs.Document(document); ok && json.Unmarshal(d.Body, &old) == nil {
			body.Issuer, body.Keys = old.Issuer, old.Keys
		}
	}
	b, marshalErr := json.Marshal(body)
	if marshalErr != nil {
		return errors.Join(err, marshalErr)
	}
	return errors.Join(err, k.docs.PutDocument(document, store.Document{ContentType: "application/json", Body: b, At: body.Time}))
}

func (k *keys) ask(ctx context.Context) (*keySet, json.RawMessage, error) {
	about, err := k.read(ctx, discoveryPath)
	if err != nil {
		return nil, nil, err
	}
	var discovery struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(about, &discovery); err != nil || discovery.Issuer == "" {
		return nil, nil, fmt.Errorf("GET %s: it names no issuer", discoveryPath)
	}
	raw, err := k.read(ctx, keysPath)
	if err != nil {
		return nil, nil, err
	}
	set, err := parseKeys(discovery.Issuer, raw)
	return set, raw, err
}

func (k *keys) read(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "weir-hub")
	resp, err := k.cloud.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	defer resp.Body.Close()
	k.time.hear(resp.Header)
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &answerError{path, resp.StatusCode}
	}
	return body, nil
}

// parseKeys reads a set of keys; those that are of no use for tokens are left out.
func parseKeys(issuer string, raw []byte) (*keySet, error) {
	s := &keySet{Issuer: issuer}
	if err := json.Unmarshal(raw, &s.Keys); err != nil {
		return nil, fmt.Errorf("keys of the cluster: %w", err)
	}
	s.Keys.Keys = slices.DeleteFunc(s.Keys.Keys, func(k jose.JSONWebKey) bool {
		return !k.IsPublic() || !k.Valid() || k.Use != "" && k.Use != "sig"
	})
	if len(s.Keys.Keys) == 0 || issuer == "" {
		return nil, errors.New("keys of the cluster: there is none that is public and signs, or no issuer")
	}
	return s, nil
}
