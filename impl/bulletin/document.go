package bulletin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

// Holder holds documents of one kind. It is safe for concurrent use.
type Holder interface {
	// Text is what is held, one line for each document, and Tag is the same for the same text; "": nothing is held.
	Text() (text []byte, tag string)
	// Take judges what a member of the pool handed over, and reports whether it changed what is held.
	Take(text []byte) (changed bool, err error)
	// TakeOfCloud does so with what the cloud shows; nothing: what is held is judged again.
	TakeOfCloud(text []byte) (changed bool, err error)
	// Changed is closed by the next change of what is held.
	Changed() <-chan struct{}
	// Lacks is what is held and missing in what the cloud shows, a text or none; none: nothing is missing.
	Lacks(shown []byte) []byte
}

// Document is a Holder with the ways by which others are read and told.
type Document struct {
	Holder
	About string // "denylist"
	At    string // the path where a member of the pool shows it
	Max   int    // bytes of a text
	Cloud Place
	Key   string // of what is given back, see Returner
	Log   *slog.Logger
	// Agreed is called after an exchange after which both sides hold the text of a tag; nil: nobody is told.
	Agreed func(tag string)
	// Follows reports whether another member watches the cloud for the pool, see Board.Confirm; nil: nobody does.
	Follows func() bool
	// Began is called when Share begins; nil: nobody is told.
	Began func()

	retry chan struct{} // see Retry
	shown shown
}

// New makes the Document of a Holder.
func New(h Holder, d *Document) *Document {
	d.Holder, d.retry = h, make(chan struct{}, 1)
	return d
}

// TagOf is a tag of texts.
func TagOf(texts ...[]byte) string {
	sum := sha256.New()
	for _, t := range texts {
		sum.Write(t)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// often is between two exchanges, of each with the one that it uses, if nothing changes.
const often = 10 * time.Second

// Meet lets an exchange happen with each member of the pool that is to be asked now.
type Meet func(ctx context.Context, exchange func(ctx context.Context, by http.RoundTripper, at *url.URL))

// Share exchanges now, often, and at once when something changes, until ctx ends. at is the address of a member,
// without a path.
func (d *Document) Share(ctx context.Context, c clock.Clock, meet Meet) {
	if d.Began != nil {
		d.Began()
	}
	for ctx.Err() == nil {
		changed := d.Changed()
		meet(ctx, func(ctx context.Context, by http.RoundTripper, at *url.URL) {
			if err := d.Exchange(ctx, by, at.JoinPath(d.At)); err != nil {
				d.Log.Debug("a member of the pool does not take or show what its authority signed", "err", err)
			}
		})
		due := c.NewTimer(often)
		select {
		case <-changed:
		case <-due.C():
		case <-ctx.Done():
		}
		due.Stop()
	}
}

// ServeHTTP shows what is held, and takes what somebody else holds. Who may ask is the caller's business; who signed is
// the holder's.
func (d *Document) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.Method {
	case http.MethodGet:
	case http.MethodPost:
		text, err := d.read(req.Body)
		if err == nil {
			_, err = d.Take(text)
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
	text, tag := d.Text()
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

func (d *Document) read(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, int64(d.Max)+1))
	if err == nil && len(text) > d.Max {
		err = fmt.Errorf("the %s has more than %d bytes", d.About, d.Max)
	}
	return text, err
}

// Exchange takes what another one of the pool holds, and gives it what it lacks. at is where that one serves.
func (d *Document) Exchange(ctx context.Context, by http.RoundTripper, at *url.URL) error {
	fail := func(err error) error { return fmt.Errorf("exchange the %s with %s: %w", d.About, at.Host, err) }
	_, tag := d.Text()
	code, header, theirs, err := d.ask(ctx, by, http.MethodGet, at, tag, nil)
	if err != nil {
		return fail(err)
	}
	switch code {
	case http.StatusNotModified:
		d.agreed(tag)
		return nil
	case http.StatusOK:
	default:
		return fail(fmt.Errorf("answer %d: %.200s", code, theirs))
	}
	// What they hold may be older, and not count any more: then they are told all the same.
	_, refused := d.Take(theirs)
	mine, tag := d.Text()
	if header.Get("Etag") == quote(tag) || len(mine) == 0 {
		if refused != nil {
			return fail(refused)
		}
		d.agreed(tag)
		return nil
	}
	code, _, why, err := d.ask(ctx, by, http.MethodPost, at, "", mine)
	switch {
	case err != nil:
		return fail(err)
	case code != http.StatusNoContent:
		return fail(fmt.Errorf("answer %d: %.200s", code, why))
	}
	d.agreed(tag)
	return nil
}

func (d *Document) agreed(tag string) {
	if d.Agreed != nil && tag != "" {
		d.Agreed(tag)
	}
}

func (d *Document) ask(ctx context.Context, by http.RoundTripper, method string, at *url.URL, tag string, body []byte) (
	code int, header http.Header, text []byte, err error) {
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
	text, err = d.read(resp.Body)
	return resp.StatusCode, resp.Header, text, err
}
