package jobs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// TestOrder: one node of a pool at a time, those that leave first; and none before it may.
func TestOrder(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d", "x")
	w.label("harbour", "a", "b", "c")
	w.want("the pool was not made", "")
	w.pool("harbour")
	w.pool("buoy")
	w.says("a", corev1.NodeReady, corev1.ConditionUnknown)
	w.says("b", contract.CutOffCondition, corev1.ConditionTrue)
	w.label("buoy", "x")
	w.want("a is not Ready, and b does not reach the cloud", "c→harbour x→buoy")
	w.says("a", corev1.NodeReady, corev1.ConditionTrue)
	w.says("b", contract.CutOffCondition, "")
	w.want("c is at work", "c→harbour x→buoy")
	if c := w.state("harbour"); c.Status != metav1.ConditionFalse || c.Reason != reasonRunning ||
		c.Message != "0 of 3 have joined; at work on node c; these wait for it: a, b" {
		t.Errorf("the Pool says %+v", c)
	}
	w.end("c", true)
	w.end("x", true)
	w.want("c has joined", "a→harbour")
	w.label("", "c")
	w.want("c is to leave, and a is at work", "a→harbour")
	w.end("a", true)
	w.want("who leaves goes first", "c→")
	w.end("c", true)
	w.want("then the next one joins", "b→harbour")
	w.end("b", true)
	w.want("all is done", "")
	if c := w.state("harbour"); c.Status != metav1.ConditionTrue || c.Message != "2 of 2 have joined" {
		t.Errorf("the Pool says %+v", c)
	}
	if all := w.jobs(); all["a"] == nil || all["c"] != nil {
		t.Errorf("of what is wanted the Job stays, and of what is no more it goes: %v", all)
	}

	w.says("a", contract.JoinedCondition, "")
	w.want("a person called weir node leave", "")
	w.says("d", contract.JoinedCondition, corev1.ConditionTrue)
	w.label("harbour", "d")
	w.want("d was joined by hand", "")
	w.label("", "d")
	w.want("and leaves when its label goes", "d→")
	w.end("d", true)
	w.label("buoy", "b")
	w.want("b goes to another pool", "b→buoy")
	w.end("b", true)

	check(t, w.client.Delete(t.Context(), w.node("b")))
	w.make(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "b-2", Labels: map[string]string{contract.NodePoolLabel: "buoy"}},
	})
	w.says("b", corev1.NodeReady, corev1.ConditionTrue)
	w.want("another machine has the name of b", "b→buoy")
	w.end("b", true)
	for _, o := range []client.Object{&poolv1.Pool{}, &nodepool.NodePool{}} {
		o.SetName("buoy")
		check(t, w.client.Delete(t.Context(), o))
	}
	w.want("nobody describes its pool any more: it stays as it is", "")
}

// TestOff: without an image nothing begins, and what runs is left to run.
func TestOff(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.images("")
	w.pool("harbour")
	w.label("harbour", "a", "b")
	w.want("it is switched off", "")
	if c := w.state("harbour"); c.Type != "" {
		t.Errorf("the Pool says %+v", c)
	}
	w.images("installer:1\ninstaller:0", "mirror", "spare")
	w.refuse = errors.New("privileged: Forbidden: disallowed by cluster policy")
	if _, err := w.keeper.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Error("kube-apiserver refuses a Job, and nobody is told")
	}
	if c := w.state("harbour"); c.Reason != reasonRefused ||
		!strings.Contains(c.Message, "of node a: privileged: Forbidden") {
		t.Errorf("the Pool says %+v", c)
	}
	if _, err := w.keeper.Reconcile(t.Context(), reconcile.Request{}); err == nil ||
		!strings.Contains(err.Error(), "of node b: privileged: Forbidden") {
		t.Errorf("the next one is tried, too: %v", err)
	}
	w.refuse = nil
	w.want("it is switched on", "a→harbour")
	pod := w.jobs()["a"].Spec.Template.Spec
	if got := pod.Containers[0].Image; got != "installer:1" {
		t.Errorf("the Job runs %s", got)
	}
	if !slices.Equal(pod.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "mirror"}, {Name: "spare"}}) {
		t.Errorf("the Job is pulled by %v", pod.ImagePullSecrets)
	}
	w.images("\n")
	w.want("it is switched off again", "a→harbour")
	w.end("a", true)
	w.want("and b waits", "")
}

// TestOneRefused: a node for which no Job can be made does not keep the others of its pool.
func TestOneRefused(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.pool("harbour")
	w.label("harbour", "a", "b", "c")
	w.refuse, w.refused = errors.New("forbidden: node a"), "a"
	if _, err := w.keeper.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Error("kube-apiserver refuses a Job, and nobody is told")
	}
	for _, name := range []string{"b", "c"} {
		w.want("another one joins", name+"→harbour")
		w.end(name, true)
	}
	if _, err := w.keeper.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Error("it is not tried again")
	}
	if c := w.state("harbour"); c.Reason != reasonRefused || !strings.Contains(c.Message, "of node a: forbidden") {
		t.Errorf("the Pool says %+v", c)
	}
	w.refuse = nil
	w.want("it can be made now", "a→harbour")
}

