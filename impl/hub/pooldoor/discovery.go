package pooldoor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/process"
)

const (
	discoveryAgain   = 5 * time.Minute // a leader looks whether its copy is still the cloud's
	versionAgain     = time.Hour
	discoveryRetry   = 5 * time.Second
	discoveryTimeout = 2 * time.Second // of a question to the coordinator; without an answer the cloud sends all
)

// copied is what the cloud said, and when.
type copied struct {
	doc *documents.Document
	at  time.Time
}

// kept is what a leader keeps beside keys, which come when a token needs them.
var kept = documents.Kept[:len(documents.Kept)-1]

// DiscoveryConfig is what a Discovery is made of.
type DiscoveryConfig struct {
	Coordinator *coordinator.Client // nil: there is no pool
	Cloud       http.RoundTripper
	Forged      func() // a copy of the pool is not what it says
	Clock       clock.Clock
	Logger      *slog.Logger
}

// Discovery shares one copy of the cloud's API discovery in the pool, and of the keys of service accounts.
type Discovery struct {
	DiscoveryConfig
	store documents.Store
	// to the cloud, through the store: for the pool, hence with what else the pool has one copy of.
	asHub  http.RoundTripper
	shown  documents.Store          // what this hub shows to its pool
	leads  atomic.Bool              // this hub keeps the copies
	copies map[documents.Key]copied // of keep alone
}

// NewDiscovery makes what has no copy yet.
func NewDiscovery(c DiscoveryConfig) *Discovery {
	d := &Discovery{DiscoveryConfig: c, copies: map[documents.Key]copied{}}
	d.asHub = d.Through(c.Cloud)
	return d
}

// Show shows the pool's copies: those that this hub kept while it led, and the keys that it has from the cloud, nil if
// none.
func (d *Discovery) Show(keys func() []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if raw := keys(); raw != nil {
			d.shown.Put(documents.Key{Path: documents.Keys},
				&documents.Document{ContentType: runtime.ContentTypeJSON, Body: raw})
		}
		d.shown.ServeHTTP(w, req)
	}
}

// SharedKeys are those that the coordinator has. wait says that it may have them soon: the leader asks for them.
func (d *Discovery) SharedKeys(ctx context.Context) (raw []byte, wait bool) {
	doc, err := d.Fetch(ctx, documents.Key{Path: documents.Keys})
	if doc != nil {
		raw = doc.Body
	}
	return raw, errors.Is(err, documents.ErrNone) && !d.leads.Load()
}

// Through lets requests for discovery documents go through the store.
func (d *Discovery) Through(base http.RoundTripper) http.RoundTripper {
	return &documents.Transport{Base: base, Store: &d.store, Fetch: d.Fetch}
}

// Fetch asks the coordinator for its copy.
func (d *Discovery) Fetch(ctx context.Context, k documents.Key) (*documents.Document, error) {
	if d.Coordinator == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	r := d.Coordinator.InUse()
	doc, err := documents.Fetch(ctx, r.Transport, r.URL.JoinPath(contract.DocumentsPath), k)
	if errors.Is(err, documents.ErrForged) {
		d.Forged()
		d.Logger.Warn("the pool's copy is not used: the leader, or the coordinator, put in a forged one", "path", k.Path,
			"err", err)
	}
	return doc, err
}

// Keep is a leader's duty: it shows a current copy. It ends with ctx.
func (d *Discovery) Keep(ctx context.Context) {
	d.leads.Store(true)
	defer d.leads.Store(false)
	for ctx.Err() == nil {
		wait := discoveryAgain
		for _, k := range kept {
			if doc, err := d.copyOf(ctx, k); err == nil {
				d.shown.Put(k, doc)
			} else if ctx.Err() == nil {
				d.Logger.Debug("cannot keep the pool's copy", "path", k.Path, "err", err)
				wait = discoveryRetry
			}
		}
		process.Pause(ctx, d.Clock, wait)
	}
}

// copyOf is what the cloud said lately, or says now: a coordinator that was restarted costs it nothing.
func (d *Discovery) copyOf(ctx context.Context, k documents.Key) (*documents.Document, error) {
	again := discoveryAgain
	if k.Path == documents.Version {
		again = versionAgain
	}
	// the wait before was as long as that, or a little less.
	if c, ok := d.copies[k]; ok && d.Clock.Since(c.at) < again-discoveryRetry {
		return c.doc, nil
	}
	doc, err := d.read(ctx, k)
	if err == nil {
		d.copies[k] = copied{doc, d.Clock.Now()}
	}
	return doc, err
}

// read asks the cloud.
func (d *Discovery) read(ctx context.Context, k documents.Key) (*documents.Document, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud"+k.Path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", k.Accept)
	req.Header.Set("User-Agent", contract.UserAgent)
	resp, err := d.asHub.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	doc, err := documents.Read(resp)
	if err != nil {
		return nil, fmt.Errorf("read %s from the cloud: %w", k.Path, err)
	}
	return doc, nil
}
