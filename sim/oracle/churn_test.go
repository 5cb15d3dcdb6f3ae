package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// subject is a resource that is asked for, and what its objects are made of.
type subject struct {
	Resource
	relay    string // as relay.ParseResource reads it
	gvr      schema.GroupVersionResource
	kind     string
	requests int                                                         // generated requests
	body     func(rnd *rand.Rand, i int, ns, name string) map[string]any // beside metadata
}

// namespaces are chosen so that the order of keys is not that of names alone ('-' sorts before '/').
var namespaces = []string{"shop", "shop-a", "shop-b"}

var selectors = []string{
	"tier=front", "tier!=front", "tier in (front,back)", "!tier", "app", "canary=yes,tier=back", "nobody=has-it",
}

const objects = 30

var subjects = []subject{
	{
		Resource: Resource{
			Root: "/apis/discovery.k8s.io/v1", Plural: "endpointslices", Namespaces: namespaces, Labels: selectors,
		},
		relay: "endpointslices.v1.discovery.k8s.io", gvr: discoveryv1.SchemeGroupVersion.WithResource("endpointslices"),
		kind: "EndpointSlice", requests: 400, body: sliceBody,
	},
	{
		Resource: Resource{
			Root: "/api/v1", Plural: "pods", Namespaces: namespaces, Labels: selectors,
			Fields: []string{"spec.nodeName=node-1", "status.phase=Pending", "spec.hostNetwork=false", "status.phase!=Pending"},
		},
		relay: "pods.v1.", gvr: corev1.SchemeGroupVersion.WithResource("pods"), kind: "Pod", requests: 120, body: podBody,
	},
	{
		Resource: Resource{
			Root: "/api/v1", Plural: "nodes", Labels: selectors,
			Fields: []string{"spec.unschedulable=true", "spec.unschedulable!=true"},
		},
		relay: "nodes.v1.", gvr: corev1.SchemeGroupVersion.WithResource("nodes"), kind: "Node", requests: 120,
		body: nodeBody,
	},
	{
		Resource: Resource{
			Root: "/api/v1", Plural: "services", Namespaces: namespaces, Labels: selectors,
			Fields: []string{"spec.type=ClusterIP", "spec.clusterIP=None"},
		},
		relay: "services.v1.", gvr: corev1.SchemeGroupVersion.WithResource("services"), kind: "Service", requests: 120,
		body: serviceBody,
	},
	{
		Resource: Resource{
			Root: "/apis/example.com/v1", Plural: "widgets", Namespaces: namespaces, Labels: selectors, Custom: true,
		},
		relay: "widgets.v1.example.com=Widget", gvr: schema.GroupVersionResource{
			Group: "example.com", Version: "v1", Resource: "widgets",
		},
		kind: "Widget", requests: 120, body: widgetBody,
	},
}

// widgetCRD defines a resource whose lists have a name of their own: nothing but a list says it.
const widgetCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"widgets.example.com"},"spec":{
"group":"example.com","scope":"Namespaced",
"names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetCollection"},
"versions":[{"name":"v1","served":true,
"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`

// prepare makes namespaces with what pods need there, and the custom resource.
func prepare(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	create := func(r dynamic.ResourceInterface, kind, name string) {
		o := &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}},
		}
		if _, err := r.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, ns := range namespaces {
		create(client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")), "Namespace", ns)
		create(client.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(ns), "ServiceAccount",
			"default")
	}
	crd := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(widgetCRD), crd); err != nil {
		t.Fatal(err)
	}
	crds := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	if _, err := client.Resource(crds).Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the custom resource", func() bool {
		_, err := client.Resource(subjects[4].gvr).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
}

// churn writes objects of a subject as long as the test runs: creates, updates, label changes and deletions.
type churn struct {
	subject
	config *rest.Config
	client dynamic.NamespaceableResourceInterface
	rnd    *rand.Rand
}

func newChurn(t *testing.T, config *rest.Config, s subject, seed uint64) *churn {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &churn{subject: s, config: config, client: client.Resource(s.gvr), rnd: rand.New(rand.NewPCG(seed, 1))}
}

func name(i int) string { return fmt.Sprintf("web-%02d-x%d", i%10, i) }

// namespace is "" if the resource is not namespaced.
func (c *churn) namespace(i int) string {
	if len(c.Namespaces) == 0 {
		return ""
	}
	return c.Namespaces[i%len(c.Namespaces)]
}

func (c *churn) resource() Resource {
	r := c.Resource
	for i := range objects {
		r.Names = append(r.Names, strings.TrimPrefix(c.namespace(i)+"/"+name(i), "/"))
	}
	return r
}

