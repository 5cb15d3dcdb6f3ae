package revocation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bound are the users of a ClusterRoleBinding.
func (d *desk) bound(name string) (users []string) {
	d.t.Helper()
	var b rbacv1.ClusterRoleBinding
	if err := d.cluster.Get(d.t.Context(), client.ObjectKey{Name: name}, &b); err != nil {
		return []string{"none"}
	}
	for _, s := range b.Subjects {
		users = append(users, s.Kind+" "+s.Name)
	}
	return users
}

// TestHubs: each hub of a pool is a subject of the pool's binding by its own user, and of no other pool's; who leaves
// or is deleted is none. That of topology is kept where somebody has made it. A pool without nodes has a binding
// without subjects.
func TestHubs(t *testing.T) {
	c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"), node("edge-3", "quay", "u-3"))
	d := newDesk(t, c)
	d.looks()
	if got := d.bound("weir:hub:harbour"); !slices.Equal(got,
		[]string{"User weir:hub:harbour:edge-1", "User weir:hub:harbour:edge-2"}) {
		t.Errorf("bound %q", got)
	}
	if got := d.bound("weir:hub-topology:harbour"); !slices.Equal(got, []string{"none"}) {
		t.Errorf("nobody has asked for topology: %q", got)
	}
	c.store(Binding(TopologyRole, "harbour", nil))
	c.drop(node("edge-1", "", ""))
	d.looks()
	for _, role := range []string{HubRole, TopologyRole} {
		if got := d.bound(role + ":harbour"); !slices.Equal(got, []string{"User weir:hub:harbour:edge-2"}) {
			t.Errorf("%s: bound %q", role, got)
		}
	}
	if ok, err := d.Granted(t.Context(), "harbour", node("edge-2", "harbour", "u-2")); !ok || err != nil {
		t.Errorf("granted: %t, %v", ok, err)
	}
	for _, n := range []string{"edge-1", "edge-3"} {
		if ok, _ := d.Granted(t.Context(), "harbour", node(n, "harbour", "u-1")); ok {
			t.Errorf("%s is granted", n)
		}
	}
	if ok, _ := d.Granted(t.Context(), "harbour", node("edge-2", "harbour", "u-9")); ok {
		t.Error("another node of the name is granted")
	}
	c.drop(node("edge-2", "", ""))
	d.looks()
	if got := d.bound("weir:hub:harbour"); len(got) != 0 {
		t.Errorf("of a pool without nodes: %q", got)
	}
	for name, pool := range map[string]string{
		"weir:hub:harbour": "harbour", "weir:hub-topology:a.b": "a.b", "weir:hub": "", "weir:hubs:x": "", "cluster-admin": "",
	} {
		if got := PoolOf(name); got != pool {
			t.Errorf("%s is of the pool %q", name, got)
		}
	}
}

// TestBindingSize: the binding of 1,000 nodes with the longest names is an object that etcd takes, which are 1.5 MB.
func TestBindingSize(t *testing.T) {
	size := func(pool string, name func(int) string) int {
		var nodes []string
		for i := range 1000 {
			nodes = append(nodes, name(i))
		}
		return Binding(HubRole, pool, nodes).Size()
	}
	longest := size(strings.Repeat("p", 63), func(i int) string { return fmt.Sprintf("%0253d", i) })
	usual := size("harbour", func(i int) string { return fmt.Sprintf("edge-%04d", i) })
	if longest > 1<<20 || usual > 100<<10 {
		t.Errorf("%d bytes, with usual names %d", longest, usual)
	}
	t.Logf("%d bytes, with usual names %d", longest, usual)
}
