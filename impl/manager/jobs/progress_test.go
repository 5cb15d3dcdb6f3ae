package jobs

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
)

// TestFirst: one node of a pool pulls the image, for as long as it takes, and the others wait and are named. Another
// pool does not wait for it.
func TestFirst(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "x", "y")
	w.pool("harbour")
	w.pool("buoy")
	w.label("harbour", "a", "b", "c")
	w.label("buoy", "x")
	w.want("they begin", "a→harbour x→buoy")
	w.podIs("a", "ContainerCreating")
	w.podIs("x", "ContainerCreating")
	w.want("they pull", "a→harbour x→buoy")
	if c := w.state("harbour"); c.Message !=
		"0 of 3 have joined; at work on node a: it gets the image first; these wait for it: b, c" {
		t.Errorf("the Pool says %+v", c)
	}
	w.podIs("x", "Running")
	w.end("x", true)
	w.waits(2*time.Hour + 50*time.Minute) // 16 kbit/s
	w.want("a pull that goes on has the time that it needs", "a→harbour")
	w.podIs("a", "Running")
	w.want("the image is there, and the work begins", "a→harbour")
	w.waits(20 * time.Minute)
	w.end("a", true)
	for _, name := range []string{"b", "c"} {
		w.want("the others follow", name+"→harbour")
		w.podIs(name, "Running")
		w.end(name, true)
	}
	w.want("all have joined", "")
	if w.jobs()["y"] != nil {
		t.Error("a node without a pool got a Job")
	}
	if d := w.jobs()["c"].Spec.ActiveDeadlineSeconds; d == nil || time.Duration(*d)*time.Second < 4*time.Hour {
		t.Errorf("the clock ends a pull: activeDeadlineSeconds %v", d)
	}
}

// TestNoProgress: a Job whose Pod does not begin gives way after a stated time, and is tried again after the others.
// Nothing is a failure of the release in that.
func TestNoProgress(t *testing.T) {
	for what, stop := range map[string]func(*world){
		"no Pod":        func(*world) {},
		"back-off":      func(w *world) { w.podIs("a", "ImagePullBackOff") },
		"no such image": func(w *world) { w.podIs("a", "ErrImagePull") },
		"bad name":      func(w *world) { w.podIs("a", "InvalidImageName") },
		"node away":     func(w *world) { w.says("a", corev1.NodeReady, corev1.ConditionUnknown) },
		"node away while it pulls": func(w *world) {
			w.podIs("a", "ContainerCreating")
			w.says("a", contract.CutOffCondition, corev1.ConditionTrue)
		},
		"a kubelet that is silent": func(w *world) {
			w.make(w.newPod(w.jobs()["a"]))
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, "a", "b", "c")
			w.pool("harbour")
			w.label("harbour", "a", "b", "c")
			w.want("a goes first", "a→harbour")
			stop(w)
			w.waits(29 * time.Minute)
			w.want("it has half an hour", "a→harbour")
			w.waits(2 * time.Minute)
			w.want("it gives way", "b→harbour")
			j := w.jobs()["a"]
			if is, _ := nodejob.PhaseOf(j); is != nodejob.Aside || !*j.Spec.Suspend {
				t.Errorf("its Job is %v: %v", is, j.Annotations)
			}
			if c := w.state("harbour"); !strings.Contains(c.Message,
				"these had their turn, and are tried again: node a: no progress for 30m0s: ") {
				t.Errorf("the Pool says %+v", c)
			}
			if n := w.told(reasonStalled); n != 1 {
				t.Errorf("%d Events tell of it", n)
			}
			w.restart()
			w.end("b", true)
			w.want("another weir-manager lets the next go, and not a again", "c→harbour")
			w.end("c", true)
			w.says("a", contract.CutOffCondition, "")
			w.says("a", corev1.NodeReady, corev1.ConditionTrue)
			w.waits(pause)
			w.want("then it is its turn", "a→harbour")
			if n := triesOf(w.jobs()["a"]); n != 1 {
				t.Errorf("it was tried %d times before", n)
			}
			w.waits(stall)
			w.want("nothing again", "")
			if c := w.state("harbour"); c.Reason != reasonStalled || !strings.HasPrefix(c.Message, "2 of 3 have joined; ") {
				t.Errorf("the Pool says %+v", c)
			}
			w.waits(pause + time.Minute)
			w.want("it waits longer", "")
			w.waits(pause)
			w.want("and is tried a third time", "a→harbour")
			w.end("a", true)
			w.want("all have joined", "")
			if c := w.state("harbour"); c.Status != metav1.ConditionTrue {
				t.Errorf("the Pool says %+v", c)
			}
		})
	}
}