func (c *churn) fill(ctx context.Context, t *testing.T) {
	for i := range objects {
		c.step(ctx, t, i)
	}
}

func (c *churn) run(ctx context.Context, t *testing.T) {
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.step(ctx, t, c.rnd.IntN(objects))
		}
	}
}

// object is written by a merge patch, or created: a nil label is one that goes.
func (c *churn) object(i int) map[string]any {
	labels := map[string]any{"app": fmt.Sprintf("web-%02d", i%10), "tier": nil, "canary": nil}
	if c.rnd.IntN(2) == 0 {
		labels["tier"] = []string{"front", "back"}[c.rnd.IntN(2)]
	}
	if c.rnd.IntN(3) == 0 {
		labels["canary"] = "yes"
	}
	note := "<&> " + flaw + " \u2028"
	if i == 0 {
		note += strings.Repeat("so that a list is worth compressing ", 4<<10)
	}
	o := c.body(c.rnd, i, c.namespace(i), name(i))
	o["apiVersion"], o["kind"] = c.gvr.GroupVersion().String(), c.kind
	o["metadata"] = map[string]any{
		"name": name(i), "namespace": c.namespace(i), "labels": labels,
		"annotations": map[string]any{"note": note, "turn": fmt.Sprint(c.rnd.IntN(1000))},
	}
	return o
}

func (c *churn) step(ctx context.Context, t *testing.T, i int) {
	api := dynamic.ResourceInterface(c.client)
	if ns := c.namespace(i); ns != "" {
		api = c.client.Namespace(ns)
	}
	var err error
	if c.rnd.IntN(5) == 0 {
		now := int64(0)
		err = api.Delete(ctx, name(i), metav1.DeleteOptions{GracePeriodSeconds: &now})
	} else {
		o := c.object(i)
		var patch []byte
		if patch, err = json.Marshal(o); err != nil {
			t.Error(err)
		}
		how := types.MergePatchType
		if c.kind == "Pod" { // a container is changed, not replaced without its defaults
			how = types.StrategicMergePatchType
		}
		if _, err = api.Patch(ctx, name(i), how, patch, metav1.PatchOptions{}); apierrors.IsNotFound(err) {
			labels := o["metadata"].(map[string]any)["labels"].(map[string]any)
			for k, v := range labels {
				if v == nil {
					delete(labels, k)
				}
			}
			_, err = api.Create(ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
		}
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		t.Errorf("churn: %v", err)
	}
}

func sliceBody(rnd *rand.Rand, i int, ns, _ string) map[string]any {
	ports, endpoints := []any{}, []any{}
	for k := range rnd.IntN(5) {
		ports = append(ports, map[string]any{"name": fmt.Sprintf("http%d", k), "port": int64(8080 + k), "protocol": "TCP"})
	}
	for k := range rnd.IntN(8) {
		endpoints = append(endpoints, map[string]any{
			"addresses": []any{fmt.Sprintf("10.0.%d.%d", i, k+1)}, "conditions": map[string]any{"ready": rnd.IntN(2) == 0},
			"targetRef": map[string]any{"kind": "Pod", "name": fmt.Sprintf("pod-%d", k), "namespace": ns},
		})
	}
	return map[string]any{"addressType": "IPv4", "ports": ports, "endpoints": endpoints}
}

func podBody(rnd *rand.Rand, i int, _, _ string) map[string]any {
	spec := map[string]any{"containers": []any{map[string]any{"name": "web", "image": fmt.Sprintf("web:%d", rnd.IntN(9))}}}
	if i%3 == 0 {
		spec["nodeName"] = fmt.Sprintf("node-%d", i%2)
	}
	return map[string]any{"spec": spec}
}

func nodeBody(rnd *rand.Rand, _ int, _, _ string) map[string]any {
	return map[string]any{"spec": map[string]any{"unschedulable": rnd.IntN(2) == 0}}
}

func serviceBody(rnd *rand.Rand, i int, _, _ string) map[string]any {
	spec := map[string]any{"ports": []any{map[string]any{"port": int64(80 + rnd.IntN(9)), "protocol": "TCP"}}}
	if i%3 == 0 {
		spec["clusterIP"] = "None"
	}
	return map[string]any{"spec": spec}
}

func widgetBody(rnd *rand.Rand, _ int, _, _ string) map[string]any {
	return map[string]any{
		"spec": map[string]any{"size": int64(rnd.IntN(9)), "ratio": 0.25, "text": "ü\u2028<", "nothing": map[string]any{}},
	}
}

func createObject(t *testing.T, api dynamic.ResourceInterface, o map[string]any) {
	t.Helper()
	if _, err := api.Create(t.Context(), &unstructured.Unstructured{Object: o}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
