package gatetest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/testca"
)

// testStrangers: who has no grant reads nothing, however he says who he is.
func testStrangers(t *testing.T, w *world) {
	other, err := testca.NewAuthority("another")
	check(t, err)
	masters := []string{"system:masters"}
	forged, err := other.Issue(testca.Request{CommonName: "weir:hub:harbour:edge-1", Organizations: masters, Client: true})
	check(t, err)
	ended, err := w.cloud.HubCertificate("harbour", "edge-1", -time.Minute)
	check(t, err)
	server, err := w.cloud.CA().Issue(testca.Request{CommonName: "weir:hub:harbour:edge-1", Hosts: []string{"127.0.0.1"}})
	check(t, err)
	kubelet, err := w.cloud.KubeletCertificate("edge-1", 0)
	check(t, err)
	flannel, err := w.cloud.ClientToken(t.Context(), "flannel")
	check(t, err)
	proxy, err := w.cloud.ClientToken(t.Context(), "kube-proxy")
	check(t, err)
	asked := func(c *caller, headers ...string) *caller {
		for i := 0; i < len(headers); i += 2 {
			c.header.Set(headers[i], headers[i+1])
		}
		return c
	}
	front := []string{
		"X-Remote-User", "weir:hub:harbour:edge-1", "X-Remote-Group", "system:masters", "X-Remote-Uid", "1",
		"X-Remote-Extra-Scopes", "all",
	}
	as := []string{"Impersonate-User", "weir:hub:harbour:edge-1", "Impersonate-Group", "system:authenticated"}
	for _, c := range []struct {
		who  string
		as   *caller
		want []int
	}{
		{"the hub", w.hub(), []int{200}},
		{"an administrator", w.admin(), []int{200}},
		{"kube-proxy, by its token", w.caller(nil, proxy), []int{200}},
		{"another user of the cluster", w.user("somebody"), []int{403}},
		{"a hub of another pool", w.user("weir:hub:quay:edge-1"), []int{403}},
		{"a hub of another node", w.user("weir:hub:harbour:edge-2"), []int{403}},
		{"a name with more behind it", w.user("weir:hub:harbour:edge-1 "), []int{403}},
		{"the node", w.caller(kubelet, ""), []int{403}},
		{"flannel, by its token", w.caller(nil, flannel), []int{403}},
		{"nobody", w.caller(nil, ""), []int{401, 403}},
		{"a token that nobody gave", w.caller(nil, "secret"), []int{401}},
		{"a token that was changed", w.caller(nil, proxy[:len(proxy)-4]+"AAAA"), []int{401}},
		{"who signs himself", w.caller(forged, ""), []int{401, 403}},
		{"whose time is over", w.caller(ended, ""), []int{401}},
		{"a server", w.caller(server, ""), []int{401}},
		{"headers of a proxy, and nobody", asked(w.caller(nil, ""), front...), []int{401, 403}},
		{"headers of a proxy, which signs itself", asked(w.caller(forged, ""), front...), []int{401, 403}},
		{"headers of a proxy, and a user", asked(w.user("front-proxy-client"), front...), []int{403}},
		{"in the name of a hub, as nobody", asked(w.caller(nil, ""), as...), []int{401, 403}},
		{"in the name of a hub, as a user", asked(w.user("somebody"), as...), []int{403}},
		{"in the name of an administrator, as a hub", asked(w.hub(), "Impersonate-User", "a", "Impersonate-Group",
			"system:masters"), []int{403}},
	} {
		for _, path := range []string{
			slicesAt, slicesAt + "?watch=1&timeoutSeconds=1", slicesAt + "/",
			"/apis/discovery.k8s.io/v1/namespaces/a/endpointslices",
		} {
			code, text, err := c.as.try(http.MethodGet, path, "")
			ok := false
			for _, want := range c.want {
				ok = ok || code == want || want == 200 && code == 404 && strings.HasSuffix(path, "/")
			}
			if err != nil && c.want[0] != 200 { // a handshake that is refused is an answer
				continue
			}
			if err != nil || !ok || code != 200 && strings.Contains(text, "10.1.") {
				t.Errorf("%s: %s: %d, %v, want %v: %.200s", c.who, path, code, err, c.want, text)
			}
		}
	}
}

