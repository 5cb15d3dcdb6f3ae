package answer

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

// half is a client that takes half of what is written.
type half struct{ http.ResponseWriter }

func (h half) Write(p []byte) (int, error) {
	n, _ := h.ResponseWriter.Write(p[:len(p)/2])
	return n, errors.New("the client is gone")
}

// TestServed: each byte that a client got counts once, for the one that answered when it was written: a relay that
// cannot go on lets the cloud answer.
func TestServed(t *testing.T) {
	served := &Served{}
	s := NewStalls(clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), func() {}, served,
		slog.New(slog.DiscardHandler))
	got := httptest.NewRecorder()
	r := s.Record(got)
	r.Route = ByRelay
	for range 3 {
		if _, err := io.WriteString(r, "frame"); err != nil {
			t.Fatal(err)
		}
		r.Flush()
	}
	if n := served.Bytes(ByRelay); n != 15 || got.Body.Len() != 15 {
		t.Errorf("%d bytes while the watch goes on, of %d", n, got.Body.Len())
	}
	r.Route = "cloud"
	_, _ = io.WriteString(r, "the rest")
	s.Forget(r)
	gone := s.Record(half{httptest.NewRecorder()})
	gone.Route = ByRelay
	if _, err := io.WriteString(gone, "twelve bytes"); err == nil {
		t.Error("who is gone took all")
	}
	if relay, cloud := served.Bytes(ByRelay), served.Bytes("cloud"); relay != 15+6 || cloud != 8 {
		t.Errorf("%d bytes by relays, %d by the cloud, want 21 and 8", relay, cloud)
	}
	refused := s.Record(httptest.NewRecorder())
	refused.Route = ByRelay
	refused.WriteHeader(http.StatusGatewayTimeout)
	_, _ = io.WriteString(refused, "too far ahead")
	if relay := served.Bytes(ByRelay); relay != 21 {
		t.Errorf("an error counts as served: %d bytes", relay)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(served)
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(registry, "weir_hub_served_bytes_total"); n != 3 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
}
