package source

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// forgetful is a cloud with a short memory: each watch from a version is answered 410 once.
type forgetful struct {
	relay   *relay.Relay
	forgot  atomic.Bool
	between func() // called once, before the first object is fetched
	fetched atomic.Int32
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	switch {
	case q.Get("sendInitialEvents") == "" && q.Get("watch") != "" && f.forgot.CompareAndSwap(false, true):
		http.Error(w, "too old", http.StatusGone)
		return
	case q.Get("fieldSelector") != "":
		if f.fetched.Add(1) == 1 && f.between != nil {
			f.between()
		}
	}
	f.relay.ServeHTTP(w, req)
}

func versions(r *relay.Relay) map[string]uint64 {
	m := map[string]uint64{}
	for o := range r.Objects() {
		m[o.Key] = o.Version
	}
	return m
}

func TestResync(t *testing.T) {
	for name, c := range map[string]struct {
		changed, lists int
		again          bool // one of the changed objects changes while they are fetched
	}{
		"nothing changed":      {0, 1, false},
		"a few changed":        {3, 1, false},
		"and change meanwhile": {3, 1, true},
		"most changed":         {60, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			cloud, mine := newRelay(t), newRelay(t)
			var items []*wire.Object
			for i := range 100 {
				items = append(items, slice(t, fmt.Sprintf("s%02d", i), uint64(i+1)))
			}
			if err := cloud.Replace(200, items); err != nil {
				t.Fatal(err)
			}
			f := feed(t, mine)
			f.Use(serve(t, "before", cloud))
			eventually(t, "the first list", func() bool { return mine.Status().Version == 200 })
			f.Use(nil)
			for i := range c.changed {
				put(t, cloud, fmt.Sprintf("s%02d", i), uint64(300+i))
			}
			gone := &wire.Event{Type: wire.Deleted, Object: slice(t, "s99", 400), Version: 400}
			if err := cloud.Apply(gone); err != nil {
				t.Fatal(err)
			}
			after := &forgetful{relay: cloud}
			if c.again {
				after.between = func() { put(t, cloud, "s00", 401) }
			}
			f.Use(serve(t, "after", after))
			eventually(t, "the cloud's state", func() bool { return maps.Equal(versions(mine), versions(cloud)) })
			if s := f.Status(); s.Lists != c.lists || s.Resyncs != 1 || s.Gone != 1 {
				t.Errorf("%+v", s)
			}
			if n := int(after.fetched.Load()); c.lists == 1 && n < c.changed || c.lists > 1 && n > 0 {
				t.Errorf("%d objects were fetched", n)
			}
			if s := mine.Status(); s.Oldest > 200 {
				t.Errorf("clients cannot resume at 200: %+v", s)
			}
			if e := f.Status().LastError; strings.Contains(e, "after 410") {
				t.Error(e)
			}
		})
	}
}