// TestPullGoesOnAfterAFailure: a pull that failed has half an hour from when it was seen to go on last. After a restart
// of weir-manager, which saw nothing, the age of the Pod counts.
func TestPullGoesOnAfterAFailure(t *testing.T) {
	for _, anew := range []bool{false, true} {
		w := newWorld(t, "a", "b")
		w.pool("harbour")
		w.label("harbour", "a", "b")
		w.want("a goes first", "a→harbour")
		w.podIs("a", "ContainerCreating")
		w.waits(40 * time.Minute)
		w.podIs("a", "ImagePullBackOff")
		if anew {
			w.restart()
			w.want("nobody gets more time by a restart", "b→harbour")
			continue
		}
		w.waits(25 * time.Minute)
		w.want("the link broke, and kubelet tries it again", "a→harbour")
		w.podIs("a", "Running")
		w.waits(20 * time.Minute)
		w.want("it came through", "a→harbour")
	}
}

// TestWorkDoesNotEnd: a container that runs on is a failure, and not tried again by itself: a hub of this release may
// have done that. After two of these the others keep what they have.
func TestWorkDoesNotEnd(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.pool("harbour")
	w.label("harbour", "a", "b", "c")
	for _, name := range []string{"a", "b"} {
		w.want("it begins", name+"→harbour")
		w.podIs(name, "Running")
		w.waits(20 * time.Minute)
		w.restart()
		w.want("it works", name+"→harbour")
		w.waits(11 * time.Minute)
	}
	w.want("two do not end", "")
	if c := w.state("harbour"); c.Reason != reasonStopped ||
		!strings.Contains(c.Message, "node a: no progress for 30m0s: its container does not end; node b: ") {
		t.Errorf("the Pool says %+v", c)
	}
	if n := w.told(reasonFailed); n < 2 {
		t.Errorf("%d Events tell of it", n)
	}
	w.waits(3 * time.Hour)
	w.want("a person has to look", "")
	w.images("installer:2")
	w.want("another release", "a→harbour")
}

// TestAsideAndLabels: what stands aside goes with what was wanted, and another image is tried at once.
func TestAsideAndLabels(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.pool("harbour")
	w.pool("buoy")
	w.label("harbour", "a")
	w.want("it begins", "a→harbour")
	w.waits(stall + time.Minute)
	w.images("installer:2")
	w.want("another image", "a→harbour")
	w.waits(stall + time.Minute)
	w.label("buoy", "a")
	w.want("another pool", "a→buoy")
	w.waits(stall + time.Minute)
	w.label("", "a")
	w.want("nothing was done to it", "")
	if w.jobs()["a"] != nil {
		t.Error("its Job is left")
	}
	w.label("harbour", "b")
	w.want("b begins", "b→harbour")
	w.podIs("b", "ErrImagePull")
	w.images("")
	w.waits(2 * stall)
	w.want("what runs when it is switched off is left to run", "b→harbour")
}

// TestAnyOrder: pulls begin, fail, stand and end, nodes go away, and weir-manager starts again, in any order. Never is
// more than one node of a pool at work, no Job is taken away that goes on (the world sees to that), and when the link
// is well again each node is in its pool.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 36))
			nodes := []string{"a", "b", "c", "d", "x", "y", "z"}
			w := newWorld(t, nodes...)
			w.pool("harbour")
			w.pool("buoy")
			w.label("harbour", nodes[:4]...)
			w.label("buoy", nodes[4:6]...)
			alone := func() {
				at := map[string]int{}
				for _, j := range w.jobs() {
					if is, _ := nodejob.PhaseOf(j); is == nodejob.Running {
						if at[pool(j)]++; at[pool(j)] > 1 {
							t.Fatalf("Jobs run on %q", w.running())
						}
					}
				}
			}
			each := func(do func(node string, j *batchv1.Job)) {
				for _, node := range nodes {
					if j := w.jobs()[node]; j != nil {
						if is, _ := nodejob.PhaseOf(j); is == nodejob.Running {
							do(node, j)
						}
					}
				}
			}
			begun := map[string]bool{}
			for range 120 {
				each(func(node string, j *batchv1.Job) {
					switch k := r.IntN(12); {
					case begun[string(j.UID)]: // the work itself ends
						w.end(node, true)
					case k < 5:
						w.podIs(node, []string{"ContainerCreating", "ErrImagePull", "ImagePullBackOff", "ErrImagePull",
							"CreateContainerError"}[k])
					case k == 5 && able(w.node(node)):
						w.podIs(node, "Running")
						begun[string(j.UID)] = true
					}
				})
				if r.IntN(3) == 0 {
					w.says(nodes[r.IntN(len(nodes))], corev1.NodeReady,
						[]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionUnknown}[r.IntN(2)])
				}
				if r.IntN(8) == 0 {
					w.restart()
				}
				w.waits(time.Duration(r.IntN(15)) * time.Minute)
				alone()
			}
			for _, node := range nodes {
				w.says(node, corev1.NodeReady, corev1.ConditionTrue)
			}
			for range 40 {
				w.waits(10 * time.Minute)
				alone()
				each(func(node string, _ *batchv1.Job) { w.end(node, true) })
			}
			for _, node := range nodes {
				if want := w.node(node).Labels[contract.NodePoolLabel]; w.in[node] != want {
					t.Errorf("machine %s is in pool %q, and its label says %q: %v", node, w.in[node], want, w.jobs()[node])
				}
			}
		})
	}
}
