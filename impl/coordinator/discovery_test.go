package coordinator_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
)

func TestDiscovery(t *testing.T) {
	p := newPool(t)
	p.config.PoolScopeResources = []string{
		"endpoints.v1.", "services.v1.", "endpointslices.v1.discovery.k8s.io", "widgets.v1.example.com=Widget",
		"zones.v1.example.com=Zone!",
	}
	viewer := p.start().viewer()
	for name, legacy := range map[string]bool{"aggregated": false, "legacy": true} {
		t.Run(name, func(t *testing.T) {
			client, err := discovery.NewDiscoveryClientForConfig(viewer.config)
			check(t, err)
			client.UseLegacyDiscovery = legacy
			_, lists, err := client.ServerGroupsAndResources()
			check(t, err)
			got := map[string]metav1.APIResource{}
			for _, l := range lists {
				for _, r := range l.APIResources {
					got[l.GroupVersion+" "+r.Name] = r
				}
			}
			readOnly := []string{"get", "list", "watch"}
			for name, want := range map[string]struct {
				kind       string
				verbs      []string
				namespaced bool
			}{
				"v1 endpoints":                       {"Endpoints", readOnly, true},
				"v1 services":                        {"Service", readOnly, true},
				"discovery.k8s.io/v1 endpointslices": {"EndpointSlice", readOnly, true},
				"example.com/v1 widgets":             {"Widget", readOnly, true},
				"example.com/v1 zones":               {"Zone", readOnly, false},
				"coordination.k8s.io/v1 leases": {
					"Lease", []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}, true,
				},
			} {
				r, ok := got[name]
				slices.Sort(r.Verbs)
				if !ok || r.Kind != want.kind || r.Namespaced != want.namespaced || !slices.Equal(r.Verbs, want.verbs) {
					t.Errorf("%s: %+v, want %+v", name, r, want)
				}
			}
			if len(got) != 6 {
				t.Errorf("%d resources: %v", len(got), got)
			}
		})
	}
	t.Run("groups by path", func(t *testing.T) {
		for path, want := range map[string]string{
			"/api": `"versions":["v1"]`, "/api/v1": `"name":"services"`, "/apis": `"name":"example.com"`,
			"/apis/example.com": `"groupVersion":"example.com/v1"`, "/apis/example.com/v1": `"singularName":"widget"`,
			"/apis/coordination.k8s.io": "APIGroup", "/apis/coordination.k8s.io/v1": `"name":"leases"`,
		} {
			if answer := viewer.want(http.StatusOK, http.MethodGet, path, ""); !strings.Contains(answer, want) {
				t.Errorf("%s: %s has no %s", path, answer, want)
			}
		}
	})
	t.Run("version", func(t *testing.T) {
		client, err := discovery.NewDiscoveryClientForConfig(viewer.config)
		check(t, err)
		info, err := client.ServerVersion()
		check(t, err)
		if v, err := version.ParseSemantic(info.GitVersion); err != nil || v.Major() != 1 || v.Minor() != 37 {
			t.Errorf("%+v: %v", info, err)
		}
	})
	t.Run("OpenAPI", func(t *testing.T) {
		if v3 := viewer.want(http.StatusOK, http.MethodGet, "/openapi/v3/apis/coordination.k8s.io/v1", ""); !strings.Contains(
			v3, "io.k8s.api.coordination.v1.LeaseSpec") {
			t.Errorf("no LeaseSpec in %d bytes", len(v3))
		}
	})
}
