package autonomy

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func wrote(serial string) []corev1.NodeCondition {
	return []corev1.NodeCondition{{Type: scribeName, Status: corev1.ConditionTrue, Message: serial}}
}

// TestLost: what a hub took and the cloud does not have is lost: a status that is older, and each Event.
func TestLost(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: wrote("7")}}
	pod := func(serial string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "app-n-1"}, Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: scribeName, Message: serial}},
			},
		}
	}
	event := func(name string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Reason: scribeName}
	}
	for name, x := range map[string]struct {
		s    scribe
		pod  *corev1.Pod
		want int
	}{
		"all is there":           {scribe{nodeTook: 7, podTook: 7, events: []int{6, 7}}, pod("7"), 0},
		"later than was told":    {scribe{nodeTook: 6, podTook: 5, events: []int{6}}, pod("7"), 0},
		"the node's status":      {scribe{nodeTook: 8, podTook: 7}, pod("7"), 1},
		"the pod's status":       {scribe{nodeTook: 7, podTook: 7}, pod("6"), 1},
		"never one of the pod":   {scribe{podTook: 1}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app-n-1"}}, 1},
		"two Events of four":     {scribe{events: []int{5, 6, 7, 8}}, pod("0"), 2},
		"the pod is deleted":     {scribe{nodeTook: 7, podTook: 9}, nil, 0},
		"nothing was ever taken": {scribe{}, pod("0"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := x.s
			s.node, s.pod = "n", "app-n-1"
			c := &column{
				recorder: &recorder{
					pods: map[string]*corev1.Pod{},
				}, admin: fake.NewClientset(node, event("scribe.n.6"), event("scribe.n.7")),
			}
			if x.pod != nil {
				c.recorder.pods[x.pod.Name] = x.pod
			}
			c.writes.all = []*scribe{&s}
			ok, what := c.allWritten(t.Context())
			if len(c.writes.lines) != x.want || ok != (x.want == 0) {
				t.Errorf("%d lost, %t %q: %q", len(c.writes.lines), ok, what, c.writes.lines)
			}
		})
	}
}

// TestAgree: a container of the same name and attempt as before a power cut is another one.
func TestAgree(t *testing.T) {
	at := metav1.Now()
	of := func(x container, change func(*corev1.ContainerStatus)) *corev1.Pod {
		s := corev1.ContainerStatus{
			ContainerID: "fake://app_0", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		}
		change(&s)
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{s}}}
	}
	now := container{State: runningState, StartedAt: at.UnixNano()}
	for name, x := range map[string]struct {
		on     container
		change func(*corev1.ContainerStatus)
		want   bool
	}{
		"the same":            {now, func(*corev1.ContainerStatus) {}, true},
		"restarts counted on": {now, func(s *corev1.ContainerStatus) { s.RestartCount = 4 }, true},
		"another attempt": {
			container{State: runningState, StartedAt: now.StartedAt, Attempt: 1}, func(*corev1.ContainerStatus) {}, false,
		},
		"of before a power cut": {
			container{State: runningState, StartedAt: now.StartedAt + 3e9}, func(*corev1.ContainerStatus) {}, false,
		},
		"it does not run": {
			container{State: "CONTAINER_EXITED", StartedAt: now.StartedAt}, func(*corev1.ContainerStatus) {}, false,
		},
		"the cloud says it ends": {now, func(s *corev1.ContainerStatus) {
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := agree(of(x.on, x.change), x.on, false); got != x.want {
				t.Errorf("agree: %t", got)
			}
		})
	}
}
