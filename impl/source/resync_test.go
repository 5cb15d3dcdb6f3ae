package source

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// forgetful is a cloud with a short memory: each watch from a version is answered 410 once.
type forgetful struct {
	relay   *relay.Relay
	forgot  atomic.Bool
	between func() // called once, before the first object is fetched
	fetched atomic.Int32
	listed  atomic.Int32 // plain lists of metadata
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	switch {
	case q.Get("sendInitialEvents") == "" && q.Get("watch") != "" && f.forgot.CompareAndSwap(false, true):
		http.Error(w, "too old", http.StatusGone)
		return
	case q.Get("watch") == "" && strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadataList;"):
		f.listed.Add(1)
	case q.Get("fieldSelector") != "":
		if f.fetched.Add(1) == 1 && f.between != nil {
			f.between()
		}
	}
	(&rest.Handler{Source: f.relay}).ServeHTTP(w, req)
}

func versions(r *relay.Relay) map[string]uint64 {
	m := map[string]uint64{}
	for o := range r.Objects() {
		m[o.Key] = o.Version
	}
	return m
}

func TestResync(t *testing.T) {
	const few, many = 100, 1000 // objects whose metadata kube-apiserver would not compress, or would
	for name, c := range map[string]struct {
		objects, changed, lists int
		again                   bool // one of the changed objects changes while they are fetched
	}{
		"nothing changed":             {few, 0, 1, false},
		"a few changed":               {few, 3, 1, false},
		"a few of many changed":       {many, 3, 1, false},
		"and change meanwhile":        {few, 3, 1, true},
		"many, that change meanwhile": {many, 3, 1, true},
		"most changed":                {few, 60, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			cloud, mine := newRelay(t), newRelay(t)
			name := func(i int) string {
				if c.objects == few {
					return fmt.Sprintf("s%02d", i)
				}
				return fmt.Sprintf("s%02d-%0200d", i, 0)
			}
			var items []*wire.Object
			for i := range c.objects {
				items = append(items, slice(t, name(i), uint64(i+1)))
			}
			if err := cloud.Replace(5000, items); err != nil {
				t.Fatal(err)
			}
			f := feed(t, mine)
			f.Use(serve(t, "before", &rest.Handler{Source: cloud}))
			eventually(t, "the first list", func() bool { return mine.Status().Version == 5000 })
			f.Use(nil)
			eventually(t, "the end of the watch", func() bool { return cloud.Status().Watchers == 0 })
			for i := range c.changed {
				put(t, cloud, name(i), uint64(6000+i))
			}
			gone := &wire.Event{Type: wire.Deleted, Object: slice(t, name(99), 7000), Version: 7000}
			if err := cloud.Apply(gone); err != nil {
				t.Fatal(err)
			}
			after := &forgetful{relay: cloud}
			if c.again {
				after.between = func() { put(t, cloud, name(0), 7001) }
			}
			f.Use(serve(t, "after", after))
			eventually(t, "the cloud's state", func() bool { return maps.Equal(versions(mine), versions(cloud)) })
			if s := f.Status(); s.Lists.Total() != c.lists || s.Resyncs != 1 || s.Gone != 1 {
				t.Errorf("%+v", s)
			}
			if n := int(after.fetched.Load()); c.lists == 1 && n < c.changed || c.lists > 1 && n > 0 {
				t.Errorf("%d objects were fetched", n)
			}
			if n := after.listed.Load(); n > 0 != (c.objects == many) {
				t.Errorf("%d plain lists of metadata", n)
			}
			if s := mine.Status(); s.Oldest > 5000 {
				t.Errorf("clients cannot resume at 5000: %+v", s)
			}
			if e := f.Status().LastError; strings.Contains(e, "after 410") {
				t.Error(e)
			}
		})
	}
}
