package source

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// A cloud whose gate WatchList is off refuses streaming lists with 422: it is listed, watched, and compared with after
// 410.
func TestCloudWithoutStreamingLists(t *testing.T) {
	var cloud atomic.Pointer[relay.Relay]
	cloud.Store(stateOf(t, 1000, slice(t, "a", 5), slice(t, "b", 950)))
	up := serve(t, "cloud", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("sendInitialEvents") != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				Reason: metav1.StatusReasonInvalid,
				Message: "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature " +
					"gate is enabled",
			})
			return
		}
		(&rest.Handler{Source: cloud.Load()}).ServeHTTP(w, req)
	}))
	up.Consistent, up.Gzip = true, true
	mine := newRelay(t)
	f := feed(t, mine)
	f.Use(up)
	eventually(t, "the first list", func() bool { return mine.Status().Version == 1000 })
	put(t, cloud.Load(), "c", 1001)
	eventually(t, "an event", func() bool { return mine.Status().Version == 1001 })
	forgot := stateOf(t, 1100, slice(t, "a", 5), slice(t, "b", 1090), slice(t, "c", 1001)) // and its watch cache is empty
	cloud.Swap(forgot)
	eventually(t, "what changed", func() bool {
		return maps.Equal(versions(mine), versions(forgot)) && mine.Status().Version == 1100
	})
	if s := f.Status(); s.Lists.Total() != 1 || s.Resyncs != 1 || s.Histories != 0 {
		t.Errorf("%+v", s)
	}
}

// A cloud that shows no bookmarks, because its etcd seldom tells of progress, is asked behind each watch that showed
// nothing. The relay is fresh.
func TestCloudWithoutBookmarks(t *testing.T) {
	cloud, mine := stateOf(t, 1000, slice(t, "a", 5)), newRelay(t)
	var asked atomic.Int32
	up := serve(t, "cloud", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		switch {
		case q.Get("watch") == "":
			asked.Add(1)
		case q.Get("sendInitialEvents") == "":
			q.Del("allowWatchBookmarks")
			req.URL.RawQuery = q.Encode()
		}
		(&rest.Handler{Source: cloud}).ServeHTTP(w, req)
	}))
	up.Consistent = true
	f := feed(t, mine)
	f.Use(up)
	eventually(t, "the first list", func() bool { return mine.Status().Version == 1000 })
	first := mine.Status().ProgressAt
	eventually(t, "a sign of the cloud on a quiet resource", func() bool { return mine.Status().ProgressAt.After(first) })
	if n := asked.Load(); n == 0 {
		t.Error("nobody asked")
	}
	if err := cloud.Apply(&wire.Event{Type: wire.Bookmark, Version: 1005}); err != nil { // another resource moved
		t.Fatal(err)
	}
	n := asked.Load()
	eventually(t, "another question", func() bool { return asked.Load() > n })
	if s := mine.Status(); s.Version != 1000 || time.Since(s.ProgressAt) < 0 || f.Status().LastError != "" {
		t.Errorf("%+v, %+v", s, f.Status())
	}
}
