package bulletin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	watchLasts = 12 * time.Hour
	watchAgain = 5 * time.Second // after one that ended, or that did not come about for lack of a connection
	// after one that the cloud refused: weir-manager does not know this node yet, or there is none.
	watchDenied = time.Second
	watchRarely = 10 * time.Minute // after more and more of them
	maxMeta     = 256 << 10        // of an event beside the text
)

// Retry says that the cloud may show the text now: Follow asks again. It never blocks.
func (d *Document) Retry() {
	select {
	case d.retry <- struct{}{}:
	default:
	}
}

// Follow reads the text in the cloud, now and whenever it changes, until ctx ends. It is one watch of one object, which
// goes on behind the version that was seen last: it costs nothing where nothing changed. Pauses before it is tried
// again are spread: hubs that lost it at once do not come back at once. They double while the cloud refuses, until
// Retry. It watches nothing while the text is confirmed and another member of the pool watches it.
func (d *Document) Follow(ctx context.Context, cloud http.RoundTripper, c clock.Clock) {
	said, denied := "", watchDenied
	defer d.shown.end()
	for ctx.Err() == nil {
		if d.Follows != nil && d.Follows() && d.shown.stands(c.Now()) {
			d.await(ctx, c, often)
			continue
		}
		wait := watchAgain
		watching, again := context.WithCancel(ctx)
		d.shown.follow(again)
		err := d.watch(watching, cloud, c)
		restored := watching.Err() != nil && ctx.Err() == nil
		again()
		var refused *refusedError
		if errors.As(err, &refused) {
			wait, denied = denied, min(2*denied, watchRarely)
			if text := err.Error(); text != said && ctx.Err() == nil {
				said = text
				d.Log.Info("the cloud does not show what it should; the pool may still know", "what", d.About, "err", err)
			}
		} else {
			denied = watchDenied
		}
		if !restored && d.await(ctx, c, wait/2+rand.N(wait)) {
			denied = watchDenied
		}
	}
}

// await waits for a time, and reports whether Retry ended it.
func (d *Document) await(ctx context.Context, c clock.Clock, wait time.Duration) (asked bool) {
	t := c.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C():
	case <-d.retry:
		return true
	case <-ctx.Done():
	}
	return false
}

// refusedError is an answer of the cloud that is no watch.
type refusedError struct{ error }

func (d *Document) watch(ctx context.Context, cloud http.RoundTripper, c clock.Clock) error {
	q := url.Values{
		"watch": {"1"}, "fieldSelector": {
			"metadata.name=" + d.Cloud.Name,
		}, "timeoutSeconds": {strconv.Itoa(int(watchLasts / time.Second))},
	}
	since := d.shown.since()
	if since != "" {
		q.Set("resourceVersion", since)
	}
	// refused is an answer that is no watch. It may be the version that is too old, or one of a cloud that was restored
	// from a backup.
	refused := func(err error) error {
		if since != "" {
			d.shown.forget()
			return err // and not refused: it is asked again without
		}
		return &refusedError{err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud"+d.Cloud.Path+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Accept", "application/json")
	resp, err := cloud.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refused(fmt.Errorf("watch %s of %s: %s", d.Cloud.Name, d.Cloud.Path, resp.Status))
	}
	d.shown.begin(c.Now(), since == "")
	defer d.shown.pause(c.Now)
	bounded := &io.LimitedReader{R: resp.Body}
	frames := json.NewDecoder(bounded)
	for {
		bounded.N = int64(2*d.Max + maxMeta)
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := frames.Decode(&event); err != nil {
			return fmt.Errorf("watch of the %s: %w", d.About, err)
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			d.see(event.Object)
		case "DELETED": // what was said stays so
			d.shown.set("", nil)
		default:
			var status metav1.Status
			_ = json.Unmarshal(event.Object, &status)
			return refused(fmt.Errorf("watch of the %s: %s %s", d.About, event.Type, status.Message))
		}
	}
}

// see takes an object as the cloud shows it.
func (d *Document) see(object []byte) {
	var o metav1.PartialObjectMetadata
	err := json.Unmarshal(object, &o)
	var text []byte
	if err == nil {
		text, err = d.Cloud.Text(object)
	}
	if err == nil && len(text) > d.Max {
		err = fmt.Errorf("%d bytes, want %d at most", len(text), d.Max)
	}
	if err != nil {
		text = nil
	}
	d.shown.set(o.ResourceVersion, text)
	if err == nil {
		_, err = d.TakeOfCloud(text)
	}
	if err != nil {
		d.Log.Error("the cloud's "+d.About+" does not count", "err", err)
	}
}

// Reset says that the cloud is another one than before, as after a restore from a backup: the version that was seen
// last may be one that it has yet to reach.
func (d *Document) Reset() { d.shown.reset() }

// Judge judges again what the cloud shows, and what is held: other authorities are trusted now.
func (d *Document) Judge() {
	if _, err := d.TakeOfCloud(d.shown.now()); err != nil {
		d.Log.Debug("the cloud's "+d.About+" still does not count", "err", err)
	}
}

// Lacking is what the cloud has forgotten; none: nothing, or that is not known.
func (d *Document) Lacking(now time.Time) []byte {
	text, known := d.shown.settled(now)
	if !known {
		return nil
	}
	return d.Lacks(text)
}

// Live reports whether what is held is what the cloud shows now.
func (d *Document) Live(now time.Time) bool {
	text, known := d.shown.settled(now)
	held, _ := d.Text()
	same := known && bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(held))
	return len(held) > 0 && (same || d.shown.rests(now))
}

// Age is how long ago the cloud was watched or confirmed it last; false: it never was.
func (d *Document) Age(now time.Time) (time.Duration, bool) { return d.shown.age(now) }
