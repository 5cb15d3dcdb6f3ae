package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
)

const (
	discoveryAgain   = 5 * time.Minute // a leader looks whether its copy is still the cloud's
	discoveryRetry   = 5 * time.Second
	discoveryTimeout = 2 * time.Second // of a question to the coordinator; without an answer the cloud sends all
)

// discovery shares one copy of the cloud's API discovery in the pool.
type discovery struct {
	store       documents.Store
	coordinator *coordinator      // nil: alone
	asHub       http.RoundTripper // to the cloud, through the store: for the pool, hence with what else the pool has one copy of
	clock       clock.Clock
	logger      *slog.Logger
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
	body, err := readOK(resp)
	if err != nil {
		return nil, fmt.Errorf("fetch %s from the coordinator: %w", k.Path, err)
	}
	return &documents.Document{ETag: resp.Header.Get("Etag"), ContentType: resp.Header.Get("Content-Type"), Body: body}, nil
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
	body, err := io.ReadAll(resp.Body)
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(resp.Status)
	case err != nil:
		return nil, err
	}
	return body, nil
}

// keep is a leader's duty: the coordinator has a current copy. It ends with ctx.
func (d *discovery) keep(ctx context.Context, t contract.Term) {
	for ctx.Err() == nil {
		wait := discoveryAgain
		for _, path := range documents.Paths {
			if err := d.put(ctx, documents.Key{Path: path, Accept: documents.Accept}, t); err != nil && ctx.Err() == nil {
				d.logger.Debug("cannot keep the pool's copy of API discovery", "path", path, "err", err)
				wait = discoveryRetry
			}
		}
		_, using, cancel := d.coordinator.with(ctx) // another replica may not have it
		sleep(using, d.clock, wait)
		cancel()
	}
}

func (d *discovery) put(ctx context.Context, k documents.Key, t contract.Term) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud"+k.Path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", k.Accept)
	req.Header.Set("User-Agent", userAgent)
	resp, err := d.asHub.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := readOK(resp)
	if err != nil {
		return fmt.Errorf("read %s from the cloud: %w", k.Path, err)
	}
	header := http.Header{
		"Etag": {resp.Header.Get("Etag")}, "Content-Type": {resp.Header.Get("Content-Type")}, contract.TermHeader: {t.String()},
	}
	put, err := d.ask(ctx, http.MethodPut, k, header, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer put.Body.Close()
	if put.StatusCode > 299 {
		return fmt.Errorf("put %s to the coordinator: %s", k.Path, put.Status)
	}
	return nil
}
