package certificates

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
)

// TestWatchman: a Node says from 30 days before its end that a certificate ends which was not renewed, or the authority
// of its pool, and says it no more when there is a successor. One that is renewed in time is told of at no time.
func TestWatchman(t *testing.T) {
	const day = 24 * time.Hour
	year := func(renews bool, life time.Duration) digest.Life {
		return digest.Life{Begin: now, End: now.Add(life), Renews: renews}
	}
	type step struct {
		after  time.Duration
		set    *digest.Holding // what the hub tells from then on
		status corev1.ConditionStatus
		reason string
	}
	for name, c := range map[string]struct {
		first     digest.Holding
		authority time.Duration // until its end
		steps     []step
	}{
		"from a file": {
			digest.Holding{Certificates: map[string]digest.Life{"hub": year(false, 365*day)}}, 5 * 365 * day, []step{
				{335*day - time.Second, nil, "", ""},
				{335 * day, nil, corev1.ConditionTrue, contract.CertificateEndsSoon},
				{365*day - time.Second, nil, corev1.ConditionTrue, contract.CertificateEndsSoon},
				{365 * day, nil, corev1.ConditionTrue, contract.CertificateEnded},
				{
					366 * day, &digest.Holding{Certificates: map[string]digest.Life{"hub": year(false, 720*day)}},
					corev1.ConditionFalse, contract.CertificatesRenewed,
				},
			},
		},
		"renewed in time": {
			digest.Holding{Certificates: map[string]digest.Life{"hub": year(true, 90*day)}}, 5 * 365 * day, []step{
				{72 * day, nil, "", ""}, // the latest at which it is renewed
				{
					73 * day, &digest.Holding{
						Certificates: map[string]digest.Life{"hub": {Begin: now.Add(72 * day), End: now.Add(162 * day), Renews: true}},
					}, "", "",
				},
				{100 * day, nil, "", ""},
			},
		},
		"not renewed": {
			digest.Holding{Certificates: map[string]digest.Life{"hub": year(true, 90*day), "coordinator": year(true, 80*day)}},
			5 * 365 * day, []step{
				{68*day - time.Second, nil, "", ""},
				{68 * day, nil, corev1.ConditionTrue, contract.CertificateEndsSoon},
				{80 * day, nil, corev1.ConditionTrue, contract.CertificateEnded},
			},
		},
		"the authority": {digest.Holding{Trust: 1}, 40 * day, []step{
			{10 * day, nil, "", ""},
			{10*day + time.Second, nil, corev1.ConditionTrue, contract.AuthorityEndsSoon},
			{40 * day, nil, corev1.ConditionTrue, contract.AuthorityEnded},
		}},
		"nothing is told": {digest.Holding{}, 5 * 365 * day, []step{{1000 * day, nil, "", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{
					Name: "edge-1", UID: "u-1", Labels: map[string]string{contract.NodePoolLabel: "harbour"},
				},
			}
			n.Annotations = map[string]string{contract.HoldsAnnotation: c.first.Text()}
			cluster, clock, recorder := newCluster(n), clocktesting.NewFakePassiveClock(now), events.NewFakeRecorder(10)
			w := NewWatchman(WatchmanConfig{Client: cluster, Events: recorder, Clock: clock})
			w.Authority("harbour", now.Add(c.authority))
			key := types.NamespacedName{Name: "edge-1"}
			for _, s := range c.steps {
				clock.SetTime(now.Add(s.after))
				have := &corev1.Node{}
				must(0, cluster.Get(t.Context(), key, have))
				before := conditionOf(have)
				if s.set != nil {
					have.Annotations[contract.HoldsAnnotation] = s.set.Text()
					cluster.put(have)
				}
				for range 2 { // the second time nothing is new
					r := must(w.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}))
					if r.RequeueAfter <= 0 || r.RequeueAfter > watchEach {
						t.Errorf("after %s: again after %s", s.after, r.RequeueAfter)
					}
				}
				must(0, cluster.Get(t.Context(), key, have))
				switch is := conditionOf(have); {
				case is == nil && s.reason != "":
					t.Fatalf("after %s there is no condition", s.after)
				case is != nil && (is.Status != s.status || is.Reason != s.reason):
					t.Fatalf("after %s: %+v, want %s %s", s.after, is, s.status, s.reason)
				case is != nil && (before == nil || before.Reason != is.Reason):
					if e := <-recorder.Events; !strings.Contains(e, s.reason) {
						t.Errorf("after %s the Event is %q", s.after, e)
					}
				}
			}
			if len(recorder.Events) > 0 {
				t.Errorf("one more Event: %s", <-recorder.Events)
			}
		})
	}
}
