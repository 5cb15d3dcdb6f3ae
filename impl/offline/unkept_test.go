package offline

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestUnkeptListIsLeftAlone: a list that the store cannot keep is fetched once, however often its watch begins again,
// and then after pauses that grow.
func TestUnkeptListIsLeftAlone(t *testing.T) {
	b := newBed(t)
	b.Wait()
	clock := clocktesting.NewFakeClock(time.Now())
	b.Offline = New(Config{Store: b.store, Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	long := configMaps + "?watch=1&resourceVersion=100&labelSelector=name+notin+(" + strings.Repeat("someone-else,", 400) +
		"x)"
	behind := b.Recorder.count.recorded.WithLabelValues("watch", "behind")
	resume := func() {
		t.Helper()
		before := testutil.ToFloat64(behind)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		resp := b.ask(ctx, long, "Accept", protobuf)
		eventually(t, "the watch to be left unrecorded", func() bool { return testutil.ToFloat64(behind) > before })
		leave()
		_ = resp.Body.Close()
	}
	for i, step := range []struct {
		after time.Duration
		lists int32 // in all
	}{
		{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {time.Minute, 2}, {time.Minute, 3},
		{3 * time.Minute, 3}, {time.Minute, 4},
	} {
		clock.Step(step.after)
		if resume(); b.lists.Load() != step.lists {
			t.Errorf("watch %d: %d lists, want %d", i+1, b.lists.Load(), step.lists)
		}
	}
	if n := testutil.ToFloat64(b.Recorder.count.leftAlone); n != 7 {
		t.Errorf("%v watches without a list are counted, want 7", n)
	}
	b.refuse.Store(500)
	clock.Step(2 * lastPause)
	resume()
	b.refuse.Store(0)
	if resume(); b.lists.Load() != 6 { // what the cloud refused says nothing of the store
		t.Errorf("%d lists after one that the cloud refused, want 6", b.lists.Load())
	}
	if _, body := b.pass(configMaps, "Accept", protobuf); body == "" ||
		b.offline(configMaps, "Accept", protobuf).Code != 200 {
		t.Error("another list is not kept")
	}
}
