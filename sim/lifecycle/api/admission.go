package api

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// The users that the policies of weir-manager are about.
const (
	NodeController = "system:serviceaccount:kube-system:node-controller"
	AllControllers = "system:kube-controller-manager"
)

var errKept = errors.New(
	"the pod stays, because its pool is cut off from the cloud or it is bound to its node (weir-manager)")

// params is what a ConfigMap said from a time on.
type params struct {
	since time.Time
	data  map[string]string
}

// remember notes what a ConfigMap says now.
func (s *Server) remember(o *Object) {
	if o.Namespace != contract.ManagerNamespace {
		return
	}
	var c corev1.ConfigMap
	if o.Decode(&c) == nil {
		s.params[o.Name] = append(s.params[o.Name], params{time.Now(), c.Data})
	}
}

// params are what a policy sees of a ConfigMap; false: it is not there.
func (s *Server) paramsOf(name string) (map[string]string, bool) {
	for _, p := range slices.Backward(s.params[name]) {
		if time.Since(p.since) >= s.config.PolicyLag {
			return p.data, true
		}
	}
	return nil, false
}

func isController(user string) bool { return user == NodeController || user == AllControllers }

// keepsPod is the policy weir-keep-pods with both its bindings: it denies to delete a pod.
func (s *Server) keepsPod(user string, p *corev1.Pod) bool {
	if !isController(user) {
		return false
	}
	evicts := user == NodeController || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByTaintManager"
	})
	bound := p.Annotations[contract.BindingAnnotation] == "true"
	for _, name := range []string{contract.KeptNodes, contract.BoundNodes} {
		data, found := s.paramsOf(name)
		_, listed := data[p.Spec.NodeName]
		if found && evicts && (listed && p.Spec.NodeName != "" || bound) {
			return true
		}
	}
	return false
}

// keepReady is the policy weir-keep-ready: it puts back the condition Ready of a pod.
func (s *Server) keepReady(user string, old *Object, content map[string]any) (map[string]any, error) {
	data, _ := s.paramsOf(contract.KeptNodes)
	if _, listed := data[old.Node]; !isController(user) || !listed || old.Node == "" {
		return content, nil
	}
	var before, after corev1.Pod
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(old.Decode(&before), json.Unmarshal(raw, &after)); err != nil {
		return nil, err
	}
	was, is := ready(&before), ready(&after)
	if was == nil || was.Status != corev1.ConditionTrue || len(after.Status.Conditions) == 0 ||
		is != nil && is.Status == corev1.ConditionTrue {
		return content, nil
	}
	if is == nil {
		after.Status.Conditions = append(after.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady})
		is = ready(&after)
	}
	is.Status, is.LastTransitionTime = corev1.ConditionTrue, was.LastTransitionTime
	if raw, err = json.Marshal(after.Status); err != nil {
		return nil, err
	}
	content["status"], err = decode(raw)
	return content, err
}

func ready(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodReady {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// Ready reports whether a pod says that it is.
func Ready(p *corev1.Pod) bool {
	c := ready(p)
	return c != nil && c.Status == corev1.ConditionTrue
}
