package coordinators

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weir-edge/weir/impl/contract"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// TestOneCannotBeRun: a replica of which the Pod, or the label of its Node, cannot be written does not keep the others.
func TestOneCannotBeRun(t *testing.T) {
	for _, fails := range []string{"pod", "label"} {
		w := newWorld(4, 3)
		w.record, _ = w.next()
		w.Own.Status.Replicas, w.Own.Status.Cluster, w.Own.Status.Placements = w.Replicas, w.Cluster, w.Placements
		bad := w.Replicas[0].Node
		builder := fake.NewClientBuilder().WithScheme(kubescheme.Scheme)
		for i := range w.Nodes {
			builder.WithObjects(w.Nodes[i].DeepCopy())
		}
		c := builder.WithObjects(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: contract.CoordinatorImages},
			Data:       map[string]string{contract.PullSecretsKey: "mirror\n"},
		}).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if p, ok := o.(*corev1.Pod); ok && fails == "pod" && p.Spec.NodeName == bad {
					return errors.New("refused")
				}
				return c.Create(ctx, o, options...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
				options ...client.PatchOption) error {
				if fails == "label" && o.GetName() == bad {
					return errors.New("refused")
				}
				return c.Patch(ctx, o, p, options...)
			},
		}).Build()
		k := &Keeper{Client: c, Images: c, Clock: clocktesting.NewFakePassiveClock(w.now)}
		if _, err := k.Keep(t.Context(), w.Pool); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", fails, err)
		}
		var pods corev1.PodList
		if err := c.List(t.Context(), &pods, client.InNamespace(contract.ManagerNamespace)); err != nil {
			t.Fatal(err)
		}
		var on []string
		for _, p := range pods.Items {
			on = append(on, p.Spec.NodeName)
			if !slices.Equal(p.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "mirror"}}) {
				t.Errorf("it is pulled by %v", p.Spec.ImagePullSecrets)
			}
		}
		var want []string
		for _, r := range w.Replicas[1:] {
			want = append(want, r.Node)
		}
		slices.Sort(on)
		if slices.Sort(want); !slices.Equal(on, want) {
			t.Errorf("%s: Pods on %v, want %v", fails, on, want)
		}
	}
}

// TestImageOfTheRelease: a Pool that names no image has that of the release, one replica after another when it becomes
// another one, and keeps what runs while there is none. One that names an image keeps that.
func TestImageOfTheRelease(t *testing.T) {
	w := newWorld(3, 3)
	w.Own.Spec.Coordinator.Image = ""
	w.record, _ = w.next()
	w.Own.Status.Replicas, w.Own.Status.Cluster, w.Own.Status.Placements = w.Replicas, w.Cluster, w.Placements
	builder := fake.NewClientBuilder().WithScheme(kubescheme.Scheme).WithStatusSubresource(&corev1.Pod{})
	for i := range w.Nodes {
		builder.WithObjects(w.Nodes[i].DeepCopy())
	}
	release := Images()
	c := builder.WithObjects(release).Build()
	k := &Keeper{Client: c, Images: c, Clock: clocktesting.NewFakePassiveClock(w.now)}
	names := func(data map[string]string) {
		t.Helper()
		if release.Data = maps.Clone(data); c.Update(t.Context(), release) != nil {
			t.Fatal("cannot write the ConfigMap")
		}
	}
	kept := func() error {
		_, err := k.Keep(t.Context(), w.Pool)
		return err
	}
	pods := func() []corev1.Pod {
		t.Helper()
		var all corev1.PodList
		if err := c.List(t.Context(), &all, client.InNamespace(contract.ManagerNamespace)); err != nil {
			t.Fatal(err)
		}
		return all.Items
	}
	serve := func() { // all of them, with the image that each is to have
		t.Helper()
		for _, p := range pods() {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{ContainerID: p.Spec.Containers[0].Image}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if err := c.Status().Update(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(what string, want map[string]int) {
		t.Helper()
		is := map[string]int{}
		for _, p := range pods() {
			is[p.Spec.Containers[0].Image]++
		}
		if !maps.Equal(is, want) {
			t.Errorf("%s: %v run, want %v", what, is, want)
		}
	}
	for _, data := range []map[string]string{nil, {contract.CoordinatorImagesKey: "another"}} {
		names(data)
		if err := kept(); !errors.Is(err, ErrNoImage) {
			t.Errorf("no release: %v", err)
		}
		run("no release", map[string]int{})
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	names(map[string]string{contract.CoordinatorImagesRelease: "weir:1\n"})
	must(kept())
	run("the release", map[string]int{"weir:1": 3})
	serve()
	names(map[string]string{contract.CoordinatorImagesRelease: "weir:2"})
	for n := range 3 {
		must(kept())
		run("an upgrade", map[int]map[string]int{
			0: {"weir:1": 2, "weir:2": 1}, 1: {"weir:1": 1, "weir:2": 2}, 2: {"weir:2": 3},
		}[n])
		must(kept())
		serve()
	}
	names(nil)
	must(kept())
	run("the release is gone", map[string]int{"weir:2": 3})
	names(map[string]string{contract.CoordinatorImagesRelease: "weir:3"})
	w.Own.Spec.Coordinator.Image = "weir:2"
	must(kept())
	run("the Pool names one", map[string]int{"weir:2": 3})
	w.Own.Spec.Coordinator.Image = ""
	must(c.Delete(t.Context(), Images()))
	must(kept())
	run("there is no such ConfigMap", map[string]int{"weir:2": 3})
	for spec, want := range map[*poolv1.Coordinator]bool{
		nil: false, {}: true, {Image: "i"}: true, {Servers: []string{"https://10.0.0.1:10270"}}: false,
	} {
		if got := Runs(&poolv1.Pool{Spec: poolv1.Spec{Coordinator: spec}}); got != want {
			t.Errorf("weir-manager runs %+v: %v", spec, got)
		}
	}
}
