package coordinator

import (
	"net/http"
	"slices"
	"sync"

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

// Catalog lists the relayed resources in discovery, in its old and its aggregated form. It follows the relays that
// there are.
type Catalog struct {
	Relays func() []*relay.Relay

	mu        sync.Mutex
	server    *genericapiserver.GenericAPIServer // nil: there is none yet
	addresses discovery.Addresses
	served    map[string]bool // paths
	listed    map[schema.GroupVersion]bool
}

// Open lists what there is at a server.
func (c *Catalog) Open(s *genericapiserver.GenericAPIServer, addresses discovery.Addresses) {
	c.mu.Lock()
	c.server, c.addresses, c.served, c.listed = s, addresses, map[string]bool{}, map[schema.GroupVersion]bool{}
	c.mu.Unlock()
	c.Update()
}

// groups are the resources by group and version.
func (c *Catalog) groups() map[string]map[string][]relay.Resource {
	groups := map[string]map[string][]relay.Resource{"": {"v1": nil}} // clients expect /api/v1 wherever there is an API
	for _, held := range c.Relays() {
		r := held.Resource()
		if groups[r.Group] == nil {
			groups[r.Group] = map[string][]relay.Resource{}
		}
		groups[r.Group][r.Version] = append(groups[r.Group][r.Version], r)
	}
	return groups
}

// Update lists what there is now.
func (c *Catalog) Update() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return
	}
	groups := c.groups()
	for gv := range c.listed {
		if _, still := groups[gv.Group][gv.Version]; !still {
			delete(c.listed, gv)
			c.server.AggregatedDiscoveryGroupManager.RemoveGroupVersion(metav1.GroupVersion{
				Group: gv.Group, Version: gv.Version,
			})
			if groups[gv.Group] == nil {
				c.server.DiscoveryGroupManager.RemoveGroup(gv.Group)
			}
		}
	}
	for group, versions := range groups {
		manager, root := c.server.AggregatedDiscoveryGroupManager, "/apis/"+group
		if group == "" {
			manager, root = c.server.AggregatedLegacyDiscoveryGroupManager, "/api"
		} else {
			c.server.DiscoveryGroupManager.AddGroup(about(group, versions))
		}
		for v, rs := range versions {
			gv := schema.GroupVersion{Group: group, Version: v}
			manager.AddGroupVersion(group, aggregatedVersion(gv, rs))
			c.listed[gv] = true
			c.serve(root+"/"+v, c.version(gv))
		}
		if group == "" {
			old := discovery.NewLegacyRootAPIHandler(c.addresses, c.server.Serializer, "/api")
			c.serve(root, aggregated.WrapAggregatedDiscoveryToHandler(old, manager, nil))
			continue
		}
		c.serve(root, c.group(group))
	}
}

// serve serves a path with and without the slash at its end, once; c.mu is held.
func (c *Catalog) serve(path string, h http.Handler) {
	if !c.served[path] {
		c.served[path] = true
		serveBoth(c.server.Handler.NonGoRestfulMux, path, h)
	}
}

// version shows one version of a group.
func (c *Catalog) version(gv schema.GroupVersion) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		rs, there := c.groups()[gv.Group][gv.Version]
		if !there {
			http.NotFound(w, req)
			return
		}
		lister := discovery.APIResourceListerFunc(func() []metav1.APIResource { return apiResources(rs) })
		discovery.NewAPIVersionHandler(c.server.Serializer, gv, lister).ServeHTTP(w, req)
	})
}

// group shows a group.
func (c *Catalog) group(group string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		versions := c.groups()[group]
		if versions == nil {
			http.NotFound(w, req)
			return
		}
		discovery.NewAPIGroupHandler(c.server.Serializer, about(group, versions)).ServeHTTP(w, req)
	})
}

// about tells the versions of a group, the one to prefer first.
func about(group string, versions map[string][]relay.Resource) metav1.APIGroup {
	g := metav1.APIGroup{Name: group}
	for v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: schema.GroupVersion{Group: group, Version: v}.String(), Version: v,
		})
	}
	slices.SortFunc(g.Versions, func(a, b metav1.GroupVersionForDiscovery) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	g.PreferredVersion = g.Versions[0]
	return g
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
			Name: r.Resource, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: readVerbs,
			ShortNames: r.ShortNames,
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
