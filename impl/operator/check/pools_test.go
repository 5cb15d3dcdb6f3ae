package check

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// TestJoined: of a node that has not joined, the Job of weir-manager is named as the cause.
func TestJoined(t *testing.T) {
	job := func(kind batchv1.JobConditionType) map[string]batchv1.Job {
		j := batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "weir-installer-1", UID: "j"}}
		if kind != "" {
			j.Status.Conditions = []batchv1.JobCondition{
				{Type: kind, Status: corev1.ConditionTrue, Message: "it was active longer than specified deadline"},
			}
		}
		return map[string]batchv1.Job{"edge-1": j}
	}
	pod := func(s corev1.ContainerState) []corev1.Pod {
		return []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{
				Name: "p", CreationTimestamp: metav1.NewTime(time.Now()),
				Labels:          map[string]string{batchv1.JobNameLabel: "weir-installer-1"},
				OwnerReferences: []metav1.OwnerReference{{UID: "j", Controller: new(true)}},
			},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: s}}},
		}}
	}
	pulls := pod(corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image "x"`},
	})
	failed := pod(corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Message: "preflight: ports: 10268: taken by another process",
		},
	})
	again := append(pod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}), failed...)
	again[1].CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
	for what, c := range map[string]struct {
		jobs   map[string]batchv1.Job
		pods   []corev1.Pod
		status corev1.ConditionStatus
		want   string // "": it is well
	}{
		"no Job":      {want: "no Job of weir-manager runs there"},
		"one at work": {jobs: job(""), want: "is at work: kubectl -n kube-system logs job/weir-installer-1"},
		"one that cannot begin": {
			jobs: job(""), pods: pulls, want: `does not begin: ImagePullBackOff: Back-off pulling image "x"`,
		},
		"one whose second Pod runs": {jobs: job(""), pods: again, want: "is at work"},
		"one that failed": {
			jobs: job(batchv1.JobFailed), pods: failed,
			want: "failed: preflight: ports: 10268: taken by another process; kubectl -n kube-system logs",
		},
		"one that failed, without Pod": {
			jobs: job(batchv1.JobFailed), want: "failed: it was active longer than specified deadline",
		},
		"one at work after a failure": {jobs: job(""), status: corev1.ConditionFalse, want: "is at work"},
		"one that ended, taken back": {
			jobs: job(batchv1.JobComplete), status: corev1.ConditionFalse, want: "WeirJoinUndone: the hub is not ready",
		},
		"one at work on a hub's node": {jobs: job(""), status: corev1.ConditionTrue},
	} {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "edge-1", Labels: map[string]string{contract.NodePoolLabel: "harbour"}},
		}
		if c.status != "" {
			n.Status.Conditions = []corev1.NodeCondition{
				{Type: contract.JoinedCondition, Status: c.status, Reason: "WeirJoinUndone", Message: "the hub is not ready."},
			}
		}
		err := checkJoined(&looker{view: &commands.View{Installs: c.jobs, InstallPods: c.pods}}, n)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// TestTold: a pool whose hubs are not told all that its objects say is not well, and the first cause is named.
func TestTold(t *testing.T) {
	condition := func(kind, reason string) metav1.Condition {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "so"}
		if reason == "Accepted" || reason == "Applied" {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	for want, conditions := range map[string][]metav1.Condition{
		"": {condition(poolv1.ModeApplied, "Applied"), condition(poolv1.ReachAccepted, "Accepted")},
		"NoLeaderElection: so": {
			condition(poolv1.ModeApplied, "NoLeaderElection"), condition(poolv1.ReachAccepted, "Refused"),
		},
		"Refused: so": {condition(poolv1.ModeApplied, "Applied"), condition(poolv1.ReachAccepted, "Refused")},
	} {
		meta := metav1.ObjectMeta{Name: "harbour"}
		v := &commands.View{
			NodePools:  []nodepool.NodePool{{ObjectMeta: meta}},
			Pools:      []poolv1.Pool{{ObjectMeta: meta, Status: poolv1.Status{Conditions: conditions}}},
			LeaderHubs: map[string]corev1.Service{"harbour": {}},
		}
		err := checkTold(&looker{view: v}, "harbour")
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
