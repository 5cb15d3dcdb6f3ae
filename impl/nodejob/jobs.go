package nodejob

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// InstallLabels are the labels of all Jobs that join nodes, or let them leave.
func InstallLabels() map[string]string {
	return map[string]string{contract.ManagedLabel: contract.ManagedBy, contract.NameLabel: contract.InstallerName}
}

// Phase is how far a Job is.
type Phase int

// Phases.
const (
	Running Phase = iota
	Done
	Failed
	// Aside is a Job that stands for one that was taken away before its Pod began, because nothing went on. The node is
	// tried again when it is its turn.
	Aside
)

// PhaseOf is that of a Job, and since when it has ended.
func PhaseOf(j *batchv1.Job) (Phase, time.Time) {
	if j.Annotations[contract.InstallStalled] != "" {
		if j.Annotations[contract.InstallTries] != "" {
			return Aside, j.CreationTimestamp.Time
		}
		return Failed, j.CreationTimestamp.Time
	}
	for _, c := range j.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			switch c.Type {
			case batchv1.JobComplete:
				return Done, c.LastTransitionTime.Time
			case batchv1.JobFailed:
				return Failed, c.LastTransitionTime.Time
			}
		}
	}
	return Running, time.Time{}
}

// mostSay bounds what is told of a Job.
const mostSay = 300

// Retry is how a person lets failed Jobs of a pool begin again.
func Retry(pool string) string {
	return fmt.Sprintf("kubectl -n %s delete jobs -l %s=%s,%s=%s --field-selector status.successful=0",
		contract.ManagerNamespace, contract.NameLabel, contract.InstallerName, contract.NodePoolLabel, pool)
}

// Why tells how a Job failed, or why its Pod does not begin; "": there is nothing to tell.
func Why(j *batchv1.Job, pods []corev1.Pod) string {
	says := j.Annotations[contract.InstallStalled]
	if p := PodOf(j, pods); says == "" && p != nil {
		says = sayOf(p)
	}
	if is, _ := PhaseOf(j); says == "" && is == Failed {
		for _, c := range j.Status.Conditions {
			if c.Type == batchv1.JobFailed {
				says = cmp.Or(c.Message, c.Reason)
			}
		}
	}
	says = strings.Join(strings.Fields(says), " ")
	if len(says) > mostSay {
		says = says[:mostSay] + "…"
	}
	return says
}

// PodOf is the last Pod of a Job, which goes on with what others began; nil: there is none.
func PodOf(j *batchv1.Job, pods []corev1.Pod) (last *corev1.Pod) {
	for i := range pods {
		p := &pods[i]
		if p.Labels[batchv1.JobNameLabel] == j.Name && metav1.IsControlledBy(p, j) &&
			(last == nil || !p.CreationTimestamp.Time.Before(last.CreationTimestamp.Time)) {
			last = p
		}
	}
	return last
}

// sayOf is what is known of a Pod that is not well.
func sayOf(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return cmp.Or(t.Message, fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode))
		}
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
			return w.Reason + ": " + w.Message
		}
	}
	return ""
}
