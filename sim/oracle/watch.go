package oracle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	// watchSeconds is how long a generated watch lasts.
	watchSeconds = 5
	// bookmarkBefore is how long before its end a watch shows by a bookmark how far it is (nextBookmarkTime in
	// storage/cacher).
	bookmarkBefore = 2 * time.Second
	// slack is what a relay may take to show in a watch what it has shown in a list: it gathers changes for some
	// milliseconds.
	slack = 500 * time.Millisecond
	// cloudWatches is how often kube-apiserver is asked for what it did not vouch for: it drops a bookmark that finds the
	// watcher's buffer full (dispatchEvent in storage/cacher), which happens under load.
	cloudWatches = 10
)

// history is a recorded watch.
type history struct {
	media    string        // Content-Type
	initial  []*wire.Event // before the bookmark that ends the initial events
	events   []*wire.Event
	start    uint64 // version of that bookmark
	bookmark uint64 // version of the last other bookmark
	// version of the last event or bookmark: watches are in the order of versions, nothing up to it is missing.
	complete uint64
}

// compareWatch records a watch of the relay to its end, and compares all that came with what kube-apiserver sends of
// the same versions.
//
// A relay that says less than it knows is found out by its own lists: what one of them showed before the watch owed its
// bookmark must be in that bookmark, and what one of them showed before the end must have come.
func (p Pair) compareWatch(ctx context.Context, r Request) error {
	atStart, err := p.reached(ctx, r)
	if err != nil {
		return err
	}
	begin := time.Now()
	var got, want *history
	var gotErr, wantErr error
	var byBookmark, byEnd uint64
	var wg sync.WaitGroup
	wg.Go(func() { got, gotErr = p.record(ctx, p.Relay, r, nil) })
	initial := r.initial()
	if initial {
		wg.Go(func() { want, wantErr = p.cloudInitial(ctx, r) })
	}
	wg.Go(func() {
		lasts := watchSeconds * time.Second
		byBookmark = p.reachedBy(ctx, r, begin.Add(lasts-bookmarkBefore-slack), atStart)
		byEnd = p.reachedBy(ctx, r, begin.Add(lasts-slack), byBookmark)
	})
	wg.Wait()
	switch {
	case wantErr != nil:
		return fmt.Errorf("%v: kube-apiserver: %w", r, wantErr)
	case gotErr != nil:
		return mismatch(r, "%v", gotErr)
	case initial && got.start == 0:
		return mismatch(r, "the initial events do not end: %d events", len(got.events))
	case !initial && got.start != 0:
		return mismatch(r, "initial events end at %d, and were not asked for", got.start)
	}
	if err := checkBookmark(r, got, byBookmark); err != nil {
		return err
	}
	from := got.start
	if initial {
		if err := p.compareInitial(ctx, r, got, want); err != nil {
			return err
		}
	} else if from, err = strconv.ParseUint(r.Query.Get("resourceVersion"), 10, 64); err != nil {
		return fmt.Errorf("%v: %w", r, err)
	}
	upTo := max(got.complete, byEnd)
	want, err = p.cloudEvents(ctx, r, from, upTo)
	if err != nil {
		return fmt.Errorf("%v: kube-apiserver: %w", r, err)
	}
	if got.media != want.media {
		return mismatch(r, "Content-Type %q, kube-apiserver says %q", got.media, want.media)
	}
	return compareEvents(r, got.events, want.events)
}

// checkBookmark insists on the bookmark that a relay owes before the end of a watch, and that it covers what the relay
// has shown by then.
func checkBookmark(r Request, got *history, shown uint64) error {
	asked := r.Query.Get("allowWatchBookmarks") == "true"
	switch {
	case !asked && got.bookmark != 0:
		return mismatch(r, "a bookmark at %d was not asked for", got.bookmark)
	case asked && got.bookmark == 0:
		return mismatch(r, "no bookmark in a watch of %d s, %d events", watchSeconds, len(got.events))
	case asked && got.bookmark < shown:
		return mismatch(r, "the last bookmark is at %d, a list before it was at %d", got.bookmark, shown)
	}
	return nil
}

