package pools

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
)

// desk is a cluster of one Node and at most one NodePool.
type desk struct {
	client.Client
	node  *corev1.Node
	pool  *nodepool.NodePool // nil: none
	patch string             // the last
}

func (d *desk) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *corev1.Node:
		d.node.DeepCopyInto(o)
		return nil
	case *nodepool.NodePool:
		if d.pool != nil && d.pool.Name == key.Name {
			d.pool.DeepCopyInto(o)
			return nil
		}
	}
	return apierrors.NewNotFound(corev1.Resource("x"), key.Name)
}

func (d *desk) Patch(_ context.Context, _ client.Object, p client.Patch, _ ...client.PatchOption) error {
	text, err := p.Data(nil)
	d.patch = string(text)
	return err
}

// TestWhoLeaves: what a Node has of its pool is removed, whether it goes to another pool or to none, or its NodePool
// goes. A Node that has nothing is left alone.
func TestWhoLeaves(t *testing.T) {
	harbour := &nodepool.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "harbour"}, Spec: nodepool.Spec{Labels: map[string]string{"a": "1"}},
	}
	going := harbour.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{}
	going.DeletionTimestamp.Time = clock.RealClock{}.Now()
	for about, c := range map[string]struct {
		pool     string // of the Node
		has      bool   // the label, with its record
		nodepool *nodepool.NodePool
		want     string
	}{
		"it stays":                     {"harbour", true, harbour, ""},
		"it comes":                     {"harbour", false, harbour, `"a":"1"`},
		"to another pool":              {"quay", true, harbour, `"a":null`},
		"to none":                      {"", true, harbour, `"a":null`},
		"its NodePool is gone":         {"harbour", true, nil, `"a":null`},
		"its NodePool goes":            {"harbour", true, going, `"a":null`},
		"it never had anything":        {"", false, nil, ""},
		"of a pool without a NodePool": {"quay", false, harbour, ""},
	} {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "edge-1", Labels: map[string]string{}, Annotations: map[string]string{}},
		}
		if c.pool != "" {
			n.Labels[contract.NodePoolLabel] = c.pool
		}
		if c.has {
			n.Labels["a"], n.Annotations[contract.PoolAttributes] = "1", "label a=1"
		}
		d := &desk{node: n, pool: c.nodepool}
		k := &AttributeKeeper{
			Client: d, Clock: clock.RealClock{}, Aside: func(context.Context) (bool, error) { return false, nil },
		}
		if _, err := k.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(n)}); err != nil {
			t.Fatal(err)
		}
		if (d.patch == "") != (c.want == "") || !strings.Contains(d.patch, c.want) {
			t.Errorf("%s: written %q, want %s", about, d.patch, c.want)
		}
	}
}
