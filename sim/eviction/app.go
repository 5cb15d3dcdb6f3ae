package eviction

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/runtime"
)

// appName is of the Deployment and the Service of the pool.
const appName = "web"

// deploy creates a Deployment whose pods run in a pool only, spread over its nodes, and a Service of them.
func deploy(ctx context.Context, admin kubernetes.Interface, pool string, replicas int) error {
	selector := map[string]string{"app": appName}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: appName},
		Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{
			Name: "http", Port: 80, TargetPort: intstr.FromInt32(runtime.PodPort),
		}}},
	}
	if _, err := admin.CoreV1().Services(corev1.NamespaceDefault).Create(ctx, service, metav1.CreateOptions{}); err !=
		nil {
		return fmt.Errorf("create the Service: %w", err)
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: appName},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken:  ptr.To(false),
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					NodeSelector:                  map[string]string{contract.NodePoolLabel: pool},
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
						LabelSelector: &metav1.LabelSelector{MatchLabels: selector},
					}},
					Containers: []corev1.Container{{
						Name: appName, Image: runtime.AppImage, ImagePullPolicy: corev1.PullIfNotPresent,
						Ports: []corev1.ContainerPort{{ContainerPort: runtime.PodPort}},
					}},
				},
			},
		},
	}
	if _, err := admin.AppsV1().Deployments(corev1.NamespaceDefault).Create(ctx, deployment,
		metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the Deployment: %w", err)
	}
	return nil
}

// running counts the pods of the Deployment on each node that are Ready.
func running(ctx context.Context, admin kubernetes.Interface) (map[string]int, error) {
	pods, err := admin.CoreV1().Pods(corev1.NamespaceDefault).List(ctx,
		metav1.ListOptions{LabelSelector: "app=" + appName})
	if err != nil {
		return nil, err
	}
	on := map[string]int{}
	for _, p := range pods.Items {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
				on[p.Spec.NodeName]++
			}
		}
	}
	return on, nil
}
