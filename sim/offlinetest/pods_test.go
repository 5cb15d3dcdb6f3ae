package offlinetest

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/nodelocal"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc/loopback"
)

// podsAddress reserves an address of the machine that only pods call.
func podsAddress(t *testing.T) string {
	t.Helper()
	block, err := loopback.Reserve(t.Context())
	check(t, err)
	t.Cleanup(block.Release)
	address, err := block.Addr(1)
	check(t, err)
	return address
}

// bind makes a pod of this node, and returns a token that is bound to it.
func (b *bed) bind(name string) (*corev1.Pod, string) {
	b.t.Helper()
	ctx := b.t.Context()
	pod, err := b.admin.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: edge, Containers: []corev1.Container{{Name: "main", Image: "example.com/image:1"}},
			AutomountServiceAccountToken: new(bool),
			Volumes: []corev1.Volume{
				{
					Name: "roots", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: rootsOfPods}},
					},
				},
			},
		},
	}, metav1.CreateOptions{})
	check(b.t, err)
	answer, err := b.admin.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		}}, metav1.CreateOptions{})
	check(b.t, err)
	return pod, answer.Status.Token
}

// TestPods: a kubelet that has read through the hub for a while has the hub's address for the containers that it
// starts, and nobody else has. A stock client of a pod, with that address, the bundle that the kubelet read and the
// pod's token, reads and writes what the cloud lets it, and reads on without the cloud. After a kill the kubelet has
// the address at once, also without the cloud. The hub knows which pods call it.
func TestPods(t *testing.T) {
	at := podsAddress(t)
	b := newBed(t, parts.Flags{"pods-address": at, "pods-wait": "3s"})
	ctx, core := t.Context(), b.admin.CoreV1()
	eventually(t, "namespace and account", func() bool {
		_, err := core.ServiceAccounts("default").Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	_, err := core.ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: rootsOfPods}, Data: map[string]string{"ca.crt": string(b.cloud.CA().CertPEM())},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = b.admin.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "edit"}, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "Role", Name: "edit",
		},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "default"}},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = b.admin.RbacV1().Roles("default").Create(ctx,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "edit"}, Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{""}, Resources: []string{"configmaps", "endpoints", "services"},
				Verbs: []string{"get", "list", "create"},
			},
		}}, metav1.CreateOptions{})
	check(t, err)
	cloud := ""
	eventually(t, "the Service kubernetes", func() bool {
		s, err := core.Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		if err == nil {
			cloud = s.Spec.ClusterIP
		}
		return err == nil
	})

	kubelet, err := kubernetes.NewForConfig(b.kubelet("kubelet/v1.37", runtime.ContentTypeProtobuf))
	check(t, err)
	list, err := kubelet.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	check(t, err)
	for _, s := range list.Items {
		if s.Name == "kubernetes" && s.Spec.ClusterIP != cloud {
			t.Errorf("a kubelet whose pods may not trust the hub is told %s", s.Spec.ClusterIP)
		}
	}
	all := informers.NewSharedInformerFactory(kubelet, 0)
	lister := all.Core().V1().Services().Lister()
	inside, end := context.WithCancel(ctx)
	defer all.Shutdown()
	defer end()
	all.StartWithContext(inside)
	tells := func() string {
		s, err := lister.Services("default").Get("kubernetes")
		if err != nil {
			return err.Error()
		}
		return s.Spec.ClusterIP
	}
	eventually(t, "the kubelet to tell containers the hub's address", func() bool { return tells() == at })
	if s, err := core.Services("default").Get(ctx, "kubernetes", metav1.GetOptions{}); err != nil ||
		s.Spec.ClusterIP != cloud {
		t.Errorf("the cloud's own copy: %v, %v", s, err)
	}

	pod, token := b.bind("caller")
	var bundle *corev1.ConfigMap
	eventually(t, "the kubelet to read what its pod trusts", func() bool {
		bundle, err = kubelet.CoreV1().ConfigMaps("default").Get(ctx, rootsOfPods, metav1.GetOptions{})
		return err == nil
	})
	client := func(token string) kubernetes.Interface {
		c, err := kubernetes.NewForConfig(&rest.Config{ // as rest.InClusterConfig makes it
			Host: "https://" + net.JoinHostPort(at, "10268"), BearerToken: token, UserAgent: "kubelet/v1.37",
			TLSClientConfig: rest.TLSClientConfig{CAData: []byte(bundle.Data["ca.crt"])},
		})
		check(t, err)
		return c
	}
	own := client(token)
	eventually(t, "a pod to read through the hub", func() bool {
		_, err := own.CoreV1().Endpoints("default").List(ctx, metav1.ListOptions{})
		return err == nil
	})
	_, err = own.CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "by-the-pod"}}, metav1.CreateOptions{})
	check(t, err)
	if _, err := core.ConfigMaps("default").Get(ctx, "by-the-pod", metav1.GetOptions{}); err != nil {
		t.Errorf("what the pod wrote: %v", err)
	}
	if err := own.CoreV1().ConfigMaps("default").Delete(ctx, "by-the-pod", metav1.DeleteOptions{}); !apierrors.IsForbidden(
		err) {
		t.Errorf("the cloud forbids this, the hub says %v", err)
	}
	if s, err := own.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{}); err != nil ||
		s.Spec.ClusterIP != cloud {
		t.Errorf("who calls itself a kubelet sees %v, %v", s, err)
	}
	_, _ = client("forged").CoreV1().Endpoints("default").List(ctx, metav1.ListOptions{})
	eventually(t, "the hub to know who calls", func() bool {
		list, err := nodelocal.ReadCallers(filepath.Join(b.dir, "data", nodelocal.CallersFile))
		return err == nil && len(list) == 1 && list[0] == nodelocal.Pod{
			Namespace: "default", Name: "caller", UID: string(pod.UID),
		}
	})

	// whose tokens count later.
	_, err = kubelet.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + edge})
	check(t, err)
	b.written()
	b.cut()
	b.restart()
	list, err = kubelet.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	check(t, err)
	for _, s := range list.Items {
		if s.Name == "kubernetes" && (s.Spec.ClusterIP != at || s.Spec.Ports[0].Port != contract.HubSecurePort) {
			t.Errorf("after a kill, without the cloud, a kubelet is told %s:%d", s.Spec.ClusterIP, s.Spec.Ports[0].Port)
		}
	}
	eventually(t, "a pod to read without the cloud", func() bool {
		_, err := own.CoreV1().Endpoints("default").List(ctx, metav1.ListOptions{})
		return err == nil
	})
}
