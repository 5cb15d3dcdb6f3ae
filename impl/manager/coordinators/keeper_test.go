package coordinators

import (
	"context"
	"errors"
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
