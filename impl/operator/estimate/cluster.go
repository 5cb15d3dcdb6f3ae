package estimate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
)

// page is how many objects are asked for at once.
const page = 500

// recently is how far back managedFields are counted, where nothing else tells of changes.
const recently = time.Hour

// objects are what is read of one resource.
type objects struct {
	n, bytes int
	changed  int // writers of an object who have written lately, each once
	read     bool
}

// mean is the size of one.
func (o objects) mean() float64 {
	if o.n == 0 {
		return 0
	}
	return float64(o.bytes) / float64(o.n)
}

// cluster is what is read of one.
type cluster struct {
	kube.Reader
	now     time.Time
	objects map[string]objects
	nodes   []corev1.Node
	pods    map[string]int // by node
	dns     map[string]int // pods of CoreDNS, by node
	newPods int            // that began lately
	missing []Missing
}

// Missing is something that could not be read.
type Missing struct {
	What      string `json:"what"`
	Why       string `json:"why"`
	Forbidden bool   `json:"forbidden"`
}

// lists are the lists of what is read.
func lists() map[string]kube.ObjectList {
	return map[string]kube.ObjectList{
		nodes: &corev1.NodeList{}, pods: &corev1.PodList{}, services: &corev1.ServiceList{},
		namespaces: &corev1.NamespaceList{}, endpointSlices: &discoveryv1.EndpointSliceList{},
		"csidrivers.storage.k8s.io":         &storagev1.CSIDriverList{},
		"runtimeclasses.node.k8s.io":        &nodev1.RuntimeClassList{},
		"servicecidrs.networking.k8s.io":    &networkingv1.ServiceCIDRList{},
		"networkpolicies.networking.k8s.io": &networkingv1.NetworkPolicyList{},
	}
}

// read reads what may be read.
func (c *cluster) read(ctx context.Context) {
	c.objects, c.pods, c.dns = map[string]objects{}, map[string]int{}, map[string]int{}
	all := lists()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch err := c.list(ctx, name, all[name]); {
		case err == nil, meta.IsNoMatchError(err): // an older Kubernetes has no such resource
		default:
			c.miss("list "+name, err)
		}
	}
}

func (c *cluster) miss(what string, err error) {
	c.missing = append(c.missing, Missing{
		what, strings.Join(strings.Fields(err.Error()), " "),
		apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err),
	})
}

func (c *cluster) list(ctx context.Context, name string, into kube.ObjectList) error {
	var o objects
	for more := ""; ; {
		if err := c.List(ctx, into, kube.Limit(page), kube.Continue(more)); err != nil {
			return err
		}
		if err := meta.EachListItem(into, func(one runtime.Object) error { c.take(&o, one); return nil }); err != nil {
			return err
		}
		if more = into.GetContinue(); more == "" {
			o.read = true
			c.objects[name] = o
			return nil
		}
	}
}

func (c *cluster) take(o *objects, one runtime.Object) {
	o.n++
	if sized, ok := one.(interface{ Size() int }); ok { // of protobuf
		o.bytes += sized.Size()
	}
	if m, err := meta.Accessor(one); err == nil {
		for _, f := range m.GetManagedFields() {
			if f.Time != nil && c.now.Sub(f.Time.Time) < recently {
				o.changed++
			}
		}
	}
	switch one := one.(type) {
	case *corev1.Node:
		c.nodes = append(c.nodes, *one)
	case *corev1.Pod:
		c.pods[one.Spec.NodeName]++
		if one.Labels["k8s-app"] == "kube-dns" {
			c.dns[one.Spec.NodeName]++
		}
		if c.now.Sub(one.CreationTimestamp.Time) < recently {
			c.newPods++
		}
	}
}

// managed are the rates that the objects themselves tell: at least so many.
func (c *cluster) managed() *Rates {
	r := newRates(Managed)
	r.Took = recently
	for name, o := range c.objects {
		if o.changed > 0 {
			r.Changes[name] = float64(o.changed)
		}
	}
	// A kubelet writes the status of its Node again and again, and only the last time stands there.
	r.Changes[nodes] = max(r.Changes[nodes], float64(len(c.nodes))*recently.Seconds()/statusPeriod)
	delete(r.Changes, pods)
	r.Pods = float64(c.newPods)
	r.Notes = append(r.Notes, "managedFields have the last write of each writer alone: there were more changes, "+
		"and Weir saves more. An audit log, or the right to read /metrics, gives better figures.")
	return r
}

// Labels by which nodes are taken to be at one site.
const zoneLabel = corev1.LabelTopologyZone

// grouping is which nodes are where.
type grouping struct {
	sites     []Site
	label     string
	left      []string // that are at no site
	addresses map[string]bool
}

// group puts nodes into sites: by names, by a label, or by the label that there is.
func (c *cluster) group(label string, names []string) (*grouping, error) {
	g := &grouping{label: label, addresses: map[string]bool{}}
	if len(names) > 0 {
		return g, c.named(g, names)
	}
	if g.label == "" {
		g.label = zoneLabel
		if slices.ContainsFunc(c.nodes, func(n corev1.Node) bool { return n.Labels[contract.NodePoolLabel] != "" }) {
			g.label = contract.NodePoolLabel
		}
	}
	if !c.objects[nodes].read {
		return nil, fmt.Errorf("nodes may not be listed, so nothing tells the sites: grant it (see the ClusterRole in "+
			"--help), or name the nodes of one site by --nodes: %s", c.why(nodes))
	}
	sites := map[string]*Site{}
	for _, n := range c.nodes {
		at := n.Labels[g.label]
		_, control := n.Labels["node-role.kubernetes.io/control-plane"]
		if at == "" || control {
			g.left = append(g.left, n.Name)
			continue
		}
		if sites[at] == nil {
			sites[at] = &Site{Name: at}
		}
		c.add(g, sites[at], n)
	}
	if len(sites) == 0 {
		return nil, cli.Usage("--site-label", g.label, fmt.Sprintf("a label that Nodes have and that says where they are; "+
			"none of %d nodes outside the control plane has this one; --nodes names the nodes of one site instead",
			len(c.nodes)))
	}
	for _, name := range slices.Sorted(maps.Keys(sites)) {
		g.sites = append(g.sites, *sites[name])
	}
	return g, nil
}

// named is one site of nodes that the caller names.
func (c *cluster) named(g *grouping, names []string) error {
	g.label = ""
	s := &Site{Name: "given"}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		i := slices.IndexFunc(c.nodes, func(n corev1.Node) bool { return n.Name == name })
		switch {
		case i >= 0:
			c.add(g, s, c.nodes[i])
		case c.objects[nodes].read:
			return cli.Usage("--nodes", name, "names of Nodes of the cluster")
		default:
			s.Nodes++
			s.Pods += c.pods[name]
			s.DNS += c.dns[name]
		}
	}
	g.sites = []Site{*s}
	return nil
}

func (c *cluster) add(g *grouping, s *Site, n corev1.Node) {
	s.Nodes++
	s.Pods += c.pods[n.Name]
	s.DNS += c.dns[n.Name]
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			g.addresses[a.Address] = true
		}
	}
}

func (c *cluster) why(resource string) string {
	for _, m := range c.missing {
		if m.What == "list "+resource {
			return m.Why
		}
	}
	return "it was not read"
}
