package estimate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
)

// Command is weir estimate; program is how the user calls it.
func Command(program string) *cobra.Command {
	c := commands.New("estimate", "say what each site of a cluster exchanges with the cloud in a day, stock and with Weir",
		0, estimates)
	c.Long = "Say what the nodes of each site of a cluster exchange with the cloud in a day, as stock Kubernetes and " +
		"with Weir.\nNothing of Weir has to be installed, and nothing is written. It needs the rights of this ClusterRole, " +
		"and goes on with fewer:\n\n" + Role
	c.Example = strings.ReplaceAll(`  # Sites are the zones of nodes; rates come from kube-apiserver's metrics, read twice.
  weir estimate --for 10m
  # Sites are what another label says; rates come from an audit log of a whole day.
  weir estimate --site-label example.com/site --audit-log /var/log/kubernetes/audit.log
  # These nodes are a site.
  weir estimate --nodes edge-1,edge-2,edge-3`, "weir", program)
	return c
}

const longest = 7 * 24 * time.Hour

func estimates(fs *pflag.FlagSet) commands.Run {
	o := options{}
	fs.StringVar(&o.label, "site-label", "", "label of Nodes that says at which site they are; default: "+
		"apps.openyurt.io/nodepool if a Node has it, else topology.kubernetes.io/zone")
	fs.StringSliceVar(&o.nodes, "nodes", nil, "names of the nodes of one site, instead of a label")
	fs.StringVar(&o.audit, "audit-log", "", "file of kube-apiserver's audit log, one event of audit.k8s.io/v1 a line, of "+
		"an hour or more: rates come from it instead of from metrics")
	fs.DurationVar(&o.during, "for", time.Minute, "time between the two reads of metrics; 0: read none of them")
	form := fs.StringP("output", "o", "table", "table, json or yaml")
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		if !slices.Contains([]string{"table", "json", "yaml"}, *form) {
			return cli.Usage("--output", *form, "table, json or yaml")
		}
		if o.during < 0 || o.during > longest {
			return cli.Usage("--for", o.during, fmt.Sprintf("0 to %s", longest))
		}
		if o.label != "" && len(o.nodes) > 0 {
			return cli.Usage("--nodes", strings.Join(o.nodes, ","), "one of --nodes and --site-label")
		}
		c, err := flags.Cluster()
		if err != nil {
			return err
		}
		r, err := o.report(ctx, c, stderr)
		if err != nil {
			return err
		}
		return r.Write(stdout, *form)
	}
}

// options are the flags.
type options struct {
	label, audit string
	nodes        []string
	during       time.Duration
}

// report reads the cluster and estimates.
func (o options) report(ctx context.Context, v *commands.Cluster, stderr io.Writer) (*Report, error) {
	d, err := discovery.NewDiscoveryClientForConfig(v.Config)
	if err != nil {
		return nil, err
	}
	var log *os.File
	if o.audit != "" { // a wrong name is told at once
		if log, err = os.Open(o.audit); err != nil {
			return nil, cli.Usage("--audit-log", o.audit, "a file that can be read: "+err.Error())
		}
		defer log.Close()
	}
	c := &cluster{Reader: v.Client, now: v.Now()}
	c.read(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(c.objects) == 0 && len(c.missing) > 0 {
		if m := c.missing[0]; !m.Forbidden {
			return nil, fmt.Errorf("read the cluster: %s", m.Why)
		}
	}
	g, err := c.group(o.label, o.nodes)
	if err != nil {
		return nil, err
	}
	var rates *Rates
	switch {
	case log != nil:
		if rates, err = ReadAudit(log, g.addresses); err != nil {
			return nil, cli.Usage("--audit-log", o.audit, "an audit log of kube-apiserver: "+err.Error())
		}
	case o.during > 0:
		if rates, err = o.watch(ctx, d, max(len(c.nodes), len(o.nodes)), stderr); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			c.miss("get /metrics", err)
		}
	}
	if rates == nil {
		rates = c.managed()
	}
	return c.estimate(g, rates, kubernetes(d)), nil
}

