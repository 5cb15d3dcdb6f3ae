package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// streamTimeout is the timeoutSeconds of streaming lists. kube-apiserver has no upper bound; a stock informer asks for
// 5 to 10 min.
const streamTimeout = 24 * time.Hour

// errEnough ends a stream whose list is complete: what follows is not wanted.
var errEnough = errors.New("the list is complete")

// list gives take objects by a plain list, and returns what would end a streaming one.
func (f *Feeder) list(ctx context.Context, up *hop.Upstream, of hop.Form, query url.Values, take func(*wire.Object)) (
	end *wire.Event, err error) {
	res := f.cfg.Relay.Resource()
	kind := res.WireKind()
	q := hop.Question{Of: of, Query: query}
	if s := f.cfg.Relay.Status(); s.Synced {
		q.History = &s.History
	}
	if of == hop.Metadata {
		q.Of, kind = hop.MetadataList, hop.MetadataKind
	}
	a, err := up.Get(ctx, res, q, follows(q.History))
	if err != nil {
		return nil, cause(ctx, err)
	}
	defer a.Body.Close()
	m, err := wire.ReadList(a.Body, res.Encoding(), kind, func(o *wire.Object) error {
		take(o)
		return nil
	})
	if err != nil {
		return nil, cause(ctx, err)
	}
	f.works(up)
	return &wire.Event{Type: wire.Bookmark, Version: m.Version, InitialEnd: true}, nil
}

// initial gives take the objects of a streaming list, leaves the stream, and returns the bookmark that ends the list.
func (f *Feeder) initial(ctx context.Context, up *hop.Upstream, of hop.Form, query url.Values,
	take func(*wire.Object)) (end *wire.Event, err error) {
	if f.plainAt.Load() == up {
		return f.list(ctx, up, of, query, take)
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	stream := maps.Clone(query)
	stream.Set("sendInitialEvents", "true")
	stream.Set("resourceVersionMatch", "NotOlderThan")
	stream.Set("timeoutSeconds", strconv.Itoa(int(streamTimeout/time.Second)))
	w, err := f.open(ctx, up, hop.Question{Of: of, Query: stream})
	if f.streamless(up, err) {
		return f.list(ctx, up, of, query, take)
	}
	if err != nil {
		return nil, err
	}
	defer w.body.Close()
	room := f.room(up)
	err = f.read(ctx, up, w, func(ev *wire.Event) error {
		switch {
		case ev.InitialEnd:
			end = ev
			return errEnough
		case ev.Type == wire.Added:
			take(ev.Object)
			return room(ev.Object)
		}
		return fmt.Errorf("a %s event among the initial ones", ev.Type)
	})
	return end, ended(err)
}

// streamless notes by an error that an upstream knows no streaming lists: the feature gate WatchList is off, as it is
// by default before Kubernetes 1.32, and in 1.33.
func (f *Feeder) streamless(up *hop.Upstream, err error) bool {
	var s *hop.StatusError
	if !errors.As(err, &s) || s.Code != http.StatusUnprocessableEntity || up.Progress {
		return false
	}
	if f.plainAt.Swap(up) != up {
		f.cfg.Logger.Warn("the cloud has no streaming lists (its feature gate WatchList is off): it is listed and watched "+
			"instead, and what changes is not compressed",
			"upstream", up.Name, "err", err)
	}
	return true
}

// ended is the error of a stream that should have ended by errEnough.
func ended(err error) error {
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err == nil:
		return io.ErrUnexpectedEOF
	}
	return err
}
