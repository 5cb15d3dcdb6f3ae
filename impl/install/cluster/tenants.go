package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/hub/nodelocal"
)

// mostPods bounds what is read of a node's pods. A kubelet runs 110 by default.
const mostPods = 1000

// Tenants are the pods of a node.
type Tenants struct {
	Client kubernetes.Interface // asks the cloud as the node
	Node   string
	Called []nodelocal.Pod // have called the hub
	// Wait tries until there is no error, or it has waited for long enough: then its error says for what.
	Wait func(ctx context.Context, what string, try func(context.Context) error) error
	Say  func(format string, args ...any)
}

// pod is one on this node.
type pod struct {
	types.NamespacedName
	uid    types.UID
	anew   bool // its controller starts another one, and nothing is lost by that
	proxy  bool // of kube-proxy
	since  []time.Time
	caller bool // it has called the hub
	token  bool // it could
}

// pods are those that run or end.
func (t *Tenants) pods(ctx context.Context) (all []pod, err error) {
	list, err := t.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + t.Node, Limit: mostPods,
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		one := pod{
			NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, uid: p.UID,
			proxy:  p.Namespace == metav1.NamespaceSystem && p.Labels["k8s-app"] == "kube-proxy",
			caller: slices.Contains(t.Called, nodelocal.Pod{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}),
		}
		if by := metav1.GetControllerOf(p); by != nil { // a Job would lose what it has done, and a static pod is its file's
			one.anew = by.Kind != "Job" && by.Kind != "Node"
		}
		for _, s := range p.Status.ContainerStatuses {
			if s.State.Running != nil {
				one.since = append(one.since, s.State.Running.StartedAt.Time)
			}
		}
		for _, v := range p.Spec.Volumes {
			one.token = one.token || v.Projected != nil && slices.ContainsFunc(v.Projected.Sources,
				func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil })
		}
		all = append(all, one)
	}
	return all, nil
}

// restart deletes pods: their controllers start others.
func (t *Tenants) restart(ctx context.Context, all []pod) error {
	for _, p := range all {
		err := t.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// move lets pods restart that are to: they call what leads them then.
func (t *Tenants) move(ctx context.Context, moves func(pod) bool) error {
	find := func(ctx context.Context) (some []pod, err error) {
		all, err := t.pods(ctx)
		return slices.DeleteFunc(all, func(p pod) bool { return !moves(p) }), err
	}
	first, err := find(ctx)
	if err != nil || len(first) == 0 {
		return err
	}
	t.Say("pods are restarted, since they would go on to call their address of before: %s", namesOf(first))
	if err := t.restart(ctx, first); err != nil {
		return err
	}
	return t.Wait(ctx, "they are gone", func(ctx context.Context) error {
		now, err := find(ctx)
		if err == nil && slices.ContainsFunc(now, func(p pod) bool {
			return slices.ContainsFunc(first, func(f pod) bool { return f.uid == p.uid })
		}) {
			err = errors.New("they are still there")
		}
		return err
	})
}

// LeadProxies lets pods of kube-proxy that were started before a time restart: the kubelet then tells them of the hub.
// Until then their watches cross the uplink. A node has joined without that.
func (t *Tenants) LeadProxies(ctx context.Context, before time.Time) {
	err := t.move(ctx, func(p pod) bool {
		return p.proxy && slices.ContainsFunc(p.since, func(at time.Time) bool { return at.Before(before) })
	})
	if err != nil {
		t.Say("pods of kube-proxy on this node still call the cloud past the hub: delete them. %v", err)
	}
}

// Release lets pods restart that call the hub, which goes then. The kubelet calls the cloud already, and so tells them
// of it. A cloud that cannot be asked keeps nobody from leaving. named says that pods were led to the hub since a time:
// those are told that could still call it.
func (t *Tenants) Release(ctx context.Context, since time.Time, named bool) {
	since = since.Truncate(time.Second)
	led := func(p pod) bool {
		return slices.ContainsFunc(p.since, func(at time.Time) bool { return !at.Before(since) })
	}
	if err := t.move(ctx, func(p pod) bool { return p.caller && p.anew || p.proxy && led(p) }); err != nil {
		t.Say("pods on this node may still call the hub, which goes now: delete them. %v", err)
	}
	if !named {
		return
	}
	all, err := t.pods(ctx)
	if err != nil {
		t.Say("pods on this node may have the address of the hub, which goes now: %v", err)
		return
	}
	silent := slices.DeleteFunc(all, func(p pod) bool { return p.caller || p.proxy || !p.token || !led(p) })
	if len(silent) > 0 {
		t.Say("pods may have the address of the hub, and have not called it: delete those that are to call the API later: %s",
			namesOf(silent))
	}
}

// Held is the error of who would take the hub away from pods that call it, and that nobody starts again. It waits for
// them a while.
func (t *Tenants) Held(ctx context.Context) error {
	if len(t.Called) == 0 {
		return nil
	}
	var stuck []pod
	_ = t.Wait(ctx, "", func(ctx context.Context) error {
		all, err := t.pods(ctx)
		if err != nil {
			t.Say("pods that call the hub may lose it: %v", err)
			return nil
		}
		if stuck = slices.DeleteFunc(all, func(p pod) bool { return !p.caller || p.anew || p.proxy }); len(stuck) > 0 {
			return errors.New("they are there")
		}
		return nil
	})
	if len(stuck) == 0 {
		return nil
	}
	return fmt.Errorf("pods call the hub of this node, and nothing would restart them: %s; delete them, or take the "+
		"API from them by weir node leave --abandon-pods; nothing was changed", namesOf(stuck))
}

// namesOf are the first of some pods, and how many more there are.
func namesOf(all []pod) string {
	const few = 10
	var some []string
	for _, p := range all[:min(len(all), few)] {
		some = append(some, p.String())
	}
	if more := len(all) - few; more > 0 {
		some = append(some, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(some, ", ")
}
