package check

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
)

// most is how many nodes are looked at one by one.
const most = 5000

// Run looks once.
func Run(ctx context.Context, c *commands.Cluster, o Options) (Report, error) {
	if o.Here {
		r := Report{Success: true}
		return r, errors.Join(checkHere(ctx, o, &r), ctx.Err())
	}
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return Report{}, err
	}
	l, r := &looker{Cluster: c, Options: o, disc: d}, Report{Success: true}
	all := func(category string, checks []one) {
		for _, k := range checks {
			if err := k.look(ctx, l); !errors.Is(err, errNone) {
				r.add(category, result(k.id, k.about, err))
			}
		}
	}
	if all("kubernetes", kubernetes); !r.Success { // all that follows would say the same
		return r, ctx.Err()
	}
	l.view = c.Read(ctx)
	if o.Pre {
		all("before weir is installed", before)
		return r, ctx.Err()
	}
	all("weir", control)
	names := l.view.PoolNames()
	if err := l.known(names); err != nil {
		return r, err
	}
	for _, name := range names {
		if o.Pool != "" && o.Pool != name || o.Node != "" && l.node(o.Node).Labels[contract.NodePoolLabel] != name {
			continue
		}
		for _, k := range pools {
			err := k.look(l, name)
			if errors.Is(err, errNone) {
				continue
			}
			one := result(k.id, k.about, err)
			one.Pool = name
			r.add("pools", one)
		}
	}
	l.checkNodes(&r)
	return r, errors.Join(checkHere(ctx, o, &r), ctx.Err())
}

// checkNodes looks at those that are in pools.
func (l *looker) checkNodes(r *Report) {
	if err := l.view.Failed[commands.Nodes]; err != nil {
		r.add("nodes", result("node-heard", "nodes are heard", skip{err}))
		return
	}
	for i := range l.view.Nodes[:min(len(l.view.Nodes), most)] {
		n := &l.view.Nodes[i]
		if pool := n.Labels[contract.NodePoolLabel]; pool == "" || l.Pool != "" && l.Pool != pool ||
			l.Node != "" && l.Node != n.Name {
			continue
		}
		for _, k := range nodes {
			one := result(k.id, k.about, k.look(l, n))
			one.Node = n.Name
			r.add("nodes", one)
		}
	}
}

// known reports whether there is what was asked for.
func (l *looker) known(names []string) error {
	if l.Pool != "" && !slices.Contains(names, l.Pool) {
		return cli.Usage("--pool", l.Pool, "the name of a pool: "+strings.Join(names, ", "))
	}
	if l.Node == "" {
		return nil
	}
	if n := l.node(l.Node); n == nil {
		return cli.Usage("--node", l.Node, "the name of a Node")
	} else if pool := n.Labels[contract.NodePoolLabel]; pool == "" {
		return cli.Usage("--node", l.Node, "a Node with the label "+contract.NodePoolLabel)
	} else if l.Pool != "" && l.Pool != pool {
		return cli.Usage("--node", l.Node, "a Node of --pool: it is in "+pool)
	}
	return nil
}

// node is the one of a name; nil: there is none.
func (l *looker) node(name string) *corev1.Node {
	for i := range l.view.Nodes {
		if l.view.Nodes[i].Name == name {
			return &l.view.Nodes[i]
		}
	}
	return nil
}

// IDs are those of all checks, sorted.
func IDs() (all []string) {
	for _, k := range slices.Concat(kubernetes, before, control) {
		all = append(all, k.id)
	}
	for _, k := range pools {
		all = append(all, k.id)
	}
	for _, k := range nodes {
		all = append(all, k.id)
	}
	for _, k := range here {
		all = append(all, k.id)
	}
	slices.Sort(all)
	return all
}
