package pools

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/digest"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// told is a pool of three nodes, of which the first leads and the third has a hub of before.
func told() (*view, *Ledger, *clocktesting.FakeClock) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 500, time.UTC))
	l := NewLedger(clk)
	v := &view{name: "harbour", own: &poolv1.Pool{}, plan: plan{mode: poolv1.ModeCoordinator}, told: l.Of}
	for _, name := range []string{"c", "b", "a"} {
		v.nodes = append(v.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	started := clk.Now().Add(-time.Hour)
	l.Hear("a", digest.Digest{
		Version: "v1", Role: digest.Leader, Age: 2 * time.Second, Started: started, Down: 1_000_000, Up: 50_000,
		Feed: 900_000, Served: 2_000_000, Images: digest.Images{Pulled: 50_000_000, Saved: 1, Served: 150_000_000},
	}.Text())
	l.Hear("b", digest.Digest{
		Version: "v1", Role: digest.Follower, Age: 4 * time.Second, Started: started, Down: 30_000, Up: 20_000, Feed: 1_000,
		Served: 2_500_000,
	}.Text())
	l.Hear("gone", digest.Digest{Version: "v1", Served: 1 << 40}.Text())
	return v, l, clk
}

// TestHubs: the status of a Pool says what its hubs told. Saved is what clients got less what all of its hubs fetched
// for it, the leader above all.
func TestHubs(t *testing.T) {
	v, l, clk := told()
	describe(v, clk.Now())
	s := &v.own.Status
	if s.SavedBytes == nil || *s.SavedBytes != 4_500_000-901_000 || *s.UplinkBytes != 1_100_000 ||
		*s.FreshnessSeconds != 4 || s.Leader != "a" || len(s.Hubs) != 2 {
		text, _ := json.Marshal(s)
		t.Fatalf("%s", text)
	}
	if h := s.Hubs[0]; h.Node != "a" || h.Role != "Leader" || h.Version != "v1" ||
		!h.Told.Equal(&metav1.Time{Time: clk.Now().Truncate(time.Second)}) || *h.FreshnessSeconds != 2 ||
		h.ServedBytes != 2_000_000 || *h.Images != (poolv1.HubImages{
		PulledBytes: 50_000_000, SavedBytes: 1, ServedBytes: 150_000_000,
	}) || s.Hubs[1].Images != nil {
		t.Errorf("%+v", h)
	}

	clk.Step(time.Minute) // another leads, and the first is gone with its last word
	l.Hear("b", digest.Digest{Version: "v1", Role: digest.Leader, Age: digest.Unknown, Started: clk.Now()}.Text())
	describe(v, clk.Now())
	if s.Leader != "b" || *s.FreshnessSeconds != 2 || s.Hubs[1].FreshnessSeconds != nil {
		t.Errorf("leader %s, %d, %v", s.Leader, *s.FreshnessSeconds, s.Hubs[1].FreshnessSeconds)
	}

	v.nodes = v.nodes[:2] // the first has left
	describe(v, clk.Now())
	if len(s.Hubs) != 1 || *s.UplinkBytes != 0 || *s.SavedBytes != 0 || s.FreshnessSeconds != nil {
		t.Errorf("%+v", s)
	}
	v.nodes = nil
	if describe(v, clk.Now()); s.Hubs != nil || s.SavedBytes != nil || s.UplinkBytes != nil || s.Leader != "" {
		t.Errorf("of no nodes: %+v", s)
	}
}

// TestHubsKept: a weir-manager that has heard nothing yet leaves what was told as it is, and knows it by the status, as
// it passes through kube-apiserver.
func TestHubsKept(t *testing.T) {
	v, l, clk := told()
	l.HearReads("a", "1 7 services.v1.=5 nodes.v1.=4 !endpoints.v1.")
	describe(v, clk.Now())
	if r := v.own.Status.Hubs[0].Reads; r == nil || r.PassedRestBytes != 7 || len(r.Passed) != 2 ||
		r.Passed[0].Bytes != 5 || r.Unread[0] != "endpoints.v1." || v.own.Status.Hubs[1].Reads != nil {
		t.Errorf("reads are %+v", r)
	}
	text, err := json.Marshal(v.own)
	if err != nil {
		t.Fatal(err)
	}
	stored := &poolv1.Pool{}
	if err := json.Unmarshal(text, stored); err != nil {
		t.Fatal(err)
	}
	clk.Step(time.Hour)
	another := NewLedger(clk)
	v.own, v.told = stored.DeepCopy(), another.Of
	describe(v, clk.Now())
	if *v.own.Status.SavedBytes != *stored.Status.SavedBytes || len(v.own.Status.Hubs) != 2 {
		t.Errorf("nothing is left: %+v", v.own.Status)
	}
	another.Hear("a", digest.Digest{Version: "v2"}.Text())
	if describe(v, clk.Now()); v.own.Status.Hubs[0].Version != "v2" || v.own.Status.Hubs[0].Reads == nil {
		t.Errorf("what is read is forgotten with the next digest: %+v", v.own.Status.Hubs[0])
	}
	another = NewLedger(clk)
	Restore(another, stored)
	for _, node := range []string{"a", "b"} {
		was, _ := l.Of(node)
		is, known := another.Of(node)
		if !known || is.Digest != was.Digest || is.Told.Sub(was.Told).Abs() >= time.Second {
			t.Errorf("%s: %+v, want %+v", node, is, was)
		}
		if (is.Reads == nil) != (was.Reads == nil) || is.Reads != nil && is.Reads.Text() != was.Reads.Text() {
			t.Errorf("%s reads %+v, want %+v", node, is.Reads, was.Reads)
		}
	}
}

// TestHubsBound: of a pool of thousands the sums are of all, and single hubs are bounded, whatever they tell.
func TestHubsBound(t *testing.T) {
	v, l, clk := told()
	v.nodes = nil
	for i := range 5000 {
		name := fmt.Sprintf("edge-%04d", i)
		v.nodes = append(v.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		l.Hear(name, digest.Digest{
			Version: "v0.3.0-12-gac6a071fffffffffffffffff", Age: time.Second, Down: 1 << 62, Up: 1 << 62, Served: 1 << 62,
		}.Text())
	}
	describe(v, clk.Now())
	s := &v.own.Status
	text, err := json.Marshal(s)
	if err != nil || len(text) > 400_000 || len(s.Hubs) != poolv1.MaxHubs || *s.UplinkBytes < 1<<60 ||
		*s.SavedBytes < 1<<59 {
		t.Errorf("%d bytes, %d hubs, %d, %d, %v", len(text), len(s.Hubs), *s.UplinkBytes, *s.SavedBytes, err)
	}
}

// TestReadsBound: what the hubs of thousands of nodes tell of reads, whatever that is, leaves room in a Pool: etcd
// takes 1.5 MB.
func TestReadsBound(t *testing.T) {
	v, l, clk := told()
	var reads digest.Reads
	for i := range 100 {
		reads.Passed = append(reads.Passed, digest.Passed{Resource: fmt.Sprintf("r%016d.v1.", i), Bytes: 1 << 46})
		reads.Unread = append(reads.Unread, fmt.Sprintf("u%d.v1.", i))
	}
	v.nodes = nil
	for i := range 5000 {
		name := fmt.Sprintf("edge-%04d", i)
		v.nodes = append(v.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		l.Hear(name, digest.Digest{Version: "v0.3.0-12-gac6a071fffffffffffffffff", Down: 1 << 62}.Text())
		l.HearReads(name, reads.Text())
	}
	describe(v, clk.Now())
	s := &v.own.Status
	text, err := json.Marshal(s)
	if err != nil || len(text) > 1_200_000 || len(s.Hubs) != poolv1.MaxHubs || len(s.Hubs[999].Reads.Passed) < 6 {
		t.Errorf("%d bytes, %d hubs, %+v, %v", len(text), len(s.Hubs), s.Hubs[999].Reads, err)
	}
	t.Logf("%d bytes", len(text))
}
