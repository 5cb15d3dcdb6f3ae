package documents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
)

// ErrNone says that who was asked has no copy yet.
var ErrNone = errors.New("the pool has no copy yet")

// Fetch asks who shows documents at a URL for one.
func Fetch(ctx context.Context, by http.RoundTripper, at *url.URL, k Key) (*Document, error) {
	u := *at
	u.RawQuery = k.Query()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "weir")
	resp, err := by.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, ErrNone
	}
	d, err := Read(resp)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", k.Path, err)
	}
	if err := Check(k, d); err != nil {
		return nil, err
	}
	return d, nil
}

// Transport answers requests for documents from a Store when the cloud says that the copy is current.
type Transport struct {
	Base  http.RoundTripper
	Store *Store
	// Fetch asks the pool for a copy; nil, or an error: there is none. One that does not pass Check is not used.
	Fetch func(context.Context, Key) (*Document, error)

	plain atomic.Bool // protobuf of this cloud cannot be made JSON
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || !slices.Contains(Paths, req.URL.Path) || req.Header.Get("If-None-Match") != "" {
		return t.Base.RoundTrip(req)
	}
	k := Key{req.URL.Path, req.Header.Get("Accept")}
	if len(k.Accept) > maxAccept {
		return t.Base.RoundTrip(req)
	}
	k = k.canonical()
	d := t.Store.Get(k)
	if d == nil && t.Fetch != nil {
		if d, _ = t.Fetch(req.Context(), k); d != nil && Check(k, d) != nil {
			d = nil
		}
		if d != nil {
			t.Store.Put(k, d)
		}
	}
	sent := req
	small := k.Accept == Accept && !t.plain.Load()
	if small {
		sent = compactRequest(req)
	} else if d != nil {
		sent = req.Clone(req.Context())
	}
	if d != nil {
		sent.Header.Set("If-None-Match", d.ETag)
	}
	resp, err := t.Base.RoundTrip(sent)
	switch {
	case err != nil:
		return resp, err
	case resp.StatusCode == http.StatusNotModified && d != nil:
		return answerWith(resp, d), nil
	case small:
		d, lost, err := expand(resp)
		resp.Body.Close()
		if err == nil {
			t.Store.Put(k, d)
			return answerWith(resp, d), nil
		}
		if lost {
			return nil, fmt.Errorf("read %s: %w", k.Path, err)
		}
		// What is wrong should be told in the caller's encoding, too.
		if resp, err = t.Base.RoundTrip(req); err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusOK {
			t.plain.Store(true)
		}
	}
	if resp.StatusCode == http.StatusOK && resp.Header.Get("Etag") != "" && resp.Header.Get("Content-Encoding") == "" {
		return t.keep(k, resp)
	}
	return resp, nil
}

// keep reads an answer and keeps it, if it is not too large.
func (t *Transport) keep(k Key, resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	if err != nil {
		resp.Body.Close()
		return nil, fmt.Errorf("read %s: %w", k.Path, err)
	}
	if len(body) > MaxBody {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
		return resp, nil
	}
	resp.Body.Close()
	t.Store.Put(k, &Document{resp.Header.Get("Etag"), resp.Header.Get("Content-Type"), body})
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// answerWith makes an answer of the cloud one with a document.
func answerWith(resp *http.Response, d *Document) *http.Response {
	resp.Body.Close()
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.Header.Set("Content-Type", d.ContentType)
	resp.Header.Set("Etag", d.ETag)
	resp.Header.Del("Content-Length")
	resp.Header.Del("Content-Encoding")
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(d.Body)), int64(len(d.Body))
	return resp
}
