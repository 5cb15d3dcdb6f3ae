package autonomy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/sim/runtime"
)

const (
	appPrefix = "app-"
	jobPrefix = "job-"
	account   = "default"
	readable  = "for-pods" // a ConfigMap that pods may read

	serviceLabel = "service" // of a pod: which Service leads to it; empty: none
)

// podNames are the pods of a node: apps, which run for ever, and jobs, which finish.
func podNames(node string, n int) (names []string) {
	for i := range n {
		prefix := appPrefix
		if i%2 == 1 {
			prefix = jobPrefix
		}
		names = append(names, fmt.Sprintf("%s%s-%d", prefix, node, i/2+1))
	}
	return names
}

func isJob(pod string) bool { return strings.HasPrefix(pod, jobPrefix) }

// prepare makes the account that pods run as, and what it may read.
func prepare(ctx context.Context, admin kubernetes.Interface) error {
	const ns = corev1.NamespaceDefault
	_, err := admin.CoreV1().ServiceAccounts(ns).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	_, err2 := admin.CoreV1().ConfigMaps(ns).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: readable}, Data: map[string]string{"a": "b"}},
		metav1.CreateOptions{})
	_, err3 := admin.RbacV1().Roles(ns).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: readable},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
		},
	}, metav1.CreateOptions{})
	_, err4 := admin.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: readable},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: readable},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: ns}},
	}, metav1.CreateOptions{})
	for _, err := range []error{err, err2, err3, err4} {
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// createPod makes a pod, bound to a node and of a Service, and what it reads.
func createPod(ctx context.Context, admin kubernetes.Interface, node, name, service string) error {
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{serviceLabel: service}}
	_, errSecret := admin.CoreV1().Secrets(corev1.NamespaceDefault).Create(ctx,
		&corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"key": name}}, metav1.CreateOptions{})
	_, errConfig := admin.CoreV1().ConfigMaps(corev1.NamespaceDefault).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": name}}, metav1.CreateOptions{})
	restart := corev1.RestartPolicyAlways
	if isJob(name) {
		restart = corev1.RestartPolicyOnFailure
	}
	ref := corev1.LocalObjectReference{Name: name}
	_, errPod := admin.CoreV1().Pods(corev1.NamespaceDefault).Create(ctx, &corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: restart, ServiceAccountName: account, AutomountServiceAccountToken: ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "main", Image: runtime.AppImage, ImagePullPolicy: corev1.PullIfNotPresent,
				Env: []corev1.EnvVar{
					{
						Name: "SECRET", ValueFrom: &corev1.EnvVarSource{
							SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "key"},
						},
					},
					{
						Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{
							ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref, Key: "key"},
						},
					},
				},
			}},
		},
	}, metav1.CreateOptions{})
	return errors.Join(errSecret, errConfig, errPod)
}
