package oracle

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// history is a recorded watch.
type history struct {
	initial  []*wire.Event // before the bookmark that ends the initial events
	events   []*wire.Event
	start    uint64 // version of that bookmark
	complete uint64 // version of the last event or bookmark: watches are in the order of versions, nothing up to it is missing
}

// compareWatch opens the same watch at both sides and compares what came up to a version that both vouch for.
func (p Pair) compareWatch(ctx context.Context, r Request) error {
	var got, want *history
	var gotErr, wantErr error
	var wg sync.WaitGroup
	wg.Go(func() { got, gotErr = p.record(ctx, p.Relay, r) })
	wg.Go(func() { want, wantErr = p.record(ctx, p.Cloud, r) })
	wg.Wait()
	if wantErr != nil {
		return fmt.Errorf("%v: kube-apiserver: %w", r, wantErr)
	}
	if gotErr != nil {
		return mismatch(r, "%v", gotErr)
	}
	if got.complete == 0 && len(want.events) > 0 {
		return mismatch(r, "nothing came, kube-apiserver sends %d events", len(want.events))
	}
	upTo := min(got.complete, want.complete)
	if (got.start == 0) != (want.start == 0) {
		return mismatch(r, "end of initial events: relay %d, kube-apiserver %d", got.start, want.start)
	}
	from := max(got.start, want.start)
	a, b := between(got.events, from, upTo), between(want.events, from, upTo)
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return mismatch(r, "event %d missing: %s", i, describe(b[i]))
		case i >= len(b):
			return mismatch(r, "event %d too many: %s", i, describe(a[i]))
		case a[i].Type != b[i].Type || !bytes.Equal(a[i].Frame, b[i].Frame):
			return mismatch(r, "event %d: %s, kube-apiserver sends %s: %s", i, describe(a[i]), describe(b[i]), difference(a[i].Frame, b[i].Frame))
		}
	}
	if got.start == 0 {
		return nil
	}
	return p.compareInitial(ctx, r, got)
}

// compareInitial compares the initial events with kube-apiserver's exact list at the version they are of.
func (p Pair) compareInitial(ctx context.Context, r Request, got *history) error {
	q := url.Values{"resourceVersion": {strconv.FormatUint(got.start, 10)}, "resourceVersionMatch": {"Exact"}}
	for _, k := range []string{"labelSelector", "fieldSelector"} {
		if v := r.Query.Get(k); v != "" {
			q.Set(k, v)
		}
	}
	list := Request{Path: r.Path, Query: q, Accept: "application/vnd.kubernetes.protobuf"}
	want, err := p.Cloud.Ask(ctx, list)
	if err != nil {
		return err
	}
	if want.Code != http.StatusOK {
		return fmt.Errorf("%v: kube-apiserver: %d %.300s", list, want.Code, want.Body)
	}
	i := 0
	_, err = wire.ReadList(bytes.NewReader(want.Body), wire.Protobuf, p.Kind, func(o *wire.Object) error {
		if i >= len(got.initial) {
			return mismatch(r, "initial event %d missing: %s at %d", i, o.Key, o.Version)
		}
		g := got.initial[i].Object
		if got.initial[i].Type != wire.Added || g.Key != o.Key || g.UID != o.UID || g.Version != o.Version {
			return mismatch(r, "initial event %d is %s, kube-apiserver lists %s at %d", i, describe(got.initial[i]), o.Key, o.Version)
		}
		i++
		return nil
	})
	if err == nil && i != len(got.initial) {
		err = mismatch(r, "%d initial events, kube-apiserver lists %d", len(got.initial), i)
	}
	return err
}

func between(events []*wire.Event, from, to uint64) []*wire.Event {
	var out []*wire.Event
	for _, e := range events {
		if e.Version > from && e.Version <= to {
			out = append(out, e)
		}
	}
	return out
}

func describe(e *wire.Event) string {
	if e.Object == nil {
		return fmt.Sprintf("%s at %d", e.Type, e.Version)
	}
	return fmt.Sprintf("%s %s at %d", e.Type, e.Object.Key, e.Version)
}

func (p Pair) record(ctx context.Context, s Side, r Request) (*history, error) {
	a, err := s.Ask(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.Code != http.StatusOK {
		return nil, fmt.Errorf("%d %s: %.300s", a.Code, a.Reason, a.Body)
	}
	kind, enc := p.Kind, wire.JSON
	if strings.HasPrefix(a.Type, "application/vnd.kubernetes.protobuf") {
		enc = wire.Protobuf
	}
	if strings.Contains(r.Accept, "as=PartialObjectMetadata") {
		kind = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	}
	// Neither side promises a bookmark: kube-apiserver drops one that finds the watcher's buffer full.
	h := &history{}
	in := wire.NewEventReader(bytes.NewReader(a.Body), enc, kind)
	for {
		e, err := in.Next()
		if err != nil {
			if e == nil && err.Error() == "EOF" {
				break
			}
			return nil, fmt.Errorf("frame %d: %w", len(h.events), err)
		}
		switch {
		case e.Type == wire.Error:
			return nil, fmt.Errorf("ERROR %d %s: %s", e.Status.Code, e.Status.Reason, e.Status.Message)
		case e.InitialEnd:
			h.initial, h.events, h.start, h.complete = h.events, nil, e.Version, e.Version
		case e.Type == wire.Bookmark:
			if e.Version < h.complete {
				return nil, fmt.Errorf("a bookmark at %d after %d", e.Version, h.complete)
			}
			h.complete = e.Version
		default:
			h.events = append(h.events, e)
			h.complete = e.Version
		}
	}
	return h, nil
}