// testNamespaces: whoever may read a part is shown that part, and is answered as at kube-apiserver whatever he writes
// into the address: both must read a request alike.
func testNamespaces(t *testing.T, w *world) {
	rbac := w.kube.RbacV1()
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"},
	}}
	named := []rbacv1.PolicyRule{{
		APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, ResourceNames: []string{"s-1"},
		Verbs: []string{"get", "list", "watch"},
	}}
	for name, r := range map[string]struct {
		namespace string
		rules     []rbacv1.PolicyRule
	}{"of-a": {"a", rules}, "of-one": {"b", named}} {
		_, err := rbac.Roles(r.namespace).Create(t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: r.rules,
		}, metav1.CreateOptions{})
		check(t, err)
		_, err = rbac.RoleBindings(r.namespace).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		}, metav1.CreateOptions{})
		check(t, err)
	}
	const in = "/apis/discovery.k8s.io/v1/namespaces/"
	ofA, ofOne := w.user("of-a"), w.user("of-one")
	testkit.Until(t, patience, "the grants to count", func() bool {
		a, _, errA := ofA.sent(http.MethodGet, w.cloud.URL()+in+"a/endpointslices", "")
		b, _, errB := ofOne.sent(http.MethodGet, w.cloud.URL()+in+"b/endpointslices/s-1", "")
		return errA == nil && errB == nil && a == 200 && b == 200
	})
	for who, c := range map[string]*caller{"of a": ofA, "of one": ofOne} {
		seen := 0
		for _, path := range []string{
			in + "a/endpointslices", in + "b/endpointslices", slicesAt, in + "a/endpointslices/s-1", in + "b/endpointslices/s-1",
			in + "b/endpointslices/s-2",
			in + "b/endpointslices?fieldSelector=metadata.name%3Ds-1", in + "b/endpointslices?fieldSelector=metadata.name%3Ds-2",
			in + "b/endpointslices?fieldSelector=metadata.name%3Ds-1&fieldSelector=metadata.name%3Ds-2",
			in + "b/endpointslices?fieldSelector=metadata.name%3Ds-2&fieldSelector=metadata.name%3Ds-1",
			in + "b/endpointslices?fieldSelector=metadata.name%3Ds-1&fieldSelector=",
			in + "b/endpointslices?fieldSelector=&fieldSelector=metadata.name%3Ds-1",
			in + "b/endpointslices?fieldSelector=metadata.name%3Ds-1;x=y",
			in + "b/endpointslices?fieldSelector=metadata.name%3Ds-1%2Cmetadata.namespace%3Da",
			in + "b/endpointslices?fieldSelector=metadata.name!%3Ds-1",
			slicesAt + "?fieldSelector=metadata.name%3Ds-1", slicesAt + "?fieldSelector=metadata.namespace%3Da",
			in + "b/endpointslices/s-1?watch=1&timeoutSeconds=1",
			in + "b/endpointslices?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Ds-1",
			in + "b/endpointslices?watch=0&watch=1&timeoutSeconds=1", in + "b/endpointslices?watch=x",
			in + "a%2F..%2Fb/endpointslices", in + "a/../b/endpointslices", in + "a//endpointslices", in + "/endpointslices",
			in + "a%2Fendpointslices", in + "a/endpointslices%2F..%2F..%2Fb%2Fendpointslices", in + "a/endpointslices/",
			"/apis/discovery.k8s.io/v1//endpointslices", "//apis/discovery.k8s.io/v1/endpointslices",
			in + "b/endpointslices/s-1/", in + "b/endpointslices/s-1/..", in + "b/endpointslices/s-1%2F..",
			in + "b/endpointslices/%2E",
			"/apis/discovery.k8s.io/v1/watch/namespaces/a/endpointslices?timeoutSeconds=1",
			"/apis/discovery.k8s.io/v1/watch/endpointslices?timeoutSeconds=1",
			in + "a/endpointslices?resourceVersion=0", in + "a/endpointslices?resourceVersion=x",
			in + "a/endpointslices?limit=1", in + "a/endpointslices?continue=x", in + "a/endpointslices?pretty=1",
			in + "%61/endpointslices", in + "A/endpointslices",
		} {
			want, _, err := c.sent(http.MethodGet, w.cloud.URL()+path, "")
			check(t, err)
			got, text, err := c.try(http.MethodGet, path, "")
			check(t, err)
			if got == http.StatusOK {
				seen++
			}
			if got != want && (got != http.StatusNotFound || !strings.Contains(path, "/v1/watch/")) {
				t.Errorf("%s: %s: %d, and %d at kube-apiserver", who, path, got, want)
			}
			for part, may := range map[string]bool{
				`"namespace":"a"`: who == "of a", `"namespace":"b"`: who == "of one", `"name":"s-0"`: who == "of a",
				`"name":"s-2"`: who == "of a",
			} {
				if !may && strings.Contains(strings.ReplaceAll(text, `": "`, `":"`), part) && got == http.StatusOK {
					t.Errorf("%s: %s: shown %s", who, path, part)
				}
			}
		}
		if seen < 3 {
			t.Errorf("%s: %d answers with 200: this shows nothing", who, seen)
		}
	}
}
