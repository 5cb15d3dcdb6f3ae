package pools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/digest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var began = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func some(served int64) digest.Digest {
	return digest.Digest{
		Version: "v1", Role: digest.Follower, Age: 7 * time.Second, Started: began.Add(-time.Hour), Down: 100, Up: 10,
		Feed: 60, Served: served, Images: digest.Images{Pulled: 5, Saved: 15},
	}
}

func gathered(t *testing.T, l *Ledger) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(l)
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			line := strings.TrimPrefix(f.GetName(), "weir_manager_")
			for _, p := range m.GetLabel() {
				line += " " + p.GetValue()
			}
			out = append(out, fmt.Sprintf("%s %v", line, m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	return strings.Join(out, "\n")
}

// TestLedger: what hubs tell can be read as it was told, of nodes that there are and that are in a pool, and of no
// others.
func TestLedger(t *testing.T) {
	clk := clocktesting.NewFakeClock(began)
	l := NewLedger(clk)
	l.Hear("edge-1", some(1000).Text()) // the watch of Leases may be ahead of that of Nodes
	l.SetNode("edge-1", "harbour")
	l.SetNode("cloud-1", "")
	l.Hear("cloud-1", some(1).Text())
	l.Hear("nobody", some(2).Text())
	for i := range 2000 {
		l.Hear(fmt.Sprint("liar-", i), "1 v1 L 1 1 1 1 1 "+strings.Repeat("9", 40))
	}
	l.Hear("edge-1", "1 v1 L")
	l.Hear("edge-1", "")
	want := `digest_refusals_total 2001
node_feed_bytes_total edge-1 harbour 60
node_freshness_seconds edge-1 harbour 7
node_hub_info edge-1 harbour Follower v1 1
node_images_bytes_total edge-1 harbour pulled 5
node_images_bytes_total edge-1 harbour saved 15
node_images_bytes_total edge-1 harbour served 0
node_served_bytes_total edge-1 harbour 1000
node_told_timestamp_seconds edge-1 harbour ` + fmt.Sprint(float64(began.Unix())) + `
node_uplink_bytes_total down edge-1 harbour 100
node_uplink_bytes_total up edge-1 harbour 10`
	got := strings.Split(gathered(t, l), "\n")
	slices.Sort(got)
	if all := strings.Split(want, "\n"); !slices.Equal(got, sorted(all)) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	clk.Step(digest.Lapsed + time.Second)
	if text := gathered(t, l); strings.Contains(text, "freshness") || !strings.Contains(text, "served") {
		t.Errorf("after two hours: %s", text)
	}
	if len(l.told) != 3 {
		t.Errorf("%d nodes are known", len(l.told))
	}
	l.Hush("nobody")
	l.Forget("edge-1")
	l.Forget("cloud-1")
	if text := gathered(t, l); text != "digest_refusals_total 2001" || len(l.told)+len(l.pools) > 0 {
		t.Errorf("of nodes that are gone: %s, %v, %v", text, l.told, l.pools)
	}
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

// TestTold: a Lease that somebody else writes does not tell again, whoever started in between, and what was kept is
// valid as long as nothing later is known.
func TestTold(t *testing.T) {
	clk := clocktesting.NewFakeClock(began)
	l := NewLedger(clk)
	l.Hear("a", some(1).Text())
	clk.Step(time.Hour)
	l.Hear("a", some(1).Text()) // a leader forwards heartbeats of the node
	if e, _ := l.Of("a"); !e.Told.Equal(began) {
		t.Errorf("told at %v", e.Told)
	}
	l = NewLedger(clk) // another replica finds the Lease as it stands, and the Pool
	l.Hear("a", some(1).Text())
	l.Restore("a", Entry{Digest: some(1), Told: began})
	if e, _ := l.Of("a"); !e.Told.Equal(began) {
		t.Errorf("after a restart: told at %v", e.Told)
	}
	l.Hear("a", some(2).Text())
	l.Restore("a", Entry{Digest: some(1), Told: began})
	if e, _ := l.Of("a"); e.Served != 2 || !e.Told.Equal(clk.Now()) {
		t.Errorf("%+v: what was kept is older", e)
	}
	l.Restore("b", Entry{Digest: some(3), Told: began})
	if e, known := l.Of("b"); !known || e.Served != 3 {
		t.Errorf("%+v, %v: nothing else is known", e, known)
	}
}

// TestFollow: what a pool tells at once is one change, and what comes later another.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger(clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		var changed []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Follow(ctx, func(pool string) { changed = append(changed, pool) })
		}()
		for i := range 100 {
			node := fmt.Sprint("edge-", i)
			l.SetNode(node, "harbour")
			l.Hear(node, some(int64(i)).Text())
			time.Sleep(time.Millisecond)
		}
		l.Hear("cloud-1", some(1).Text())
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(changed, []string{"harbour"}) {
			t.Errorf("changed: %v", changed)
		}
		l.Hear("edge-7", some(5000).Text())
		l.SetNode("cloud-1", "quay") // somebody puts it into a pool
		time.Sleep(time.Minute)
		synctest.Wait()
		if slices.Sort(changed); !slices.Equal(changed, []string{"harbour", "harbour", "quay"}) {
			t.Errorf("changed: %v", changed)
		}
		cancel()
		<-done
	})
}

// TestReadsTold: reads are told again when a heartbeat brings them, though they say the same. They are not when
// somebody else writes the Lease on which they stand, or weir-manager starts. What is invalid changes nothing.
func TestReadsTold(t *testing.T) {
	clk := clocktesting.NewFakeClock(began)
	l := NewLedger(clk)
	told := func(what string, at time.Time) {
		t.Helper()
		e, _ := l.Of("a")
		if at.IsZero() != (e.Reads == nil) || e.Reads != nil && !e.Reads.Told.Equal(at) {
			t.Errorf("%s: %+v, want told at %v", what, e.Reads, at)
		}
	}
	l.HearReads("a", "")
	told("nothing", time.Time{})
	text := "1 7 services.v1.=5 !endpoints.v1."
	l.HearReads("a", text)
	told("the first", began)
	clk.Step(time.Hour)
	l.HearReads("a", text) // a leader forwards heartbeats of the node
	told("it stands", began)
	l.HearReads("a", "1 7 services.v1.=5 services.v1.=5")
	told("nonsense", began)
	l.HearReads("a", "")
	told("it is taken away", began)
	clk.Step(5 * time.Hour)
	l.HearReads("a", text)
	again := clk.Now()
	told("the same again", again)
	if e, _ := l.Of("a"); l.refused != 1 || e.Reads.Rest != 7 || e.Reads.Passed[0].Bytes != 5 {
		t.Errorf("%d are refused, %+v", l.refused, e.Reads)
	}

	was, _ := l.Of("a")
	for _, first := range []bool{false, true} { // another replica finds the Lease as it stands, and the Pool
		l = NewLedger(clk)
		if first {
			l.HearReads("a", text)
		}
		l.RestoreReads("a", *was.Reads)
		clk.Step(time.Minute)
		l.HearReads("a", text)
		told("after a restart", again)
	}
	l.Hush("a")
	told("it is gone", time.Time{})
	l.HearReads("a", text)
	l.Forget("a")
	if told("it is gone", time.Time{}); len(l.reads) != 0 {
		t.Errorf("%d are remembered", len(l.reads))
	}
}
