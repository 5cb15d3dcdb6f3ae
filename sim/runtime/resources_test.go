package runtime

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"

	"github.com/weir-edge/weir/sim/parts"
)

var (
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	roleBindings = schema.GroupVersionResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings",
	}
)

// object makes an object of what YAML would say.
func object(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	maps.Copy(o, more)
	return &unstructured.Unstructured{Object: o}
}

// custom is a cloud with a custom resource that comes and goes.
type custom struct {
	t     *testing.T
	admin dynamic.Interface
}

func newCustom(t *testing.T, site Site) *custom {
	t.Helper()
	c := &custom{t: t}
	var err error
	if c.admin, err = dynamic.NewForConfig(site.Admin()); err != nil {
		t.Fatal(err)
	}
	c.create(clusterRoles, object("rbac.authorization.k8s.io/v1", "ClusterRole", "widgets", map[string]any{
		"rules": []any{
			map[string]any{
				"apiGroups": []any{"example.com"}, "resources": []any{"widgets"}, "verbs": []any{"get", "list", "watch"},
			},
		},
	}))
	c.create(roleBindings, object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "widgets", map[string]any{
		"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "widgets"},
		"subjects": []any{
			map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"},
		},
	}))
	return c
}

func (c *custom) create(r schema.GroupVersionResource, o *unstructured.Unstructured) {
	c.t.Helper()
	if _, err := c.admin.Resource(r).Create(c.t.Context(), o, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// define installs the resource and waits until the cloud serves it.
func (c *custom) define() {
	c.t.Helper()
	c.create(definitions, object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com",
		map[string]any{"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		}}))
	wait(c.t, "the cloud to serve widgets", func() bool { _, err := c.names(); return err == nil })
}

// remove deletes the resource with all its objects.
func (c *custom) remove() {
	c.t.Helper()
	if err := c.admin.Resource(definitions).Delete(c.t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err !=
		nil {
		c.t.Fatal(err)
	}
	wait(c.t, "the cloud to forget widgets", func() bool { _, err := c.names(); return apierrors.IsNotFound(err) })
	wait(c.t, "the definition to be gone", func() bool {
		_, err := c.admin.Resource(definitions).Get(c.t.Context(), "widgets.example.com", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func (c *custom) names() (map[string]string, error) { return namesOf(c.t.Context(), c.admin) }

// namesOf lists widgets: UID and version by name.
func namesOf(ctx context.Context, client dynamic.Interface) (map[string]string, error) {
	list, err := client.Resource(widgets).Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, o := range list.Items {
		names[o.GetName()] = string(o.GetUID()) + " " + o.GetResourceVersion()
	}
	return names, nil
}

// load writes widgets until it is stopped; while there are none it tries again.
func (c *custom) load() (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		client := c.admin.Resource(widgets).Namespace("default")
		tick := time.NewTicker(30 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			o := object("example.com/v1", "Widget", fmt.Sprintf("w%d", n%20),
				map[string]any{"spec": map[string]any{"n": int64(n)}})
			switch n % 3 {
			case 0, 1:
				_, _ = client.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "load", Force: true})
			default:
				_ = client.Delete(ctx, fmt.Sprintf("w%d", (n+7)%20), metav1.DeleteOptions{})
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// hubState is what the test reads of a hub.
type hubState struct {
	Role      string
	Resources []struct {
		Resource, Source, Denied string
		Synced                   bool
	}
}

// TestCustomResourceComesAndGoes: a custom resource in pool scope is not there when the pool starts, is installed,
// deleted and created again while it is written. The pool never loses its readiness for the others. Each hub answers as
// the cloud does, and an informer behind a follower ends with what the cloud has.
func TestCustomResourceComesAndGoes(t *testing.T) {
	t.Parallel()
	resources := []string{"+endpoints.v1.", "+endpointslices.v1.discovery.k8s.io", "+widgets.v1.example.com=Widget"}
	site := up(t, Topology{Pools: []Pool{{
		Name: "edge", Nodes: 3, Mode: Weir, Uplink: Link{Up: 8_000_000, Down: 8_000_000, RTT: 20 * time.Millisecond},
		LAN:                &Link{RTT: time.Millisecond},
		PoolScopeResources: resources, HubFlags: parts.Flags{"failover-grace-period": "5s"},
	}}})
	cloud := newCustom(t, site)
	if err := Start(t.Context(), site, site.Parts()[1:]...); err != nil {
		t.Fatal(err)
	}
	nodes := []string{"edge-1", "edge-2", "edge-3"}
	clients := map[string]dynamic.Interface{}
	for _, n := range nodes {
		clients[n] = dynamicOf(t, site, n)
	}
	// fed reports whether each follower's relays are fed by the coordinator; widgets only if they are there.
	fed := func(there bool) func() bool {
		return func() bool {
			for _, n := range nodes {
				p, err := site.Part(HubOf(n))
				if err != nil {
					t.Fatal(err)
				}
				var st hubState
				if p.Status(t.Context(), &st) != nil {
					return false
				}
				for _, r := range st.Resources {
					widget := r.Resource == "widgets.v1.example.com"
					if widget && (r.Denied == "") != there || !r.Synced && r.Denied == "" ||
						st.Role != "Leader" && r.Source != "coordinator" && (!widget || there) {
						return false
					}
				}
			}
			return stateOf(t, site).Ready
		}
	}
	missing := func() bool {
		for _, n := range nodes {
			if _, err := namesOf(t.Context(), clients[n]); !apierrors.IsNotFound(err) {
				return false
			}
		}
		return true
	}
	same := func() bool {
		want, err := cloud.names()
		for _, n := range nodes {
			got, errHub := namesOf(t.Context(), clients[n])
			if err != nil || errHub != nil || !maps.Equal(got, want) {
				return false
			}
		}
		return true
	}
	took := func(what string, ok func() bool) {
		t.Helper()
		began := time.Now()
		wait(t, what, ok)
		t.Logf("%s: after %v", what, time.Since(began).Round(time.Millisecond))
	}
	took("a pool that is ready without widgets", fed(false))
	term := stateOf(t, site).Term
	took("404 at each hub", missing)
	follower := fedByPool(t, site)
	events := watchSlices(t, site, follower)
	informer := dynamicinformer.NewDynamicSharedInformerFactory(clients[follower], 0).ForResource(widgets).Informer()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go informer.Run(ctx.Done())

	for range 2 {
		cloud.define()
		took("what the cloud has at each hub, before it is written", same)
		stop := cloud.load()
		took("widgets to be fed by the pool", fed(true))
		stop()
		took("what the cloud has at each hub", same)
		stop = cloud.load()
		cloud.remove()
		took("404 at each hub, the resource deleted", missing)
		took("a pool that is ready without widgets", fed(false))
		stop()
	}
	cloud.define()
	stop := cloud.load()
	took("widgets to be fed by the pool again", fed(true))
	stop()
	took("what the cloud has at each hub", same)
	took("the informer to have what the cloud has", func() bool {
		want, err := cloud.names()
		got := map[string]string{}
		for _, o := range informer.GetStore().List() {
			if w, ok := o.(*unstructured.Unstructured); ok {
				got[w.GetName()] = string(w.GetUID()) + " " + w.GetResourceVersion()
			}
		}
		return err == nil && informer.HasSynced() && maps.Equal(got, want)
	})
	for open := true; open; {
		select {
		case ev, ok := <-events:
			if !ok {
				t.Errorf("the watch of EndpointSlices ended: %v", ev)
				open = false
			}
		default:
			open = false
		}
	}
	if now := stateOf(t, site).Term; now != term {
		t.Errorf("the leader changed for want of a custom resource: term %s, was %s", now, term)
	}
}

// dynamicOf connects as a component of a node.
func dynamicOf(t *testing.T, s Site, nodeName string) dynamic.Interface {
	t.Helper()
	endpoint, err := s.Endpoint(nodeName, "kube-proxy")
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.Token(t.Context(), "kube-proxy")
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(endpoint.RESTConfig(token))
	if err != nil {
		t.Fatal(err)
	}
	return client
}
