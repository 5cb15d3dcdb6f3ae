package e2e_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/runtime"
)

const namespace = metav1.NamespaceDefault

// deployWeb makes a Deployment, spread over the nodes of all pools or over those that are given, and a Service of the
// same name. Both go when the spec ends.
func deployWeb(ctx context.Context, name string, replicas int32, on ...string) string {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	place := corev1.NodeSelectorRequirement{Key: contract.NodePoolLabel, Operator: corev1.NodeSelectorOpExists}
	if len(on) > 0 {
		place = corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: on}
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					AutomountServiceAccountToken:  ptr.To(false),
					NodeSelector:                  nil,
					Affinity: &corev1.Affinity{
						NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
							NodeSelectorTerms: []corev1.NodeSelectorTerm{
								{MatchExpressions: []corev1.NodeSelectorRequirement{place}},
							},
						}},
					},
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
						LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
					Containers: []corev1.Container{{Name: "web", Image: runtime.AppImage, ImagePullPolicy: corev1.PullNever}},
				},
			},
		},
	}
	_, err := client.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	service, err := client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(runtime.PodPort)}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Expect(client.AppsV1().Deployments(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods.Items).To(BeEmpty())
		}).WithTimeout(2 * long).WithPolling(poll).Should(Succeed())
	}, NodeTimeout(3*long))
	rolledOut(ctx, name)
	return service.Spec.ClusterIP
}

// scale gives a Deployment another number of replicas.
func scale(ctx context.Context, name string, n int) error {
	_, err := client.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{})
	return err
}

// rolledOut waits until all replicas of a Deployment are of its last template and available.
func rolledOut(ctx context.Context, name string) {
	GinkgoHelper()
	rolledOutIn(ctx, namespace, name)
}

func rolledOutIn(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		g.Expect([]int32{d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.Replicas}).To(
			HaveEach(*d.Spec.Replicas))
	}).WithTimeout(3 * long).WithPolling(poll).Should(Succeed())
}

// reach fetches the Service from a node and returns the pod that answered.
func reach(ctx context.Context, node, address string) (string, error) {
	out, err := pools.Exec(ctx, node, "curl", "-sf", "-m", "2", "http://"+address)
	return strings.TrimSpace(out), err
}

// podsOf are the pods of a Deployment.
func podsOf(ctx context.Context, name string) []corev1.Pod {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}
