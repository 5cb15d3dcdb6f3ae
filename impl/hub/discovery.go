package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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

// kept is what a leader keeps in the coordinator, beside keys, and each hub on its disk: what every kubectl asks for first.
var kept = [...]documents.Key{{Path: "/api", Accept: documents.Accept}, {Path: "/apis", Accept: documents.Accept}, {Path: documents.Version, Accept: mediaJSON}}

// errNoDocument says that the coordinator has no copy yet.
var errNoDocument = errors.New("the pool has no copy yet")

// discovery shares one copy of the cloud's API discovery in the pool, and of the keys of service accounts.
type discovery struct {
	store       documents.Store
	coordinator *coordinator             // nil: alone
	asHub       http.RoundTripper        // to the cloud, through the store: for the pool, hence with what else the pool has one copy of
	keys        func() []byte            // those that this hub has from the cloud; nil: none
	more        chan struct{}            // there are keys
	leads       atomic.Bool              // this hub keeps the copies
	copies      map[documents.Key]copied // of keep alone
	forged      func()                   // a copy of the pool is not what it says
	clock       clock.Clock
	logger      *slog.Logger
}

// found says that there are keys.
func (d *discovery) found() {
	select {
	case d.more <- struct{}{}:
	default:
	}
}

// sharedKeys are those that the coordinator has. wait says that it may have them soon: the leader asks for them.
func (d *discovery) sharedKeys(ctx context.Context) (raw []byte, wait bool) {
	doc, err := d.fetch(ctx, documents.Key{Path: documents.Keys})
	if doc != nil {
		raw = doc.Body
	}
	return raw, errors.Is(err, errNoDocument) && !d.leads.Load()
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
	resp, err := d.ask(ctx, http.MethodGet, k, nil, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, errNoDocument
	}
	body, err := readOK(resp)
	if err != nil {
		return nil, fmt.Errorf("fetch %s from the coordinator: %w", k.Path, err)
	}
	doc := &documents.Document{ETag: resp.Header.Get("Etag"), ContentType: resp.Header.Get("Content-Type"), Body: body}
	if err := documents.Check(k, doc); err != nil {
		d.forged()
		d.logger.Warn("the pool's copy is not used: whoever leads, or the coordinator, put in a forged one", "path", k.Path, "err", err)
		return nil, err
	}
	return doc, nil
}

func (d *discovery) ask(ctx context.Context, method string, k documents.Key, header http.Header, body io.Reader) (*http.Response, error) {
	r := d.coordinator.inUse()
	u := r.url.JoinPath(contract.DocumentsPath)
	u.RawQuery = k.Query()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("User-Agent", userAgent)
	return r.transport.RoundTrip(req)
}

func readOK(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, documents.MaxBody+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(resp.Status)
	case len(body) > documents.MaxBody:
		return nil, fmt.Errorf("the document is longer than %d bytes", documents.MaxBody)
	case err != nil:
		return nil, err
	}
	return body, nil
}

// keep is a leader's duty: the coordinator has a current copy. It ends with ctx.
func (d *discovery) keep(ctx context.Context, t contract.Term) {
	d.leads.Store(true)
	defer d.leads.Store(false)
	for ctx.Err() == nil {
		wait := discoveryAgain
		try := func(path string, err error) {
			if err != nil && ctx.Err() == nil {
				d.logger.Debug("cannot keep the pool's copy", "path", path, "err", err)
				wait = discoveryRetry
			}
		}
		for _, k := range kept {
			doc, err := d.copyOf(ctx, k)
			if err == nil {
				err = d.put(ctx, k, doc, t)
			}
			try(k.Path, err)
		}
		try(documents.Keys, d.putKeys(ctx, t))
		_, using, cancel := d.coordinator.with(ctx) // another replica may not have it
		d.wait(using, wait, t)
		cancel()
	}
}

// wait gives the coordinator keys that come meanwhile.
func (d *discovery) wait(ctx context.Context, until time.Duration, t contract.Term) {
	timer := d.clock.NewTimer(until)
	defer func() { timer.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
			return
		case <-d.more:
			if err := d.putKeys(ctx, t); err != nil && ctx.Err() == nil {
				d.logger.Debug("cannot keep the pool's copy", "path", documents.Keys, "err", err)
				timer.Stop()
				timer = d.clock.NewTimer(discoveryRetry)
			}
		}
	}
}

func (d *discovery) putKeys(ctx context.Context, t contract.Term) error {
	raw := d.keys()
	if raw == nil {
		return nil
	}
	return d.put(ctx, documents.Key{Path: documents.Keys}, &documents.Document{ContentType: mediaJSON, Body: raw}, t)
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
	body, err := readOK(resp)
	if err != nil {
		return nil, fmt.Errorf("read %s from the cloud: %w", k.Path, err)
	}
	return &documents.Document{ETag: resp.Header.Get("Etag"), ContentType: resp.Header.Get("Content-Type"), Body: body}, nil
}

// put gives the coordinator a copy.
func (d *discovery) put(ctx context.Context, k documents.Key, doc *documents.Document, t contract.Term) error {
	etag := doc.ETag
	if etag == "" {
		etag = fmt.Sprintf(`"%x"`, sha256.Sum256(doc.Body))
	}
	header := http.Header{"Etag": {etag}, "Content-Type": {doc.ContentType}, contract.TermHeader: {t.String()}}
	put, err := d.ask(ctx, http.MethodPut, k, header, bytes.NewReader(doc.Body))
	if err != nil {
		return err
	}
	defer put.Body.Close()
	if put.StatusCode > 299 {
		return fmt.Errorf("put %s to the coordinator: %s", k.Path, put.Status)
	}
	return nil
}