// TestRelease: with another image the nodes that have joined get its hub, one after the other. A node that left by hand
// is left alone, and after two failures the others are.
func TestRelease(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d", "e")
	w.pool("harbour")
	w.label("harbour", "a", "b", "c", "d", "e")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.want("all join", name+"→harbour")
		w.end(name, true)
	}
	w.want("all have joined", "")
	w.says("a", contract.JoinedCondition, "")
	w.images("")
	w.want("switched off", "")
	w.images("installer:2")
	w.want("another release; a was taken out by hand", "b→harbour")
	w.end("b", true)
	w.want("one after the other", "c→harbour")
	if got := w.jobs()["c"].Spec.Template.Spec.Containers[0].Image; got != "installer:2" {
		t.Errorf("the Job runs %s", got)
	}
	w.end("c", false)
	w.want("one failure", "d→harbour")
	w.end("d", false)
	w.want("two failures: e keeps the hub that it has", "")
	w.images("installer:3")
	w.want("a release that mends it", "b→harbour")
}

// TestFailures: after two failures of a pool no more begin there, and the Pool says why and what to do. They begin
// again when a person says so.
func TestFailures(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d", "x", "y")
	w.pool("harbour")
	w.pool("buoy")
	w.label("harbour", "a", "b", "c", "d")
	w.label("buoy", "x", "y")
	w.want("they begin", "a→harbour x→buoy")
	w.end("a", false)
	w.want("one failed", "b→harbour x→buoy")
	if c := w.state("harbour"); c.Reason != reasonFailed ||
		!strings.Contains(c.Message,
			"node a: preflight: disk: /var/lib has 3 MB free; mend the cause, then kubectl -n kube-system delete jobs -l ") {
		t.Errorf("the Pool says %+v", c)
	}
	w.end("b", false)
	w.end("x", true)
	w.want("two failed, and the other pool goes on", "y→buoy")
	if c := w.state("harbour"); c.Reason != reasonStopped ||
		!strings.Contains(c.Message, "2 installs failed, and no more begin: node a: ") {
		t.Errorf("the Pool says %+v", c)
	}
	w.step()
	if n := w.told(reasonFailed); n != 2 {
		t.Errorf("%d Events tell of 2 failures", n)
	}
	w.failed("harbour/a", "harbour/b")

	w.says("b", contract.JoinedCondition, corev1.ConditionFalse)
	w.label("", "b")
	w.want("one that was taken back is out of the pool, and others go on", "c→harbour y→buoy")
	w.end("c", true)
	w.want("d is the last", "d→harbour y→buoy")
	w.end("d", true)
	w.label("harbour", "b")
	w.want("its label is set anew", "b→harbour y→buoy")
	w.end("b", false)
	w.want("it fails again", "y→buoy")
	for _, name := range []string{"a", "b"} { // as nodejob.Retry says
		check(t, w.client.Delete(t.Context(), w.jobs()[name]))
	}
	w.want("a person deleted the Jobs", "a→harbour y→buoy")
	w.end("a", false)
	w.want("a fails once more", "b→harbour y→buoy")
	w.clock.Step(time.Minute)
	w.says("a", contract.JoinedCondition, corev1.ConditionTrue)
	w.end("b", true)
	w.want("a was joined by hand then", "y→buoy")
	w.step()
	w.failed()
	if c := w.state("harbour"); c.Status != metav1.ConditionTrue || c.Message != "4 of 4 have joined" {
		t.Errorf("the Pool says %+v", c)
	}

	w.label("", "a", "b", "c", "d")
	w.want("they leave, and of a nobody knows from where", "a→ b→ y→buoy")
	w.end("a", false)
	w.end("b", false)
	w.want("both could not", "c→ y→buoy")
	w.end("c", false)
	w.want("after two that could not leave no more try", "y→buoy")
	w.end("y", false)
	w.want("a join that failed without a word may have begun something", "")
	w.label("", "y")
	w.want("so it leaves", "y→")
}

// TestLate: a cache that has not heard of a Job lets no second one begin.
func TestLate(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.pool("harbour")
	w.label("harbour", "b", "c")
	w.want("b begins", "b→harbour")
	w.hidden = true
	w.label("harbour", "a")
	for range 3 {
		_, err := w.keeper.Reconcile(t.Context(), reconcile.Request{})
		check(t, err)
	}
	if w.running() != "b→harbour" {
		t.Errorf("Jobs run on %q", w.running())
	}
}

// TestFlips: labels change all the time, while Jobs take theirs. No Job is deleted while it runs (the world sees to
// that), one node of a pool is at work at a time, and when the labels rest each machine is in its pool.
func TestFlips(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 17))
			nodes := []string{"a", "b", "c"}
			pools := []string{"", "harbour", "buoy"}
			w := newWorld(t, nodes...)
			w.pool("harbour")
			w.pool("buoy")
			for step := range 120 {
				node := nodes[r.IntN(len(nodes))]
				switch all := w.jobs(); {
				case step < 100 && r.IntN(3) > 0:
					w.label(pools[r.IntN(len(pools))], node)
				case all[node] != nil:
					if is, _ := nodejob.PhaseOf(all[node]); is == nodejob.Running {
						w.end(node, true)
					}
				}
				w.step()
				at := map[string]int{}
				for _, j := range w.jobs() {
					if is, _ := nodejob.PhaseOf(j); is == nodejob.Running {
						if at[pool(j)]++; at[pool(j)] > 1 {
							t.Fatalf("step %d: Jobs run on %q", step, w.running())
						}
					}
				}
			}
			for range 10 {
				for node, j := range w.jobs() {
					if is, _ := nodejob.PhaseOf(j); is == nodejob.Running {
						w.end(node, true)
					}
				}
				w.step()
			}
			for _, node := range nodes {
				if want := w.node(node).Labels[contract.NodePoolLabel]; w.in[node] != want {
					t.Errorf("machine %s is in pool %q, and its label says %q", node, w.in[node], want)
				}
			}
		})
	}
}