// watch reads the metrics twice.
func (o options) watch(ctx context.Context, d *discovery.DiscoveryClient, n int, stderr io.Writer) (*Rates, error) {
	read := func() (*reading, error) {
		body, err := d.RESTClient().Get().AbsPath("/metrics").Stream(ctx)
		if err != nil {
			return nil, err
		}
		defer body.Close()
		return readMetrics(body)
	}
	was, err := read()
	if err != nil {
		return nil, err
	}
	from := time.Now()
	if err := o.wait(ctx, stderr); err != nil {
		return nil, err
	}
	is, err := read()
	if err != nil {
		return nil, err
	}
	return between(was, is, time.Since(from), n)
}

// wait waits for --for, and says ten times how long that takes.
func (o options) wait(ctx context.Context, stderr io.Writer) error {
	each := max(o.during/10, time.Millisecond)
	for left := o.during; left > 0; left -= each {
		fmt.Fprintf(stderr, "changes are counted for %s; %s left\n", o.during, left.Round(100*time.Millisecond))
		timer := time.NewTimer(min(left, each))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
	return nil
}

// kubernetes is the version of the server; "": it is not known.
func kubernetes(d discovery.ServerVersionInterface) string {
	v, err := d.ServerVersion()
	if err != nil {
		return ""
	}
	return v.GitVersion
}

// minor is the minor version of Kubernetes 1; 0: it is not known.
func minor(of string) uint {
	v, err := version.ParseGeneric(of)
	if err != nil {
		return 0
	}
	return v.Minor()
}

// estimate puts all together.
func (c *cluster) estimate(g *grouping, rates *Rates, server string) *Report {
	in := Input{
		Sites: g.sites, PodSize: c.objects[pods].mean(), Compresses: minor(server) >= compresses,
	}
	var unsized []string
	in.Resources, unsized = c.resources(rates)
	at, all := 0, 0
	for _, s := range g.sites {
		at += s.Pods
	}
	for _, n := range c.pods {
		all += n
	}
	if all > 0 {
		in.PodsReplaced = rates.perDay(rates.Pods) * float64(at) / float64(all)
	}
	r := &Report{
		Kubernetes: server, Source: rates.By, Seconds: rates.Took.Seconds(), Label: g.label, Sites: Of(in),
		Resources: in.Resources, PodsReplaced: in.PodsReplaced, PodSize: in.PodSize, Missing: c.missing,
	}
	r.assume(g, rates, in, unsized)
	return r
}

// resources are what clients on nodes watch, with what is known of it. unsized are those of which no size is.
func (c *cluster) resources(rates *Rates) (all []Resource, unsized []string) {
	known := map[string]bool{pods: true} // each node watches its own
	for _, u := range usualClients() {
		known[u.name] = true
		r := c.resource(u.name, rates)
		r.DNS, r.Clients = u.dns, float64(u.nodes)
		if rates.Clients != nil {
			r.Clients = rates.Clients[u.name]
		}
		all = append(all, r)
	}
	for _, name := range slices.Sorted(maps.Keys(rates.Clients)) {
		if known[name] || own(name) {
			continue
		}
		r := c.resource(name, rates)
		r.Clients = rates.Clients[name]
		if r.Changes > 0 && r.Size == 0 {
			unsized = append(unsized, name)
		}
		all = append(all, r)
	}
	return all, unsized
}

func (c *cluster) resource(name string, rates *Rates) Resource {
	r := Resource{
		Name: name, Objects: c.objects[name].n, Size: rates.Sizes[name], Changes: rates.perDay(rates.Changes[name]),
	}
	if r.Size == 0 {
		r.Size = c.objects[name].mean()
	}
	return r
}

// own reports whether a kubelet watches a resource of all namespaces for its own node's objects only.
func own(name string) bool { return name == "podcertificaterequests.certificates.k8s.io" }

// Role is what the command needs.
const Role = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: weir-estimate
rules:
- apiGroups: [""]
  resources: [namespaces, nodes, pods, services]
  verbs: [list]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies, servicecidrs]
  verbs: [list]
- apiGroups: [node.k8s.io]
  resources: [runtimeclasses]
  verbs: [list]
- apiGroups: [storage.k8s.io]
  resources: [csidrivers]
  verbs: [list]
- nonResourceURLs: [/metrics]
  verbs: [get]
`
