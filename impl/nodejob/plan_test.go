package nodejob

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var begin = time.Date(2026, 11, 28, 22, 0, 0, 0, time.UTC)

// job is the n-th that was made.
func job(n int, pool, node string) batchv1.Job {
	j := Preload{Pool: pool, Node: node, Image: "registry.example/app:1", Deadline: time.Hour}.Job()
	j.Name, j.CreationTimestamp = fmt.Sprint("job-", n), metav1.NewTime(begin.Add(time.Duration(n)*time.Second))
	return *j
}

func running(j batchv1.Job) batchv1.Job {
	j.Spec.Suspend = ptr.To(false)
	return j
}

func ended(j batchv1.Job, how batchv1.JobConditionType) batchv1.Job {
	j.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
	return running(j)
}

func deleted(j batchv1.Job) batchv1.Job {
	j.DeletionTimestamp = &metav1.Time{Time: begin}
	return j
}

func now(j batchv1.Job) batchv1.Job {
	o := Preload{Now: true}.Job()
	j.Annotations, j.Spec.Suspend = o.Annotations, o.Spec.Suspend
	return j
}

// TestPlan: one Job of a pool runs at a time, in the hours of its pool, the first that was made first.
func TestPlan(t *testing.T) {
	all := func(string) bool { return true }
	closed := func(pool string) bool { return pool != "harbour" }
	ready := func(node string) NodeState {
		switch node {
		case "off":
			return NodeAway
		case "gone":
			return NodeGone
		}
		return NodeAble
	}
	a, b, quay, off := job(1, "harbour", "a"), job(2, "harbour", "b"), job(3, "quay", "q"), job(0, "harbour", "off")
	gone, early := job(0, "harbour", "gone"), job(4, "harbour", "b")
	early.CreationTimestamp = a.CreationTimestamp
	late := job(5, "harbour", "a")
	late.CreationTimestamp = a.CreationTimestamp
	for name, c := range map[string]struct {
		jobs []batchv1.Job
		open func(string) bool
		want []string
	}{
		"nothing":                         {nil, all, nil},
		"of one second, by node":          {[]batchv1.Job{early, late}, all, []string{"run job-5"}},
		"one of each pool":                {[]batchv1.Job{b, quay, a}, all, []string{"run job-1", "run job-3"}},
		"the second waits for the first":  {[]batchv1.Job{running(a), b}, all, nil},
		"the second follows the first":    {[]batchv1.Job{ended(a, batchv1.JobComplete), b}, all, []string{"run job-2"}},
		"it follows one that failed":      {[]batchv1.Job{ended(a, batchv1.JobFailed), b}, all, []string{"run job-2"}},
		"it follows one that goes":        {[]batchv1.Job{deleted(a), b}, all, []string{"run job-2"}},
		"a node that is off waits":        {[]batchv1.Job{off, a}, all, []string{"run job-1"}},
		"nobody waits for a node that is": {[]batchv1.Job{running(off), a}, all, []string{"run job-1"}},
		"a node that is gone waits":       {[]batchv1.Job{gone, a}, all, []string{"run job-1"}},
		"and has no Pod": {
			[]batchv1.Job{running(gone), a}, all, []string{"suspend job-0", "run job-1"},
		},
		"nor at once": {[]batchv1.Job{now(gone)}, all, []string{"suspend job-0"}},
		"the hours are over": {
			[]batchv1.Job{running(a), b, quay}, closed, []string{"suspend job-1", "run job-3"},
		},
		"not so for what runs at any hour": {[]batchv1.Job{now(a), b}, closed, nil},
		"what has ended is left":           {[]batchv1.Job{ended(a, batchv1.JobComplete)}, closed, nil},
	} {
		var got []string
		for _, change := range PlanPreloads(c.jobs, c.open, ready) {
			verb := "run "
			if change.Suspend {
				verb = "suspend "
			}
			got = append(got, verb+change.Job.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestJob: what the image brings never runs, and what runs has no right.
func TestJob(t *testing.T) {
	j := Preload{
		Pool: "harbour", Node: "edge-1", Image: "registry.example/app:1", Secrets: []string{"pull"}, Deadline: time.Hour,
	}.Job()
	pod := j.Spec.Template.Spec
	c := pod.Containers[0]
	if !Waits(j) || NodeOf(j) != "edge-1" || len(c.Command) == 0 || c.Command[0] != c.VolumeMounts[0].MountPath ||
		!c.VolumeMounts[0].ReadOnly || c.ImagePullPolicy != corev1.PullAlways || pod.ImagePullSecrets[0].Name != "pull" ||
		*pod.AutomountServiceAccountToken || *c.SecurityContext.AllowPrivilegeEscalation ||
		*pod.SecurityContext.RunAsUser == 0 {
		t.Errorf("%+v", j)
	}
}
