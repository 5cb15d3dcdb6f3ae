package coordinator

import (
	"net/http"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/weir-edge/weir/impl/relay"
)

var readVerbs = []string{"get", "list", "watch"}

// advertise lists the relayed resources in discovery, in its old and its aggregated form, beside what the generic server
// lists by itself.
func advertise(s *genericapiserver.GenericAPIServer, resources []relay.Resource, addresses discovery.Addresses) {
	groups := map[string]map[string][]relay.Resource{"": {"v1": nil}} // clients expect /api/v1 wherever there is an API
	for _, r := range resources {
		if groups[r.Group] == nil {
			groups[r.Group] = map[string][]relay.Resource{}
		}
		groups[r.Group][r.Version] = append(groups[r.Group][r.Version], r)
	}
	mux := s.Handler.NonGoRestfulMux
	for group, versions := range groups {
		manager, root := s.AggregatedDiscoveryGroupManager, "/apis/"+group
		if group == "" {
			manager, root = s.AggregatedLegacyDiscoveryGroupManager, "/api"
		}
		about := metav1.APIGroup{Name: group}
		for v, rs := range versions {
			gv := schema.GroupVersion{Group: group, Version: v}
			manager.AddGroupVersion(group, aggregatedVersion(gv, rs))
			about.Versions = append(about.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v})
			lister := discovery.APIResourceListerFunc(func() []metav1.APIResource { return apiResources(rs) })
			serveBoth(mux, root+"/"+v, discovery.NewAPIVersionHandler(s.Serializer, gv, lister))
		}
		if group == "" {
			old := discovery.NewLegacyRootAPIHandler(addresses, s.Serializer, "/api")
			serveBoth(mux, root, aggregated.WrapAggregatedDiscoveryToHandler(old, s.AggregatedLegacyDiscoveryGroupManager, nil))
			continue
		}
		slices.SortFunc(about.Versions, func(a, b metav1.GroupVersionForDiscovery) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		about.PreferredVersion = about.Versions[0]
		s.DiscoveryGroupManager.AddGroup(about)
		serveBoth(mux, root, discovery.NewAPIGroupHandler(s.Serializer, about))
	}
}

// serveBoth serves a path with and without the slash at its end.
func serveBoth(mux interface{ Handle(string, http.Handler) }, path string, h http.Handler) {
	mux.Handle(path, h)
	mux.Handle(path+"/", h)
}

func apiResources(rs []relay.Resource) []metav1.APIResource {
	all := make([]metav1.APIResource, 0, len(rs))
	for _, r := range rs {
		all = append(all, metav1.APIResource{
			Name: r.Resource, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: readVerbs, ShortNames: r.ShortNames,
		})
	}
	return all
}

func aggregatedVersion(gv schema.GroupVersion, rs []relay.Resource) apidiscoveryv2.APIVersionDiscovery {
	d := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, r := range rs {
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		d.Resources = append(d.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: r.Resource, SingularResource: r.Singular, Scope: scope, Verbs: readVerbs, ShortNames: r.ShortNames,
			ResponseKind: &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind},
		})
	}
	return d
}
