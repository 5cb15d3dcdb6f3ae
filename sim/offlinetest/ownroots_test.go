package offlinetest

import (
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	rootsOfPods = "kube-root-ca.crt"
	proxyConfig = "kube-proxy"
	kubeconfig  = "clusters:\n- cluster: {certificate-authority: /x, server: 'https://192.0.2.1:6443'}\n  name: default\n"
)

// reaches reports whether a pod that trusts nothing but a bundle gets an answer of the hub.
func (b *bed) reaches(roots, token string) error {
	b.t.Helper()
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte(roots)}})
	check(b.t, err)
	tr := &http.Transport{TLSClientConfig: config}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+"/version", nil)
	check(b.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// TestOwnRoots: a pod that trusts nothing but the kube-root-ca.crt that its node's kubelet read through the hub reaches
// the hub, without a certificate that anybody made. With the bundle of the cloud it does not, and everybody but the
// node is shown that one. It is the same in JSON and protobuf, in watches, and after the hub was killed without the
// cloud.
func TestOwnRoots(t *testing.T) {
	b := newBed(t, nil)
	ctx, core := t.Context(), b.admin.CoreV1()
	for _, namespace := range []string{"default", "kube-system"} {
		eventually(t, "the namespace "+namespace, func() bool {
			_, err := core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			return err == nil
		})
	}
	original := string(b.cloud.CA().CertPEM())
	volumes := map[string][]string{"default": {rootsOfPods}, "kube-system": {rootsOfPods, proxyConfig}}
	for namespace, names := range volumes {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "pod"},
			Spec: corev1.PodSpec{
				NodeName: edge, AutomountServiceAccountToken: new(bool),
				Containers: []corev1.Container{{Name: "main", Image: "example.com/image:1"}},
			},
		}
		for _, name := range names {
			_, err := core.ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{
					"ca.crt": original, "kubeconfig.conf": kubeconfig,
				},
			}, metav1.CreateOptions{})
			check(t, err)
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
				Name: strings.ReplaceAll(name, ".", "-"), VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
				},
			})
		}
		_, err := core.ServiceAccounts(namespace).Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		check(t, err)
		_, err = core.Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		check(t, err)
	}
	token, err := b.cloud.ClientToken(ctx, "coredns")
	check(t, err)

	clients := map[string]kubernetes.Interface{}
	for _, media := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		clients[media], err = kubernetes.NewForConfig(b.kubelet("kubelet/v1.37", media))
		check(t, err)
	}
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + rootsOfPods}
	want := original + string(b.ca)
	reads := func(when string) {
		t.Helper()
		for media, client := range clients {
			maps := client.CoreV1().ConfigMaps("default")
			var list *corev1.ConfigMapList
			eventually(t, "kubelet to read "+rootsOfPods, func() bool {
				list, err = maps.List(ctx, one)
				return err == nil && len(list.Items) == 1
			})
			got, err := maps.Get(ctx, rootsOfPods, metav1.GetOptions{})
			check(t, err)
			for how, c := range map[string]*corev1.ConfigMap{"list": &list.Items[0], "get": got} {
				if c.Data["ca.crt"] != want {
					t.Errorf("%s, %s, %s: %q", when, media, how, c.Data["ca.crt"])
				}
				if err := b.reaches(c.Data["ca.crt"], token); err != nil {
					t.Errorf("%s, %s, %s: a pod does not reach its hub: %v", when, media, how, err)
				}
			}
		}
	}
	reads("at first")
	if err := b.reaches(original, token); !errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Errorf("a pod with the cloud's own bundle: %v", err)
	}
	stored, err := core.ConfigMaps("default").Get(ctx, rootsOfPods, metav1.GetOptions{})
	check(t, err)
	if stored.Data["ca.crt"] != original {
		t.Errorf("the cloud's copy: %q", stored.Data["ca.crt"])
	}

	other, err := b.cloud.ClientToken(ctx, "json-client")
	check(t, err)
	b.allow("configmaps")
	pod, err := kubernetes.NewForConfig(&rest.Config{
		Host: b.url, BearerToken: other, UserAgent: "kubelet/v1.37", TLSClientConfig: rest.TLSClientConfig{CAData: b.ca},
	})
	check(t, err)
	eventually(t, "another identity to read", func() bool {
		stored, err = pod.CoreV1().ConfigMaps("default").Get(ctx, rootsOfPods, metav1.GetOptions{})
		return err == nil
	})
	if stored.Data["ca.crt"] != original {
		t.Errorf("another identity: %q", stored.Data["ca.crt"])
	}

	proxy, err := clients[runtime.ContentTypeProtobuf].CoreV1().ConfigMaps("kube-system").Get(ctx, proxyConfig,
		metav1.GetOptions{})
	check(t, err)
	if text := proxy.Data["kubeconfig.conf"]; !strings.Contains(text, "server: "+b.url+"\n") ||
		strings.Contains(text, "192.0.2.1") {
		t.Errorf("kube-proxy's kubeconfig:\n%s", text)
	}

	watch, err := clients[runtime.ContentTypeProtobuf].CoreV1().ConfigMaps("default").Watch(ctx,
		metav1.ListOptions{FieldSelector: one.FieldSelector, ResourceVersion: stored.ResourceVersion})
	check(t, err)
	stored.Labels = map[string]string{"changed": "yes"}
	_, err = core.ConfigMaps("default").Update(ctx, stored, metav1.UpdateOptions{})
	check(t, err)
	if ev := <-watch.ResultChan(); ev.Type != "MODIFIED" || ev.Object.(*corev1.ConfigMap).Data["ca.crt"] != want ||
		ev.Object.(*corev1.ConfigMap).Labels["changed"] != "yes" {
		t.Errorf("watch: %+v", ev)
	}
	watch.Stop()

	reads("after a change")
	b.written()
	b.cut()
	reads("without the cloud")
	b.restart()
	reads("after a restart without the cloud")
	if n := b.metric("weir_hub_untouched_configmaps_total"); n > 0 {
		t.Errorf("%v ConfigMaps were left as they are", n)
	}
	b.heal()
	stored, err = core.ConfigMaps("default").Get(ctx, rootsOfPods, metav1.GetOptions{})
	check(t, err)
	stored.Data["ca.crt"] = "garbage"
	_, err = core.ConfigMaps("default").Update(ctx, stored, metav1.UpdateOptions{})
	check(t, err)
	eventually(t, "a bundle that is none to be passed as it is, and counted", func() bool {
		got, err := clients[runtime.ContentTypeJSON].CoreV1().ConfigMaps("default").Get(ctx, rootsOfPods, metav1.GetOptions{})
		return err == nil && got.Data["ca.crt"] == "garbage" &&
			b.metric("weir_hub_untouched_configmaps_total", "name", rootsOfPods) > 0
	})
}

// allow lets all service accounts read a resource.
func (b *bed) allow(resource string) {
	b.t.Helper()
	check(b.t, b.cloud.Apply(b.t.Context(), []byte(strings.ReplaceAll(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: readers}
rules: [{apiGroups: [""], resources: [RESOURCE], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: readers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts"}]
`, "RESOURCE", resource))))
}