func compareEvents(r Request, got, want []*wire.Event) error {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return mismatch(r, "event %d missing: %s", i, describe(want[i]))
		case i >= len(want):
			return mismatch(r, "event %d too many: %s", i, describe(got[i]))
		case got[i].Type != want[i].Type || !same(r, got[i].Frame, want[i].Frame):
			return mismatch(r, "event %d: %s, kube-apiserver sends %s: %s", i, describe(got[i]), describe(want[i]),
				difference(got[i].Frame, want[i].Frame))
		}
	}
	return nil
}

// reached asks the relay for its version by a list.
func (p Pair) reached(ctx context.Context, r Request) (uint64, error) {
	a, err := p.Relay.Ask(ctx, Request{Path: r.Path, Query: url.Values{"limit": {"1"}}, Accept: metaList[1]})
	if err != nil {
		return 0, err
	}
	if a.Code != http.StatusOK {
		return 0, mismatch(r, "a list before the watch: %d %s", a.Code, a.Reason)
	}
	version, _, err := listMeta(a)
	if err != nil {
		return 0, err
	}
	return wire.ParseVersion(version)
}

// reachedBy asks before a moment, and returns what is known if the answer comes after it: a busy machine proves
// nothing.
func (p Pair) reachedBy(ctx context.Context, r Request, moment time.Time, known uint64) uint64 {
	const before = 1300 * time.Millisecond
	timer := time.NewTimer(time.Until(moment.Add(-before)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return known
	}
	version, err := p.reached(ctx, r)
	if err != nil || time.Now().After(moment) {
		return known
	}
	return max(known, version)
}

// cloudInitial records kube-apiserver's initial events.
func (p Pair) cloudInitial(ctx context.Context, r Request) (*history, error) {
	for range cloudWatches {
		h, err := p.record(ctx, p.Cloud, r, func(h *history) bool { return h.start != 0 })
		if err != nil || h.start != 0 {
			return h, err
		}
	}
	return nil, fmt.Errorf("initial events did not end in any of %d watches", cloudWatches)
}

// cloudEvents returns what kube-apiserver sends of the versions behind from, up to another.
func (p Pair) cloudEvents(ctx context.Context, r Request, from, upTo uint64) (*history, error) {
	all := &history{complete: from}
	for tries := range cloudWatches {
		q := clone(r.Query)
		for _, k := range []string{"sendInitialEvents", "resourceVersionMatch"} {
			q.Del(k)
		}
		q.Set("allowWatchBookmarks", "true")
		q.Set("timeoutSeconds", strconv.Itoa(3+tries))
		q.Set("resourceVersion", strconv.FormatUint(all.complete, 10))
		h, err := p.record(ctx, p.Cloud, Request{Path: r.Path, Query: q, Accept: r.Accept},
			func(h *history) bool { return h.complete >= upTo })
		if err != nil {
			return nil, err
		}
		all.media, all.complete = h.media, max(all.complete, h.complete)
		for _, e := range h.events {
			if e.Version <= upTo {
				all.events = append(all.events, e)
			}
		}
		if all.complete >= upTo {
			return all, nil
		}
	}
	return nil, fmt.Errorf("%d watches end at %d, want all up to %d", cloudWatches, all.complete, upTo)
}

// compareInitial compares the initial events with kube-apiserver's exact list at the version they are of, and their
// bytes with those that kube-apiserver sends of the same objects at the same versions.
func (p Pair) compareInitial(ctx context.Context, r Request, got, cloud *history) error {
	type at struct {
		key     string
		version uint64
	}
	frames := map[at][]byte{}
	for _, e := range cloud.initial {
		frames[at{e.Object.Key, e.Version}] = e.Frame
	}
	for i, e := range got.initial {
		if e.Object == nil {
			return mismatch(r, "initial event %d is %s", i, describe(e))
		}
		if want, ok := frames[at{e.Object.Key, e.Version}]; ok && !same(r, e.Frame, want) {
			return mismatch(r, "initial event %d, %s: %s", i, describe(e), difference(e.Frame, want))
		}
	}
	q := url.Values{"resourceVersion": {strconv.FormatUint(got.start, 10)}, "resourceVersionMatch": {"Exact"}}
	for _, k := range []string{"labelSelector", "fieldSelector"} {
		if v := r.Query.Get(k); v != "" {
			q.Set(k, v)
		}
	}
	list := Request{Path: r.Path, Query: q, Accept: metaList[1]}
	want, err := p.Cloud.Ask(ctx, list)
	if err != nil {
		return err
	}
	if want.Code != http.StatusOK {
		return fmt.Errorf("%v: kube-apiserver: %d %.300s", list, want.Code, want.Body)
	}
	i := 0
	kind := wire.Kind{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
	_, err = wire.ReadList(bytes.NewReader(want.Body), wire.JSON, kind, func(o *wire.Object) error {
		if i >= len(got.initial) {
			return mismatch(r, "initial event %d missing: %s at %d", i, o.Key, o.Version)
		}
		g := got.initial[i].Object
		if got.initial[i].Type != wire.Added || g.Key != o.Key || g.UID != o.UID || g.Version != o.Version {
			return mismatch(r, "initial event %d is %s, kube-apiserver lists %s at %d", i, describe(got.initial[i]), o.Key,
				o.Version)
		}
		i++
		return nil
	})
	if err == nil && i != len(got.initial) {
		err = mismatch(r, "%d initial events, kube-apiserver lists %d", len(got.initial), i)
	}
	return err
}

func describe(e *wire.Event) string {
	if e.Object == nil {
		return fmt.Sprintf("%s at %d", e.Type, e.Version)
	}
	return fmt.Sprintf("%s %s at %d", e.Type, e.Object.Key, e.Version)
}

// record reads a watch to its end, or until what has come is enough.
func (p Pair) record(ctx context.Context, s Side, r Request, enough func(*history) bool) (*history, error) {
	resp, err := s.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	h := &history{media: resp.Header.Get("Content-Type")}
	if resp.StatusCode != http.StatusOK {
		a, err := readAnswer(s, resp)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%d %s: %.300s", a.Code, a.Reason, a.Body)
	}
	kind, enc := p.Kind, wire.JSON
	if strings.HasPrefix(h.media, "application/vnd.kubernetes.protobuf") {
		enc = wire.Protobuf
	}
	if strings.Contains(r.Accept, "as=PartialObjectMetadata") {
		kind = wire.Kind{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
	}
	in := wire.NewEventReader(resp.Body, enc, kind)
	for enough == nil || !enough(h) {
		e, err := in.Next()
		if errors.Is(err, io.EOF) && e == nil {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("frame %d: %w", len(h.events), err)
		}
		if err := h.add(e); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// add takes the next event. One that comes behind a bookmark, or a bookmark behind an event, of a later version breaks
// a promise.
func (h *history) add(e *wire.Event) error {
	switch {
	case e.Type == wire.Error:
		return fmt.Errorf("ERROR %d %s: %s", e.Status.Code, e.Status.Reason, e.Status.Message)
	case e.InitialEnd:
		h.initial, h.events, h.start, h.complete = h.events, nil, e.Version, e.Version
	case e.Type == wire.Bookmark:
		if e.Version < h.complete {
			return fmt.Errorf("a bookmark at %d after %d", e.Version, h.complete)
		}
		h.bookmark, h.complete = e.Version, e.Version
	default:
		if e.Version <= max(h.bookmark, h.start) {
			return fmt.Errorf("%s after a bookmark at %d", describe(e), max(h.bookmark, h.start))
		}
		h.events = append(h.events, e)
		h.complete = e.Version
	}
	return nil
}
