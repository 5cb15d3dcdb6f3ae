package hop

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/scope"
)

const slices = contract.EndpointSlices + ".v1." + contract.DiscoveryGroup

func resource(t *testing.T, name string) relay.Resource {
	t.Helper()
	r, err := relay.ParseResource(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func upstream(t *testing.T, h http.HandlerFunc) *Upstream {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Upstream{Name: "far", URL: u, Client: srv.Client(), Progress: true}
}

// TestCheck: what a relay says of its history is looked at before the code of its answer, and is the answer if it does
// not please.
func TestCheck(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(rest.HistoryHeader, relay.History{Number: 3, Lost: 7}.String())
		w.Header().Set(contract.AgeHeader, "5")
		w.WriteHeader(http.StatusGone)
	})
	other := errors.New("another history")
	_, err := up.Get(t.Context(), resource(t, slices), Question{}, func(theirs relay.History, age time.Duration) error {
		if theirs.Number != 3 || age != 5*time.Second {
			t.Errorf("history %v of %v ago", theirs, age)
		}
		return other
	})
	if !errors.Is(err, other) {
		t.Errorf("%v, want %v", err, other)
	}
	_, err = up.Get(t.Context(), resource(t, slices), Question{}, func(relay.History, time.Duration) error { return nil })
	if !Gone(err) {
		t.Errorf("%v, want 410", err)
	}
}

// TestMembers: what a member of gzip holds is there before the next one has begun.
func TestMembers(t *testing.T) {
	more := make(chan struct{})
	up := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		for _, text := range []string{"first", "second"} {
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, text)
			_ = z.Close()
			_ = http.NewResponseController(w).Flush()
			<-more
		}
	})
	up.Progress, up.Gzip = false, true
	a, err := up.Get(t.Context(), resource(t, slices), Question{}, nil)
	if err != nil || !a.Compressed {
		t.Fatalf("%+v, %v", a, err)
	}
	defer a.Body.Close()
	for _, want := range []string{"first", "second"} {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(a.Body, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v", got, err)
		}
		more <- struct{}{}
	}
	if up.Bytes() == 0 {
		t.Error("no byte was counted")
	}
}

// TestShown: a server tells of each relay what it has, and of what it does not show that it cannot tell.
func TestShown(t *testing.T) {
	r, err := relay.New(relay.Config{Resource: resource(t, slices)})
	if err != nil {
		t.Fatal(err)
	}
	up := upstream(t, NewServer("edge-1", scope.NewSet(r).All, clock.RealClock{}).ServeHTTP)
	shown, err := up.Shown(t.Context())
	if err != nil || len(shown) != 1 || shown[0].Resource != slices || shown[0].Synced || shown[0].AgeSeconds != -1 {
		t.Errorf("%+v, %v", shown, err)
	}
	_, err = up.Get(t.Context(), resource(t, "pods.v1."), Question{},
		func(relay.History, time.Duration) error { return nil })
	if Answered(err) != http.StatusServiceUnavailable {
		t.Errorf("%v, want 503: 404 would say that the cloud does not have it", err)
	}
}
