package certificates

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster is an API in memory: as much of it as a Controller uses. Updates are refused that were made from another
// version.
type cluster struct {
	client.Client

	mu      sync.Mutex
	objects map[string]client.Object
	version int

	failing error  // what reads of Nodes answer instead
	before  func() // called once before the next update
	listed  func() error
}

// List implements client.Reader. It finds Nodes by their labels, and of other kinds nothing.
func (c *cluster) List(_ context.Context, list client.ObjectList, o ...client.ListOption) error {
	nodes, ok := list.(*corev1.NodeList)
	if !ok {
		return c.listed()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing != nil {
		return c.failing
	}
	all := (&client.ListOptions{}).ApplyOptions(o)
	for _, have := range c.objects {
		if n, ok := have.(*corev1.Node); ok && all.LabelSelector.Matches(labels.Set(n.Labels)) {
			nodes.Items = append(nodes.Items, *n)
		}
	}
	return nil
}

func newCluster(objects ...client.Object) *cluster {
	c := &cluster{objects: map[string]client.Object{}}
	for _, o := range objects {
		c.put(o)
	}
	return c
}

func keyOf(o client.Object, k client.ObjectKey) string { return fmt.Sprintf("%T %s", o, k) }

// put stores an object as its next version.
func (c *cluster) put(o client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(o)
}

func (c *cluster) store(o client.Object) {
	c.version++
	o.SetResourceVersion(strconv.Itoa(c.version))
	c.objects[keyOf(o, client.ObjectKeyFromObject(o))] = o.DeepCopyObject().(client.Object)
}

// Get implements client.Reader.
func (c *cluster) Get(_ context.Context, k client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing != nil && reflect.TypeOf(o).String() == "*v1.Node" {
		return c.failing
	}
	have, ok := c.objects[keyOf(o, k)]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, k.Name)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(have.DeepCopyObject()).Elem())
	return nil
}

// Create implements client.Writer.
func (c *cluster) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.objects[keyOf(o, client.ObjectKeyFromObject(o))]; ok {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, o.GetName())
	}
	c.store(o)
	return nil
}

// Update implements client.Writer.
func (c *cluster) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return c.update(o, func(client.Object) client.Object { return o })
}

func (c *cluster) update(o client.Object, change func(have client.Object) client.Object) error {
	c.mu.Lock()
	before := c.before
	c.before = nil
	c.mu.Unlock()
	if before != nil {
		before()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	have, ok := c.objects[keyOf(o, client.ObjectKeyFromObject(o))]
	switch {
	case !ok:
		return apierrors.NewNotFound(schema.GroupResource{}, o.GetName())
	case o.GetResourceVersion() != "" && have.GetResourceVersion() != o.GetResourceVersion():
		// as kube-apiserver: without a version any will do.
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), nil)
	}
	c.store(change(have.DeepCopyObject().(client.Object)))
	return nil
}

// SubResource implements client.SubResourceClientConstructor.
func (c *cluster) SubResource(name string) client.SubResourceClient {
	return &subresource{cluster: c, name: name}
}

type subresource struct {
	client.SubResourceClient
	cluster *cluster
	name    string
}

// Update implements client.SubResourceWriter, as kube-apiserver does it for requests.
func (s *subresource) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	r := o.(*certificatesv1.CertificateSigningRequest)
	return s.cluster.update(o, func(have client.Object) client.Object {
		h := have.(*certificatesv1.CertificateSigningRequest)
		h.Status.Conditions = r.Status.Conditions
		if s.name == "status" {
			h.Status.Certificate = r.Status.Certificate
		}
		return h
	})
}

// Status implements client.StatusClient.
func (c *cluster) Status() client.SubResourceWriter { return &subresource{cluster: c, name: "status"} }

// Patch implements client.SubResourceWriter, of conditions of Nodes.
func (s *subresource) Patch(_ context.Context, o client.Object, p client.Patch,
	_ ...client.SubResourcePatchOption) error {
	var patch struct{ Status corev1.NodeStatus }
	text, err := p.Data(o)
	if err == nil {
		err = json.Unmarshal(text, &patch)
	}
	if err != nil {
		return err
	}
	return s.cluster.update(o, func(have client.Object) client.Object {
		n := have.(*corev1.Node)
		for _, c := range patch.Status.Conditions {
			n.Status.Conditions = append(
				slices.DeleteFunc(n.Status.Conditions, func(o corev1.NodeCondition) bool { return o.Type == c.Type }), c)
		}
		return n
	})
}
