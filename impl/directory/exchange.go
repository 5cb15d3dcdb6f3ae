package directory

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pause"
)

const (
	waitParam = "wait"           // of a question: an answer may wait until there is something new
	longest   = 25 * time.Second // for which it waits
	answers   = longest + 10*time.Second
	again     = time.Second      // after an answer
	later     = 10 * time.Second // after none, or where answers do not wait
)

// ServeHTTP shows what is held; nobody tells anything here. Who may ask is the caller's business. With the query wait=1, an answer that would be the one that the asker
// has waits for another.
func (d *Directory) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	same := func() (text []byte, live, same bool, changed <-chan struct{}) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.text, d.live(), req.Header.Get("If-None-Match") == quote(tag(d.text)), d.changed
	}
	text, live, known, changed := same()
	if known && req.URL.Query().Get(waitParam) == "1" {
		due := d.Clock.NewTimer(longest)
		defer due.Stop()
		select {
		case <-changed:
		case <-due.C():
		case <-req.Context().Done(): // whoever asks may still be there, and is only to show its certificate again
		}
		text, live, known, _ = same()
	}
	w.Header().Set(contract.LiveHeader, strconv.FormatBool(live))
	w.Header().Set("Etag", quote(tag(text)))
	w.Header().Set("Content-Type", "application/json")
	switch {
	case known && len(text) > 0:
		w.WriteHeader(http.StatusNotModified)
	case len(text) == 0:
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = w.Write(text)
	}
}

func quote(tag string) string { return `"` + tag + `"` }

// Ask takes what another one of the pool holds, if it counts. at is where that one shows it; the caller chooses him: see the package comment. wait: the answer may wait for
// something new.
func (d *Directory) Ask(ctx context.Context, by http.RoundTripper, at *url.URL, wait bool) error {
	fail := func(err error) error {
		return fmt.Errorf("ask %s what the pool is told about itself: %w", at.Host, err)
	}
	if d.cloudTells() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	at = at.JoinPath(contract.DirectoryPath)
	if wait {
		at.RawQuery = waitParam + "=1"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return fail(err)
	}
	d.mu.Lock()
	mine := tag(d.text)
	d.mu.Unlock()
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("If-None-Match", quote(mine))
	resp, err := by.RoundTrip(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, MaxText+1))
	if err != nil {
		return fail(err)
	}
	live := resp.Header.Get(contract.LiveHeader) == "true"
	switch resp.StatusCode {
	case http.StatusNoContent:
	case http.StatusNotModified:
		if live {
			d.vouch(mine)
		}
	case http.StatusOK:
		e, err := Decode(d.Pool, text)
		if err != nil {
			d.refuse(err)
			return fail(err)
		}
		d.takePool(e, live)
	default:
		return fail(fmt.Errorf("answer %d: %.200s", resp.StatusCode, text))
	}
	return nil
}

// Keep asks by a function again and again, until ctx ends: soon after an answer that waited for something new, else every ten seconds.
func Keep(ctx context.Context, c clock.Clock, waits bool, ask func(context.Context) error) {
	for ctx.Err() == nil {
		wait := later
		if err := ask(ctx); err == nil && waits {
			wait = again
		}
		pause.For(ctx, c, wait)
	}
}
