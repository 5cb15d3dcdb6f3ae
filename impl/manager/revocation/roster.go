package revocation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
)

const maxHosts = 32 // of a replica

// member is what a roster says of a node.
type member struct {
	UID     string   `json:"uid"`
	Replica string   `json:"replica,omitempty"` // of the pool's coordinator
	Hosts   []string `json:"hosts,omitempty"`   // of that replica
}

func memberOf(n *corev1.Node) member {
	m := member{UID: string(n.UID), Replica: n.Labels[contract.CoordinatorLabel]}
	if m.Replica != "" {
		for _, a := range n.Status.Addresses {
			m.Hosts = append(m.Hosts, a.Address)
		}
	}
	return m
}

// since is what a member is now, of which more was known before: a certificate of then may be alive.
func (m member) since(before member) member {
	if m.UID != before.UID || before.Replica == "" {
		return m
	}
	if m.Replica == "" {
		m.Replica = before.Replica
	}
	for _, h := range before.Hosts {
		if len(m.Hosts) < maxHosts && !slices.Contains(m.Hosts, h) {
			m.Hosts = append(m.Hosts, h)
		}
	}
	return m
}

// notes reads a ConfigMap; one that does not exist is empty.
func notes(ctx context.Context, r client.Reader, namespace, name string) (*corev1.ConfigMap, error) {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := r.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	return c, nil
}

// write puts data in a ConfigMap, if it is other than what was read.
func write(ctx context.Context, w client.Writer, c *corev1.ConfigMap, data map[string]string) error {
	if maps.Equal(c.Data, data) {
		return nil
	}
	fresh := c.ResourceVersion == ""
	c = c.DeepCopy()
	c.Data = data
	metav1.SetMetaDataLabel(&c.ObjectMeta, "app.kubernetes.io/part-of", "weir")
	var err error
	if fresh {
		err = w.Create(ctx, c)
	} else {
		err = w.Update(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", c.Namespace, c.Name, err)
	}
	return nil
}

// read takes a roster apart. What cannot be read was written by somebody else: it is nobody.
func read(c *corev1.ConfigMap) map[string]member {
	all := map[string]member{}
	for name, text := range c.Data {
		var m member
		if json.Unmarshal([]byte(text), &m) == nil && m.UID != "" {
			all[name] = m
		}
	}
	return all
}

func encode(all map[string]member) (map[string]string, error) {
	data := map[string]string{}
	for name, m := range all {
		text, err := json.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("roster: node %s: %w", name, err)
		}
		data[name] = string(text)
	}
	return data, nil
}

// gone is a node that is not in its pool any more.
type gone struct {
	name string
	member
	deleted bool // its Node; else it is of another pool
}

func (g gone) cause() string {
	if g.deleted {
		return "deleted"
	}
	return "left"
}
