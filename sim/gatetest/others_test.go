package gatetest

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/testkit"
)

// hidden stands in all that nobody may read here.
const hidden = "hunter2"

// testOthers: what is not shared by pools is not there, for nobody.
func testOthers(t *testing.T, w *world) {
	ns := "a"
	_, err := w.kube.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"l": hidden}},
		StringData: map[string]string{"k": hidden},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = w.kube.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"l": hidden}},
		Data:       map[string]string{"k": hidden},
	}, metav1.CreateOptions{})
	check(t, err)
	for who, c := range w.all() {
		for _, path := range []string{
			"/api/v1/secrets", "/api/v1/namespaces/a/secrets", "/api/v1/namespaces/a/secrets/x", "/api/v1/secrets?watch=1",
			"/api/v1/watch/secrets", "/api/v1/namespaces/a/secrets/x/", "//api/v1/secrets", "/api/v1/./secrets",
			"/api/v1/configmaps", "/api/v1/namespaces/a/configmaps/x", "/api/v1/namespaces/a/pods",
			"/api/v1/namespaces/kube-system/serviceaccounts", "/apis/coordination.k8s.io/v1/leases",
			"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", "/api/v1/events",
			"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			"/api/v1/namespaces/a/services/x/proxy/", "/api/v1/nodes/x/proxy/pods", "/api/v1/nodes/x/status",
			"/apis/discovery.k8s.io/v1beta1/endpointslices",
			"/api", "/apis", "/api/v1", "/apis/discovery.k8s.io/v1", "/openapi/v2", "/openapi/v3", "/", "/index.html",
			"/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/debug/flags/v", "/configz", "/logs/", "/metrics/slis",
			"/.well-known/openid-configuration", "/openid/v1/jwks",
		} {
			code, text := c.ask(http.MethodGet, path, "")
			if code != http.StatusNotFound && code != http.StatusForbidden && code != http.StatusUnauthorized &&
				code != http.StatusMovedPermanently || strings.Contains(text, hidden) || strings.Contains(text, "goroutine ") {
				t.Errorf("%s: %s: %d: %.200s", who, path, code, text)
			}
		}
	}
}

// testWrites: nobody writes here, whatever he may write at kube-apiserver.
func testWrites(t *testing.T, w *world) {
	before, err := w.kube.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
	check(t, err)
	const one = "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/s-0"
	for who, c := range w.all() {
		for _, try := range []struct{ method, path, body string }{
			{
				"POST", "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices",
				`{"metadata":{"name":"z"},"addressType":"IPv4","endpoints":[]}`,
			},
			{"PUT", one, `{"metadata":{"name":"s-0"},"addressType":"IPv4","endpoints":[]}`},
			{"PATCH", one, `{"metadata":{"labels":{"a":"b"}}}`}, {"DELETE", one, ""}, {"DELETE", slicesAt, ""},
			{"POST", "/api/v1/namespaces", `{"metadata":{"name":"z"}}`},
			{"POST", "/api/v1/namespaces/a/secrets", `{"metadata":{"name":"z"}}`},
			{"PUT", "/api/v1/nodes/x/status", `{}`}, {"POST", "/api/v1/namespaces/a/services/x/proxy", ""},
			{"HEAD", slicesAt, ""}, {"OPTIONS", slicesAt, ""}, {"CONNECT", slicesAt, ""}, {"BREW", slicesAt, ""},
			{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", `{}`},
			{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{}`},
			{"POST", "/healthz", ""}, {"DELETE", "/metrics", ""},
		} {
			code, text, err := c.try(try.method, try.path, try.body)
			if err != nil && try.method == "CONNECT" {
				continue
			}
			own := try.path == "/healthz" || try.path == "/metrics"
			if err != nil || code < 400 && !own || code >= 500 && try.method != "CONNECT" {
				t.Errorf("%s: %s %s: %d, %v: %.200s", who, try.method, try.path, code, err, text)
			}
		}
	}
	after, err := w.kube.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
	check(t, err)
	if !reflect.DeepEqual(before.Items, after.Items) {
		t.Error("something was written")
	}
	if _, err := w.kube.CoreV1().Namespaces().Get(t.Context(), "z", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a namespace was made: %v", err)
	}
}

// testOwn: health is for all, and what the gate says of itself for those whom the cluster lets see metrics.
func testOwn(t *testing.T, w *world) {
	hub, nobody, admin := w.hub(), w.caller(nil, ""), w.admin()
	for _, path := range []string{"/healthz", "/readyz", "/livez"} {
		for _, c := range []*caller{hub, nobody, admin} {
			if code, text := c.ask(http.MethodGet, path, ""); code != http.StatusOK || text != "ok" {
				t.Errorf("%s: %d: %.200s", path, code, text)
			}
		}
	}
	for who, c := range map[string]*caller{"the hub": hub, "nobody": nobody} {
		for _, path := range []string{"/metrics", "/metrics/", "/metrics?a=b"} {
			if code, text := c.ask(http.MethodGet, path, ""); code != http.StatusForbidden && code != http.StatusUnauthorized ||
				strings.Contains(text, "weir_") {
				t.Errorf("%s: %s: %d", who, path, code)
			}
		}
	}
	_, err := w.kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = w.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "scraper"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "scraper"}},
	}, metav1.CreateOptions{})
	check(t, err)
	scraper := w.user("scraper")
	testkit.Until(t, patience, "the grant to count", func() bool {
		code, _, err := scraper.sent(http.MethodGet, w.cloud.URL()+"/metrics", "")
		return err == nil && code == http.StatusOK
	})
	if got := scraper.metric(t, `weir_gate_lists_total{resource="`+slices+`"}`); got != "1" {
		t.Errorf("slices were listed %q times for all who have read them", got)
	}
	if code, _ := scraper.ask(http.MethodGet, slicesAt, ""); code != http.StatusForbidden {
		t.Errorf("who may see metrics reads slices: %d", code)
	}
}
