package relay

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/await"
	"github.com/weir-edge/weir/impl/relay/wire"
)

func answer(t *testing.T, r *Relay, query string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, slicesPath+query, nil))
	return w.Code, w.Body.String()
}

// TestDeny: what the source does not give is answered as the source does, from when it says so until it shows a sign of
// later. Watches end, as clean as those of a kube-apiserver do, and are resumed when it is over.
func TestDeny(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1e9, 0))
	r := newRelay(t, withClock(clock))
	why := apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "")
	r.Deny(why)
	if code, _ := answer(t, r, ""); code != http.StatusNotFound {
		t.Errorf("before the first list: %d", code)
	}
	clock.Step(time.Second)
	replace(t, r, 10, slice(t, "a/x", 5))
	if code, body := answer(t, r, ""); code != http.StatusOK || !strings.Contains(body, `"x"`) {
		t.Errorf("a list that came: %d %s", code, body)
	}

	ended := make(chan string, 1)
	go func() {
		_, body := answer(t, r, "?watch=1&resourceVersion=10")
		ended <- body
	}()
	await.Until(t, time.Minute, "the watch to begin", func() bool { return r.Status().Watchers == 1 })
	clock.Step(time.Second)
	r.Deny(why)
	if body := <-ended; body != "" {
		t.Errorf("the watch ended with %q", body)
	}
	for _, query := range []string{"", "/x", "?watch=1", "?watch=1&resourceVersion=10", "?resourceVersion=10"} {
		if code, _ := answer(t, r, query); code != http.StatusNotFound {
			t.Errorf("%q: %d", query, code)
		}
	}
	if s := r.Status(); s.Fresh(clock.Now(), time.Hour) || !strings.HasPrefix(s.Denied, "404 ") || s.Objects != 1 {
		t.Errorf("%+v", s)
	}

	old := &Testimony{Version: 10, AsOf: clock.Now().Add(-time.Millisecond)}
	if err := r.apply(&wire.Event{Type: wire.Bookmark, Version: 11}, nil); err != nil {
		t.Fatal(err)
	}
	if r.Denied() != nil {
		t.Error("a bookmark of the cloud did not end it")
	}
	clock.Step(time.Second)
	r.Deny(why)
	old.Version = 12
	if err := r.apply(&wire.Event{Type: wire.Bookmark, Version: 12}, old); err != nil {
		t.Fatal(err)
	}
	if r.Denied() == nil {
		t.Error("it was ended by hearsay of before")
	}
	apply(t, r, wire.Modified, slice(t, "a/x", 13))
	if r.Denied() != nil || !r.Resumable(10) {
		t.Errorf("an event of the cloud did not end it, or nobody can resume: %+v", r.Status())
	}
}

// TestDenyFallsBack: where there is somebody else to ask, that one answers.
func TestDenyFallsBack(t *testing.T) {
	r := newRelay(t, func(c *Config) {
		c.Fallback = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	})
	replace(t, r, 10)
	r.Deny(apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", nil))
	if code, _ := answer(t, r, "?watch=1"); code != http.StatusTeapot {
		t.Errorf("got %d", code)
	}
}
