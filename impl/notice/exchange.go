package notice

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

// Holder is who holds a text. It is safe for concurrent use.
type Holder interface {
	// Text is what is held, and Tag is the same for the same text; "": nothing is held.
	Text() (text []byte, tag string)
	// Take looks at what somebody handed over, and tells whether it changed what is held.
	Take(text []byte) (changed bool, err error)
	// Changed is closed by the next change of what is held.
	Changed() <-chan struct{}
}

// Notice is one text, and who holds it here.
type Notice struct {
	About string // "denylist"
	Max   int    // bytes
	Holder
}

// often is between two exchanges, of each with the one that it uses, if nothing changes.
const often = 10 * time.Second

// Share exchanges by a function, now, often, and at once when something changes, until ctx ends.
func (n Notice) Share(ctx context.Context, c clock.Clock, exchange func()) {
	for ctx.Err() == nil {
		changed := n.Changed()
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

// ServeHTTP shows what is held, and takes what somebody else holds. Who may ask is the caller's business; who signed is the holder's.
func (n Notice) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.Method {
	case http.MethodGet:
	case http.MethodPost:
		text, err := n.read(req.Body)
		if err == nil {
			_, err = n.Take(text)
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
	text, tag := n.Text()
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

func (n Notice) read(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, int64(n.Max)+1))
	if err == nil && len(text) > n.Max {
		err = fmt.Errorf("the %s has more than %d bytes", n.About, n.Max)
	}
	return text, err
}

// Exchange takes what another one of the pool holds, and gives it what it lacks. at is where that one serves.
func (n Notice) Exchange(ctx context.Context, by http.RoundTripper, at *url.URL) error {
	fail := func(err error) error { return fmt.Errorf("exchange %ss with %s: %w", n.About, at.Host, err) }
	_, tag := n.Text()
	code, header, theirs, err := n.ask(ctx, by, http.MethodGet, at, tag, nil)
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
	if _, err := n.Take(theirs); err != nil {
		return fail(err)
	}
	mine, tag := n.Text()
	if header.Get("Etag") == quote(tag) || len(mine) == 0 {
		return nil
	}
	code, _, why, err := n.ask(ctx, by, http.MethodPost, at, "", mine)
	if err == nil && code != http.StatusNoContent {
		err = fmt.Errorf("answer %d: %.200s", code, why)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

func (n Notice) ask(ctx context.Context, by http.RoundTripper, method string, at *url.URL, tag string, body []byte) (code int, header http.Header, text []byte, err error) {
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
	text, err = n.read(resp.Body)
	return resp.StatusCode, resp.Header, text, err
}
