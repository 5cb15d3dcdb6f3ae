package hub

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
)

// TestStalls: who takes nothing of an answer loses it after a minute, who takes some does not; and what waits at the
// hub meanwhile is bounded.
func TestStalls(t *testing.T) {
	b := newBed(t, 1)
	h, err := New(b.config)
	check(t, err)
	clk := clocktesting.NewFakeClock(time.Now())
	var ended atomic.Int64
	h.door.Stalls = answer.NewStalls(clk, func() { ended.Add(1) }, h.metrics.served, slog.New(slog.DiscardHandler))
	b.run(h)
	eventually(t, "the janitor", clk.HasWaiters)

	const streams = 20
	slow, quick := b.client(nil), b.client(nil)
	slow.Timeout, quick.Timeout = 0, 0
	var answers []io.ReadCloser
	for range streams {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url()+"/pour", nil)
		check(t, err)
		req.Header.Set(alice[0], alice[1])
		req.Header.Set("X-Kind", "slow")
		resp, err := slow.Do(req)
		check(t, err)
		answers = append(answers, resp.Body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url()+"/pour", nil)
	check(t, err)
	req.Header.Set(alice[0], alice[1])
	resp, err := quick.Do(req)
	check(t, err)
	defer resp.Body.Close()
	stuck := h.door.Stalls.Standing
	eventually(t, "all to stand still", func() bool { return stuck() == streams+1 })
	before := b.hub.cloud.Bytes(uplink.ClassNode).Down
	// Go's client takes 4 MiB of each stream before it lets the hub wait.
	if most := int64(streams+1) * (5<<20 + 2*limit.ReceiveBuffer); before > most {
		t.Errorf("%d bytes came from the cloud for answers that nobody takes, want at most %d", before, most)
	}
	// One that seemed to stand still may only have been slow: it is looked at again each time.
	for range 8 {
		clk.Step(limit.StallTimeout / 2)
		_, err = io.CopyN(io.Discard, resp.Body, 8<<20)
		check(t, err)
		eventually(t, "the rest to stand still", func() bool { return stuck()+int(ended.Load()) == streams+1 })
	}
	eventually(t, "the others to end", func() bool { return stuck() <= 1 && ended.Load() == streams })
	for _, a := range answers {
		if _, err := io.Copy(io.Discard, a); err == nil {
			t.Error("an answer that nobody took ended well")
		}
		_ = a.Close()
	}
	if _, err := io.CopyN(io.Discard, resp.Body, 8<<20); err != nil {
		t.Errorf("the one that was read: %v", err)
	}
	if resp, body := get(t, slow, b.url()+"/echo/x", alice...); resp.StatusCode != http.StatusOK ||
		!strings.Contains(body, "alice") {
		t.Errorf("the connection after that: %d %s", resp.StatusCode, body)
	}
}
