package autonomy

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestHistory: a status that goes back to what was before is found, one that is said again at once is none.
func TestHistory(t *testing.T) {
	at := func(restarts int32, id string, running bool, phase corev1.PodPhase) *corev1.Pod {
		s := corev1.ContainerStatus{RestartCount: restarts, ContainerID: id}
		if running {
			s.State.Running = &corev1.ContainerStateRunning{}
		} else {
			s.State.Terminated = &corev1.ContainerStateTerminated{}
		}
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{s}}}
	}
	runs, fails, again := at(0, "a", true, corev1.PodRunning), at(0, "a", false, corev1.PodRunning),
		at(1, "b", true, corev1.PodRunning)
	done := at(1, "b", false, corev1.PodSucceeded)
	for name, c := range map[string]struct {
		all  []*corev1.Pod
		want int
	}{
		"in order":            {[]*corev1.Pod{runs, fails, again, done}, 0},
		"said again":          {[]*corev1.Pod{runs, runs, again, again, done}, 0},
		"a late one":          {[]*corev1.Pod{runs, again, fails, again}, 2},
		"twice":               {[]*corev1.Pod{runs, fails, runs}, 1},
		"back from the dead":  {[]*corev1.Pod{runs, done, at(2, "c", true, corev1.PodRunning)}, 1},
		"without a container": {[]*corev1.Pod{{}, runs, {}}, 0},
	} {
		h, got := &history{seen: map[string]bool{}}, 0
		for _, p := range c.all {
			if h.add(p) {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
