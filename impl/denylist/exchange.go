package denylist

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

// often is between two exchanges, of each with the one that it uses, if nothing changes.
const often = 10 * time.Second

// Share exchanges by a function, now, often, and at once when something changes, until ctx ends.
func (h *Held) Share(ctx context.Context, c clock.Clock, exchange func()) {
	for ctx.Err() == nil {
		changed := h.Changed()
		exchange()
		due := c.NewTimer(often)
		select {
		case <-changed:
		case <-due.C():
		case <-ctx.Done():
		}
		due.Stop()
	}
}

// ServeHTTP shows what is held, and takes what somebody else holds. Who may ask is the caller's business; who signed is this one's.
func (h *Held) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.Method {
	case http.MethodGet:
	case http.MethodPost:
		text, err := read(req.Body)
		if err == nil {
			_, err = h.Take(text)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "only GET and POST", http.StatusMethodNotAllowed)
		return
	}
	text, tag := h.Text()
	w.Header().Set("Etag", quote(tag))
	w.Header().Set("Content-Type", "application/jsonl")
	switch {
	case req.Method == http.MethodPost:
		w.WriteHeader(http.StatusNoContent)
	case req.Header.Get("If-None-Match") == quote(tag):
		w.WriteHeader(http.StatusNotModified)
	default:
		_, _ = w.Write(text)
	}
}

func quote(tag string) string { return `"` + tag + `"` }

func read(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, MaxText+1))
	if err == nil && len(text) > MaxText {
		err = fmt.Errorf("the denylist has more than %d bytes", MaxText)
	}
	return text, err
}

// Exchange takes what another one of the pool holds, and gives it what it lacks. at is where that one serves.
func (h *Held) Exchange(ctx context.Context, by http.RoundTripper, at *url.URL) error {
	fail := func(err error) error { return fmt.Errorf("exchange denylists with %s: %w", at.Host, err) }
	_, tag := h.Text()
	code, header, theirs, err := ask(ctx, by, http.MethodGet, at, tag, nil)
	if err != nil {
		return fail(err)
	}
	switch code {
	case http.StatusNotModified:
		return nil
	case http.StatusOK:
	default:
		return fail(fmt.Errorf("answer %d: %.200s", code, theirs))
	}
	if _, err := h.Take(theirs); err != nil {
		return fail(err)
	}
	mine, tag := h.Text()
	if header.Get("Etag") == quote(tag) || len(mine) == 0 {
		return nil
	}
	code, _, why, err := ask(ctx, by, http.MethodPost, at, "", mine)
	if err == nil && code != http.StatusNoContent {
		err = fmt.Errorf("answer %d: %.200s", code, why)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

func ask(ctx context.Context, by http.RoundTripper, method string, at *url.URL, tag string, body []byte) (code int, header http.Header, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	if method == http.MethodGet {
		req.Header.Set("If-None-Match", quote(tag))
	} else {
		req.Header.Set("Content-Type", "application/jsonl")
	}
	resp, err := by.RoundTrip(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	text, err = read(resp.Body)
	return resp.StatusCode, resp.Header, text, err
}
