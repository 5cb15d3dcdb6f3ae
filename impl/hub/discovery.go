package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
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

// discovery shares one copy of the cloud's API discovery in the pool, and of the keys of service accounts.
type discovery struct {
	store       documents.Store
	coordinator *coordinator             // nil: alone
	asHub       http.RoundTripper        // to the cloud, through the store: for the pool, hence with what else the pool has one copy of
	keys        func() []byte            // those that this hub has from the cloud; nil: none
	shown       documents.Store          // what this hub shows to its pool
	leads       atomic.Bool              // this hub keeps the copies
	copies      map[documents.Key]copied // of keep alone
	forged      func()                   // a copy of the pool is not what it says
	clock       clock.Clock
	logger      *slog.Logger
}

// ServeHTTP shows the pool's copies: those that this hub kept while it led, and the keys that it has.
func (d *discovery) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if raw := d.keys(); raw != nil {
		d.shown.Put(documents.Key{Path: documents.Keys}, &documents.Document{ContentType: mediaJSON, Body: raw})
	}
	d.shown.ServeHTTP(w, req)
}

// sharedKeys are those that the coordinator has. wait says that it may have them soon: the leader asks for them.
func (d *discovery) sharedKeys(ctx context.Context) (raw []byte, wait bool) {
	doc, err := d.fetch(ctx, documents.Key{Path: documents.Keys})
	if doc != nil {
		raw = doc.Body
	}
	return raw, errors.Is(err, documents.ErrNone) && !d.leads.Load()
}

// through lets requests for discovery documents go through the store.
func (d *discovery) through(base http.RoundTripper) http.RoundTripper {
	return &documents.Transport{Base: base, Store: &d.store, Fetch: d.fetch}
}

// fetch asks the coordinator for its copy.
func (d *discovery) fetch(ctx context.Context, k documents.Key) (*documents.Document, error) {
	if d.coordinator == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	r := d.coordinator.inUse()
	doc, err := documents.Fetch(ctx, r.transport, r.url.JoinPath(contract.DocumentsPath), k)
	if errors.Is(err, documents.ErrForged) {
		d.forged()
		d.logger.Warn("the pool's copy is not used: whoever leads, or the coordinator, put in a forged one", "path", k.Path, "err", err)
	}
	return doc, err
}

// keep is a leader's duty: it shows a current copy. It ends with ctx.
func (d *discovery) keep(ctx context.Context) {
	d.leads.Store(true)
	defer d.leads.Store(false)
	for ctx.Err() == nil {
		wait := discoveryAgain
		for _, k := range kept {
			if doc, err := d.copyOf(ctx, k); err == nil {
				d.shown.Put(k, doc)
			} else if ctx.Err() == nil {
				d.logger.Debug("cannot keep the pool's copy", "path", k.Path, "err", err)
				wait = discoveryRetry
			}
		}
		sleep(ctx, d.clock, wait)
	}
}

// copyOf is what the cloud said lately, or says now: a coordinator that was restarted costs it nothing.
func (d *discovery) copyOf(ctx context.Context, k documents.Key) (*documents.Document, error) {
	again := discoveryAgain
	if k.Path == documents.Version {
		again = versionAgain
	}
	if c, ok := d.copies[k]; ok && d.clock.Since(c.at) < again-discoveryRetry { // the wait before was as long as that, or a little less
		return c.doc, nil
	}
	doc, err := d.read(ctx, k)
	if err == nil {
		d.copies[k] = copied{doc, d.clock.Now()}
	}
	return doc, err
}

// read asks the cloud.
func (d *discovery) read(ctx context.Context, k documents.Key) (*documents.Document, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud"+k.Path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", k.Accept)
	req.Header.Set("User-Agent", userAgent)
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
