package offlinetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/sim/parts"
)

const thingCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"%[1]ss.example.com"},"spec":{
"group":"example.com","scope":"Namespaced",
"names":{"plural":"%[1]ss","singular":"%[1]s","kind":"%[2]s","listKind":"%[2]sCollection"},
"versions":[{"name":"v1","served":true,
"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`

// TestListKinds: lists of custom resources are what their definitions call them, whether a relay answers or the cloud,
// and what was kept does without the cloud.
func TestListKinds(t *testing.T) {
	b := newBed(t, parts.Flags{"pool-scope-resources": []string{"endpoints.v1.", "+widgets.v1.example.com=Widget"}})
	api := b.admin.Discovery().RESTClient()
	for plural, kind := range map[string]string{"widget": "Widget", "gadget": "Gadget"} {
		check(t, api.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").Body(
			fmt.Appendf(nil, thingCRD, plural, kind)).
			SetHeader("Content-Type", "application/json").Do(t.Context()).Error())
		object := fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":%q,"metadata":{"name":"one"},"spec":{}}`, kind)
		eventually(t, "the cloud to serve "+plural, func() bool {
			return api.Post().AbsPath("/apis/example.com/v1/namespaces/default/"+plural+"s").Body(object).SetHeader(
				"Content-Type", "application/json").Do(t.Context()).Error() == nil
		})
	}
	reads := []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"example.com"}, Resources: []string{"*"}},
	}
	_, err := b.admin.RbacV1().ClusterRoles().Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "things"}, Rules: reads}, metav1.CreateOptions{})
	check(t, err)
	everybody := []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"}}
	_, err = b.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "things"}, Subjects: everybody,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "things"},
	}, metav1.CreateOptions{})
	check(t, err)
	client := b.httpClient()
	says := func(plural string) (kind string, names []string, code int) {
		resp, err := client.Get(b.url + "/apis/example.com/v1/" + plural)
		check(t, err)
		body, err := io.ReadAll(resp.Body)
		check(t, err)
		check(t, resp.Body.Close())
		var list struct {
			Kind  string
			Items []struct {
				Kind     string
				Metadata struct{ Name string }
			}
		}
		if resp.StatusCode == http.StatusOK {
			check(t, json.Unmarshal(body, &list))
		}
		for _, i := range list.Items {
			names = append(names, i.Kind+" "+i.Metadata.Name)
		}
		return list.Kind, names, resp.StatusCode
	}
	wants := func(when string) {
		t.Helper()
		for plural, kind := range map[string]string{"widgets": "Widget", "gadgets": "Gadget"} {
			if got, names, code := says(plural); got != kind+"Collection" || !slices.Equal(names, []string{kind + " one"}) {
				t.Errorf("%s, a list of %s is %d, a %s of %v", when, plural, code, got, names)
			}
		}
	}
	eventually(t, "a relay of widgets", func() bool {
		_, names, code := says("widgets")
		return code == http.StatusOK && len(names) == 1 &&
			b.metric("weir_relay_objects", `resource="widgets.v1.example.com"`) == 1
	})
	wants("with the cloud")
	b.written()
	eventually(t, "the relay to be on the disk", func() bool {
		return b.metric("weir_snapshot_resource_version", `resource="widgets.v1.example.com"`) > 0
	})
	b.cut()
	wants("without the cloud")
	b.restart()
	wants("after a restart without the cloud")
}
