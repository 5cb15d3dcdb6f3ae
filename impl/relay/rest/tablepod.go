package rest

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay"
)

var podTable = &tablePrinter{
	columns: []metav1.TableColumnDefinition{
		column("Name", metaDoc["name"]),
		column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
		column("Status", "The aggregate status of the containers in this pod."),
		column("Restarts",
			"The number of times the containers in this pod have been restarted and when the last container in this pod "+
				"has restarted."),
		column("Age", metaDoc["creationTimestamp"]),
		wide("IP", corev1.PodStatus{}.SwaggerDoc()["podIP"]),
		wide("Node", corev1.PodSpec{}.SwaggerDoc()["nodeName"]),
		wide("Nominated Node", corev1.PodStatus{}.SwaggerDoc()["nominatedNodeName"]),
		wide("Readiness Gates", corev1.PodSpec{}.SwaggerDoc()["readinessGates"]),
	},
	cells: func(m relay.Message, now time.Time) []any {
		p := m.(*corev1.Pod)
		s := summarize(p)
		ip := ""
		if len(p.Status.PodIPs) > 0 {
			ip = p.Status.PodIPs[0].IP
		}
		return []any{
			p.Name, fmt.Sprintf("%d/%d", s.ready, s.all), s.status, s.restarts.format(now), age(p.CreationTimestamp, now),
			cmp.Or(ip, "<none>"), cmp.Or(p.Spec.NodeName, "<none>"), cmp.Or(p.Status.NominatedNodeName, "<none>"),
			readinessGates(p),
		}
	},
	conditions: func(m relay.Message) []metav1.TableRowCondition {
		c := metav1.TableRowCondition{Type: metav1.RowCompleted, Status: metav1.ConditionTrue}
		switch phase := m.(*corev1.Pod).Status.Phase; phase {
		case corev1.PodSucceeded:
			c.Reason, c.Message = string(phase), "The pod has completed successfully."
		case corev1.PodFailed:
			c.Reason, c.Message = string(phase), "The pod failed."
		default:
			return nil
		}
		return []metav1.TableRowCondition{c}
	},
}

// podSummary is what kubectl shows of a pod's containers.
type podSummary struct {
	status     string
	ready, all int
	restarts   restarts
}

// restarts are those of some containers, and the time of the last.
type restarts struct {
	count int
	last  metav1.Time
}

func (r *restarts) add(s *corev1.ContainerStatus) {
	r.count += int(s.RestartCount)
	if t := s.LastTerminationState.Terminated; t != nil && r.last.Before(&t.FinishedAt) {
		r.last = t.FinishedAt
	}
}

func (r *restarts) format(now time.Time) string {
	if r.count == 0 || r.last.IsZero() {
		return strconv.Itoa(r.count)
	}
	return fmt.Sprintf("%d (%s ago)", r.count, age(r.last, now))
}

func summarize(p *corev1.Pod) podSummary {
	s := podSummary{status: cmp.Or(p.Status.Reason, string(p.Status.Phase)), all: len(p.Spec.Containers)}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.status = corev1.PodReasonSchedulingGated
		}
	}
	if s.initialized(p) || is(p, corev1.PodInitialized) {
		s.running(p)
	}
	switch finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed; {
	case p.DeletionTimestamp == nil:
	case p.Status.Reason == "NodeLost":
		s.status = "Unknown"
	case !finished:
		s.status = "Terminating"
	}
	return s
}

// initialized goes through the init containers until one that is not done. When all are, only restarts of sidecars
// count.
func (s *podSummary) initialized(p *corev1.Pod) bool {
	sidecars := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars[c.Name] = true
			s.all++
		}
	}
	var all, ofSidecars restarts
	defer func() { s.restarts = ofSidecars }()
	for i := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[i]
		all.add(c)
		if sidecars[c.Name] {
			ofSidecars.add(c)
		}
		switch t, w := c.State.Terminated, c.State.Waiting; {
		case t != nil && t.ExitCode == 0:
			continue
		case sidecars[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case t != nil:
			s.status = "Init:" + ended(t)
		case w != nil && w.Reason != "" && w.Reason != "PodInitializing":
			s.status = "Init:" + w.Reason
		default:
			s.status = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		if !is(p, corev1.PodInitialized) {
			ofSidecars = all
		}
		return false
	}
	return true
}

// running looks at the containers themselves; the first that has something to say has the last word.
func (s *podSummary) running(p *corev1.Pod) {
	runs, failed := false, ""
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &p.Status.ContainerStatuses[i]
		s.restarts.add(c)
		switch t, w := c.State.Terminated, c.State.Waiting; {
		case w != nil && w.Reason != "":
			s.status = w.Reason
		case t != nil:
			if s.status = ended(t); t.ExitCode != 0 {
				failed = s.status
			}
		case c.Ready && c.State.Running != nil:
			runs = true
			s.ready++
		}
	}
	switch {
	case s.status != "Completed":
	case runs && is(p, corev1.PodReady):
		s.status = "Running"
	case failed != "":
		s.status = failed
	case runs:
		s.status = "NotReady"
	}
}

// ended tells how a container ended.
func ended(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

// is reports whether the first condition of a type is true.
func is(p *corev1.Pod, c corev1.PodConditionType) bool {
	for _, x := range p.Status.Conditions {
		if x.Type == c {
			return x.Status == corev1.ConditionTrue
		}
	}
	return false
}

func readinessGates(p *corev1.Pod) string {
	gates, open := p.Spec.ReadinessGates, 0
	if len(gates) == 0 {
		return "<none>"
	}
	for _, g := range gates {
		if is(p, g.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(gates))
}
