package revocation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// Bounds of a roster: an object has a megabyte.
const (
	MaxNodes  = 5000
	maxRoster = 900 << 10 // bytes
)

// member is what a roster says of a node.
type member struct {
	UID     string `json:"uid"`
	Replica string `json:"replica,omitempty"` // of the pool's coordinator
	// What was signed for the node as a coordinator: addresses, the latest last, trust.MaxHosts at most, and keys by
	// trust.KeyOf with the ends of their certificates, in Unix time, trust.MaxKeys at most. What its status says is
	// the node's own word.
	Hosts []string         `json:"hosts,omitempty"`
	Keys  map[string]int64 `json:"keys,omitempty"`
}

func memberOf(n *corev1.Node) member {
	return member{UID: string(n.UID), Replica: n.Labels[contract.CoordinatorLabel]}
}

// since is what a member is now, of which more was known before: a certificate of then may be alive.
func (m member) since(before member) member {
	if m.UID != before.UID {
		return m
	}
	m.Replica = cmp.Or(m.Replica, before.Replica)
	m.Hosts, m.Keys = before.Hosts, before.Keys
	return m
}

// signs notes what is about to be signed for a member. Of too many addresses the first go, and of too many keys those
// whose certificates have ended. An error says that none has.
func (m *member) signs(hosts []string, key string, end, now time.Time) error {
	m.Hosts = append(slices.DeleteFunc(slices.Clone(m.Hosts), func(h string) bool { return slices.Contains(hosts, h) }),
		hosts...)
	m.Hosts = m.Hosts[max(0, len(m.Hosts)-trust.MaxHosts):]
	keys := maps.Clone(m.Keys)
	if keys == nil {
		keys = map[string]int64{}
	}
	keys[key] = max(keys[key], end.Unix())
	if len(keys) > trust.MaxKeys {
		first := slices.MinFunc(slices.Sorted(maps.Keys(keys)),
			func(a, b string) int { return cmp.Compare(keys[a], keys[b]) })
		if keys[first] >= now.Unix() {
			return &pki.MismatchError{
				Field: "public key", Value: key,
				Allowed: fmt.Sprintf("one of %d at most of the coordinator of a node whose certificates have not ended: renew by "+
					"a key that has one", trust.MaxKeys),
			}
		}
		delete(keys, first)
	}
	m.Keys = keys
	return nil
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

// read takes a roster apart. unread are the names of lines that cannot be read: somebody else wrote them.
func read(c *corev1.ConfigMap) (all map[string]member, unread []string) {
	all = map[string]member{}
	for name, text := range c.Data {
		var m member
		if json.Unmarshal([]byte(text), &m) != nil || m.UID == "" {
			unread = append(unread, name)
			continue
		}
		all[name] = m
	}
	return all, unread
}

// encode writes a roster. Those of before have room first, then others by their names. left are those for which there
// is none.
func encode(all, before map[string]member) (data map[string]string, left []string, err error) {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		_, hadA := before[a]
		_, hadB := before[b]
		if hadA != hadB {
			return map[bool]int{true: -1, false: 1}[hadA]
		}
		return strings.Compare(a, b)
	})
	data, size := map[string]string{}, 0
	for _, name := range names {
		text, err := json.Marshal(all[name])
		if err != nil {
			return nil, nil, fmt.Errorf("roster: node %s: %w", name, err)
		}
		if n := len(name) + len(text); len(data) < MaxNodes && size+n <= maxRoster {
			data[name], size = string(text), size+n
		} else {
			left = append(left, name)
		}
	}
	return data, left, nil
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
