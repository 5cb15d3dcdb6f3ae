package manager

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weir-edge/weir/impl/manager/verdict"
)

// unreachableNode is one that the cloud holds for lost.
func unreachableNode(name string, since time.Time) *corev1.Node {
	added := metav1.NewTime(since)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	n.Spec.Taints = []corev1.Taint{
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added},
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	return n
}

func newReleaser(c client.Client) *releaser {
	r := &releaser{
		client: c, reader: c, clock: clock.RealClock{},
		board: newBoard(clock.RealClock{}, verdict.Config{Grace: time.Minute}), log: slog.New(slog.DiscardHandler),
		owed: map[string]*debt{},
	}
	r.metrics = newMetrics(r.board)
	return r
}

// TestOnePodThatCannotBeMarked: a pod that nobody may mark as not ready does not keep the others of its node from being
// marked, nor all from their eviction.
func TestOnePodThatCannotBeMarked(t *testing.T) {
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	objects := []client.Object{unreachableNode("edge-1", then)}
	for _, name := range []string{"a", "b", "c"} {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: "edge-1"},
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		objects = append(objects, p)
	}
	c := fake.NewClientBuilder().WithScheme(kubescheme.Scheme).WithObjects(objects...).WithStatusSubresource(
		&corev1.Pod{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
				options ...client.SubResourcePatchOption) error {
				if o.GetName() == "b" {
					return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "b", nil)
				}
				return c.SubResource(sub).Patch(ctx, o, p, options...)
			},
		}).Build()
	if err := newReleaser(c).release(t.Context(), "edge-1", time.Time{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]corev1.ConditionStatus{
		"a": corev1.ConditionFalse, "b": corev1.ConditionTrue, "c": corev1.ConditionFalse,
	} {
		var p corev1.Pod
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &p); err != nil ||
			p.Status.Conditions[0].Status != want {
			t.Errorf("pod %s: %+v, %v", name, p.Status.Conditions, err)
		}
	}
	var n corev1.Node
	if err := c.Get(t.Context(), client.ObjectKey{Name: "edge-1"}, &n); err != nil || len(n.Spec.Taints) != 1 ||
		!n.Spec.Taints[0].TimeAdded.After(then) {
		t.Errorf("taints %+v, %v", n.Spec.Taints, err)
	}
}

// TestOneThatCannotBeReleased: nodes that cannot be released do not take the room of those after them for ever.
func TestOneThatCannotBeReleased(t *testing.T) {
	var mu sync.Mutex
	tries, asked := map[string]int{}, make(chan string)
	reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(kubescheme.Scheme).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object,
			_ ...client.GetOption) error {
			mu.Lock()
			tries[key.Name]++
			mu.Unlock()
			select {
			case asked <- key.Name: // it is busy for as long as the test lets it
			case <-ctx.Done():
			}
			return errors.New("broken")
		},
	})
	r := newReleaser(reader)
	steps := clocktesting.NewFakeClock(time.Now())
	r.clock, r.settle = steps, 10*time.Second
	r.group.SetLimit(1)
	d := verdict.Decision{Record: verdict.Record{Owed: []string{"a", "b", "c"}}, Nodes: map[string]verdict.Verdict{}}
	for _, name := range d.Record.Owed {
		d.Nodes[name] = verdict.Verdict{Owed: true}
	}
	r.consider(t.Context(), d)
	steps.Step(r.settle)
	for _, want := range []string{"a", "b", "c"} {
		r.consider(t.Context(), d)
		if got := <-asked; got != want {
			t.Errorf("%s is tried, want %s", got, want)
		}
		_ = r.group.Wait()
	}
	r.consider(t.Context(), d)
	if err := r.group.Wait(); err != nil || len(tries) != 3 || tries["a"] != 1 {
		t.Errorf("tried %v", tries)
	}
	steps.Step(mostPause)
	r.consider(t.Context(), d)
	if got := <-asked; got != "a" {
		t.Errorf("later %s is tried again", got)
	}
	_ = r.group.Wait()
}

// TestToleratedEnough: a pod whose time is over is told from one that taint eviction is still valid for.
func TestToleratedEnough(t *testing.T) {
	added := metav1.NewTime(time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC))
	taint := &corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}
	tolerates := func(seconds *int64) corev1.Toleration {
		return corev1.Toleration{
			Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: seconds,
		}
	}
	other := corev1.Toleration{
		Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: ptr.To[int64](1),
	}
	for name, test := range map[string]struct {
		tolerations []corev1.Toleration
		taint       *corev1.Taint
		after       time.Duration
		want        bool
	}{
		"none":             {nil, taint, 0, true},
		"of another taint": {[]corev1.Toleration{other}, taint, 0, true},
		"five minutes, after two": {
			[]corev1.Toleration{other, tolerates(ptr.To[int64](300))}, taint, 2 * time.Minute, false,
		},
		"five minutes, nearly": {
			[]corev1.Toleration{tolerates(ptr.To[int64](300))}, taint, 5*time.Minute - clocksApart, true,
		},
		"five minutes, after six": {[]corev1.Toleration{tolerates(ptr.To[int64](300))}, taint, 6 * time.Minute, true},
		"the least of two": {
			[]corev1.Toleration{tolerates(ptr.To[int64](300)), tolerates(ptr.To[int64](30))}, taint, time.Minute, true,
		},
		"for ever":                   {[]corev1.Toleration{tolerates(nil)}, taint, 24 * time.Hour, false},
		"not tainted":                {nil, nil, time.Hour, false},
		"tainted at a time not told": {nil, &corev1.Taint{Key: taint.Key, Effect: taint.Effect}, time.Hour, false},
	} {
		if got := toleratedEnough(test.tolerations, test.taint, added.Add(test.after)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
