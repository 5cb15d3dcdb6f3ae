package managertest

import (
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/sim/audit"
)

const (
	quietRetry = 2 * time.Second  // the default of --leader-elect-retry-period
	quietFor   = 70 * time.Second // by the manager's own Lease: longer than anything that was asked each minute
	settled    = 12 * time.Second // in which it has asked for nothing but its Lease and watches
)

// TestQuiet: a manager that has nothing to do asks for nothing but its own Lease, and watches that have ended.
func TestQuiet(t *testing.T) {
	w := newWorld(t)
	usual := func(c *manager.Config) {
		c.LeaderElectRetryPeriod, c.NodeMonitorGracePeriod = quietRetry, 50*time.Second
	}
	w.manage(t, usual)
	t.Run("no pool", func(t *testing.T) { testQuiet(t, w) })
	w.manage(t, usual)
	w.nodes(t, "calm", "calm-1")
	calm := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "calm"}, Spec: nodepool.Spec{
		Type: nodepool.Edge, InterConnectivity: true, EnableLeaderElection: true, LeaderElectionStrategy: nodepool.Random,
		LeaderReplicas: 1, PoolScopeMetadata: []nodepool.Resource{{Version: "v1", Resource: "endpoints"}},
	}}
	if err := w.typed(t).Create(t.Context(), calm); err != nil {
		t.Fatal(err)
	}
	w.startBeating()
	w.speak(false, "calm-1")
	t.Run("one pool, two replicas", func(t *testing.T) { testQuiet(t, w) })
	t.Run("what goes is told", func(t *testing.T) { testGoes(t, w, usual) })
	w.list(t, contract.KeptNodes, `{"nobody":"calm"}`)
	w.eventually(t, "what somebody else has written is put right", func() bool {
		_, kept := w.listed(t, contract.KeptNodes)["nobody"]
		return !kept
	})
}

// TestQuietWithoutNodePools: where NodePools are not installed weir-manager hardly asks for them, and keeps them soon
// after they were.
func TestQuietWithoutNodePools(t *testing.T) {
	const most = 12 // of two that wait, each with what they need, once or twice in that time
	w := newWorldOf(t, manifests.Pools())
	w.manage(t, func(c *manager.Config) {
		c.LeaderElectRetryPeriod, c.NodeMonitorGracePeriod = quietRetry, 50*time.Second
	})
	w.askedFor(t, settled)
	w.askedFor(t, settled)
	seen, took := w.askedFor(t, quietFor)
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%3d %s", seen[what], what)
	}
	if n := seen.Of("") - seen.Of("update leases weir-manager") - seen.Of("watch"); n > most {
		t.Errorf("%d requests in %s for what is not there, at most %d are needed", n, took, most)
	}
	if err := w.cloud.Apply(t.Context(), []byte(manifests.NodePools())); err != nil {
		t.Fatal(err)
	}
	w.nodes(t, "late", "late-1")
	late := &nodepool.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "late"}, Spec: nodepool.Spec{Type: nodepool.Edge},
	}
	w.eventually(t, "the definition is served", func() bool { return w.typed(t).Create(t.Context(), late) == nil })
	applied := time.Now()
	w.eventually(t, "the NodePool counts its node", func() bool {
		p := &nodepool.NodePool{}
		err := w.typed(t).Get(t.Context(), client.ObjectKeyFromObject(late), p)
		return err == nil && len(p.Status.Nodes) == 1
	})
	if waited := time.Since(applied); waited > manifests.Rarest/10 {
		t.Errorf("it was kept %v after it was there", waited)
	}
}

// said is what a manager logs.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}

// testGoes: a policy that is deleted is told by a replica whose clock stands still.
func testGoes(t *testing.T, w *world, usual func(*manager.Config)) {
	said := &said{}
	w.manage(t, func(c *manager.Config) {
		usual(c)
		c.Clock, c.Logger = testingclock.NewFakeClock(time.Now()), slog.New(slog.NewTextHandler(said, nil))
	})
	for _, name := range []string{"weir-keep-pods-kept", "weir-keep-pods-bound"} {
		if err := w.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), name,
			metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually(t, "weir-manager misses "+name, func() bool { return said.has(name + " does not exist") })
		if err := w.cloud.Apply(t.Context(), []byte(manifests.Policies())); err != nil {
			t.Fatal(err)
		}
	}
}

func testQuiet(t *testing.T, w *world) {
	const mostWatches = 40 // 5 minutes each, or more: of two replicas
	var seen audit.Counts
	quiet := func() int { return seen.Of("update leases weir-manager") + seen.Of("watch") }
	for rounds := 0; rounds == 0 || seen.Of("") > quiet(); rounds++ {
		if rounds == 20 {
			t.Fatalf("it does not become quiet: %v", seen)
		}
		seen, _ = w.askedFor(t, settled)
	}
	seen, took := w.askedFor(t, quietFor)
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%3d %s", seen[what], what)
	}
	if n := seen.Of("") - quiet(); n > 0 {
		t.Errorf("%d requests in %s that no watch and no election needs", n, took)
	}
	// a leader leaves out every second renewal.
	if n, most := seen.Of("update leases weir-manager"), int(took/(2*quietRetry))+2; n > most {
		t.Errorf("its Lease is renewed %d times in %s, at most %d are needed", n, took, most)
	}
	if n := seen.Of("watch"); n > mostWatches {
		t.Errorf("%d watches begin in %s", n, took)
	}
}

// askedFor is what weir-manager asks between two renewals of its Lease that are a time apart, and what that was.
func (w *world) askedFor(t *testing.T, span time.Duration) (audit.Counts, time.Duration) {
	t.Helper()
	renewed := func() (at time.Time) {
		l, err := w.client.CoordinationV1().Leases(contract.ManagerNamespace).Get(t.Context(), "weir-manager",
			metav1.GetOptions{})
		if err == nil && l.Spec.RenewTime != nil {
			at = l.Spec.RenewTime.Time
		}
		return at
	}
	var from, at time.Time
	w.eventually(t, "weir-manager leads", func() bool { from = renewed(); return !from.IsZero() })
	mark := w.audited(t)
	for at = from; at.Sub(from) < span; {
		last := at
		w.eventually(t, "weir-manager renews its Lease", func() bool { at = renewed(); return at.After(last) })
	}
	return w.asked(t, mark), at.Sub(from)
}

// audited is how long the audit log is.
func (w *world) audited(t *testing.T) int64 {
	t.Helper()
	s, err := os.Stat(w.cloud.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	return s.Size()
}

// asked is what weir-manager asked after that.
func (w *world) asked(t *testing.T, mark int64) audit.Counts {
	t.Helper()
	f, err := os.Open(w.cloud.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	since, err := audit.After(f, mark)
	if err != nil {
		t.Fatal(err)
	}
	c, err := audit.CountManager(since)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
