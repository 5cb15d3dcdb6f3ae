package lifecycle

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// lie is something wrong that controllers do at a time.
type lie struct {
	at time.Duration
	do func(ctx context.Context, c kubernetes.Interface) error
}

func evict(pods ...string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		for _, p := range pods {
			if err := c.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, p, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
		return nil
	}
}

func mark(pod string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		p, err := c.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		p.Status.Conditions[0].Status = corev1.ConditionFalse
		_, err = c.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
		return err
	}
}

func hold(node string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		n, err := c.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range n.Status.Conditions {
			if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
				c.Status = corev1.ConditionUnknown
			}
		}
		_, err = c.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
		return err
	}
}

func taint(node string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		n, err := c.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
			Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule,
		})
		_, err = c.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	}
}

// TestEveryLieIsObjectedTo: controllers do one wrong thing, and the judge counts just that. What they do at the right
// time is not counted.
func TestEveryLieIsObjectedTo(t *testing.T) {
	const began = 100 * time.Second
	fault := func(what, target string) []Fault {
		return []Fault{{At: began, For: 600 * time.Second, What: what, Target: target}}
	}
	for name, c := range map[string]struct {
		faults    []Fault
		noManager bool
		lies      []lie
		want      Verdict // what must not be, and Evicted
	}{
		"nothing": {},
		"a pod of a node that is well": {
			lies: []lie{{150 * time.Second, evict("harbour-1-1")}}, want: Verdict{Wrong: 1, Evicted: 1},
		},
		"a pod of a node that is in no pool": {
			lies: []lie{{150 * time.Second, evict("town-1-1")}}, want: Verdict{Wrong: 1, Evicted: 1},
		},
		"a pod of a node that has just died": {
			faults: fault(power, "harbour-1"), lies: []lie{{began + 200*time.Second, evict("harbour-1-1", "harbour-1-2")}},
			want: Verdict{Wrong: 2, Evicted: 2},
		},
		"pods of a dead node, in time": {
			faults: fault(power, "harbour-1"), lies: []lie{{began + 400*time.Second, evict("harbour-1-1", "harbour-1-2")}},
			want: Verdict{Evicted: 2},
		},
		"one pod of a dead node, and not the other": {
			faults: fault(power, "harbour-1"), lies: []lie{{began + 400*time.Second, evict("harbour-1-1")}},
			want: Verdict{Evicted: 1, Missed: 1},
		},
		"a pod of a node whose peers speak for it": {
			faults: fault(cut, "harbour-1"), noManager: true, lies: []lie{{began + 400*time.Second, evict("harbour-1-1")}},
			want: Verdict{Wrong: 1, Evicted: 1},
		},
		"a pod of a silent pool": {
			faults: fault(poolCut, "harbour"), noManager: true, lies: []lie{{began + 400*time.Second, evict("harbour-1-1")}},
			want: Verdict{Wrong: 1, Evicted: 1},
		},
		"a pod of a node that is well, marked": {
			lies: []lie{{150 * time.Second, mark("harbour-1-1")}}, want: Verdict{WrongMarks: 1},
		},
		"a pod of a node in no pool, marked": {
			lies: []lie{{150 * time.Second, mark("town-1-1")}}, want: Verdict{WrongMarks: 1},
		},
		"a pod of a silent pool, marked": {
			faults: fault(poolCut, "harbour"), noManager: true, lies: []lie{{began + 200*time.Second, mark("harbour-1-1")}},
			want: Verdict{WrongMarks: 1},
		},
		"a node that is heard, held for lost": {
			lies: []lie{{200 * time.Second, hold("harbour-1")}}, want: Verdict{Unjust: 1},
		},
		"a node that is cut off alone held for lost": {
			faults: fault(cut, "harbour-1"), lies: []lie{{began + 200*time.Second, hold("harbour-1")}}, want: Verdict{Unjust: 1},
		},
		"a taint that stays": {
			lies: []lie{{150 * time.Second, taint("town-1")}}, want: Verdict{Left: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v Verdict
			synctest.Test(t, func(t *testing.T) {
				liar := func(ctx context.Context, as *rest.Config) error {
					client, err := kubernetes.NewForConfig(as)
					if err != nil {
						return err
					}
					start := time.Now()
					for _, d := range c.lies {
						if !sleep(ctx, d.at-time.Since(start)) {
							return nil
						}
						if err := d.do(ctx, client); err != nil {
							t.Errorf("at %v: %v", d.at, err)
						}
					}
					<-ctx.Done()
					return nil
				}
				var err error
				s := Schedule{Seed: 1, Pools: []int{3}, Beside: 2, Faults: c.faults}
				if v, err = Run(t.Context(), Config{Schedule: s, Controllers: liar, NoManager: c.noManager}); err != nil {
					t.Error(err)
				}
			})
			got := Verdict{
				Wrong: v.Wrong, Missed: v.Missed, Unjust: v.Unjust, WrongMarks: v.WrongMarks, Left: v.Left, Evicted: v.Evicted,
			}
			if got.String() != c.want.String() {
				t.Errorf("%v\nwant %v\n%s", got, c.want, strings.Join(v.Details, "\n"))
			}
		})
	}
}
