package revocation

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster is an API in memory: as much of it as a Revoker uses.
type cluster struct {
	client.Client
	objects map[string]client.Object
	version int
	cached  []corev1.Node // what the cache holds instead of what there is; nil: the same
	fails   func(what string) bool
	writes  []string
}

func newCluster(objects ...client.Object) *cluster {
	c := &cluster{objects: map[string]client.Object{}, fails: func(string) bool { return false }}
	for _, o := range objects {
		c.store(o)
	}
	return c
}

func keyOf(o client.Object) string {
	return fmt.Sprintf("%s %s/%s", reflect.TypeOf(o).Elem().Name(), o.GetNamespace(), o.GetName())
}

func (c *cluster) store(o client.Object) {
	c.version++
	o.SetResourceVersion(strconv.Itoa(c.version))
	c.objects[keyOf(o)] = o.DeepCopyObject().(client.Object)
}

// drop deletes an object.
func (c *cluster) drop(o client.Object) { delete(c.objects, keyOf(o)) }

var errBroken = errors.New("the connection broke")

// Get implements client.Reader.
func (c *cluster) Get(_ context.Context, k client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetNamespace(k.Namespace)
	o.SetName(k.Name)
	have, ok := c.objects[keyOf(o)]
	switch {
	case c.fails("get " + keyOf(o)):
		return errBroken
	case !ok:
		return apierrors.NewNotFound(schema.GroupResource{}, k.Name)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(have.DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader, for Nodes.
func (c *cluster) List(_ context.Context, l client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	list := l.(*corev1.NodeList)
	if c.cached != nil {
		list.Items = c.cached
		return nil
	}
	for _, have := range c.objects {
		if n, ok := have.(*corev1.Node); ok && o.LabelSelector.Matches(labels.Set(n.Labels)) {
			list.Items = append(list.Items, *n.DeepCopy())
		}
	}
	return nil
}

// Create implements client.Writer.
func (c *cluster) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if c.fails("create " + keyOf(o)) {
		return errBroken
	}
	if c.objects[keyOf(o)] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, o.GetName())
	}
	c.writes = append(c.writes, keyOf(o))
	c.store(o)
	return nil
}

// Update implements client.Writer.
func (c *cluster) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	if c.fails("update " + keyOf(o)) {
		return errBroken
	}
	switch have := c.objects[keyOf(o)]; {
	case have == nil:
		return apierrors.NewNotFound(schema.GroupResource{}, o.GetName())
	case have.GetResourceVersion() != o.GetResourceVersion():
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), nil)
	}
	c.writes = append(c.writes, keyOf(o))
	c.store(o)
	return nil
}

// Status implements client.StatusClient: a status is written as the whole.
func (c *cluster) Status() client.SubResourceWriter { return statuses{c: c} }

type statuses struct {
	client.SubResourceWriter
	c *cluster
}

// Update implements client.SubResourceWriter.
func (s statuses) Update(ctx context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.c.Update(ctx, o)
}
