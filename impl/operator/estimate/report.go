package estimate

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/directory"
)

// Report is what the command prints. Its form as JSON is stable: fields are added, and neither renamed nor taken away.
type Report struct {
	Kubernetes   string     `json:"kubernetes"` // version; "": not known
	Source       Source     `json:"source"`
	Seconds      float64    `json:"seconds"` // that the source covers
	Label        string     `json:"siteLabel,omitempty"`
	Sites        []Row      `json:"sites"`
	Resources    []Resource `json:"resources"`
	PodsReplaced float64    `json:"podsReplacedPerDay"`
	PodSize      float64    `json:"bytesOfAPod"`
	Assumptions  []string   `json:"assumptions"`
	Missing      []Missing  `json:"missing,omitempty"`
	Role         string     `json:"grant,omitempty"` // the ClusterRole that gives what is missing
}

// assume says what the estimate rests on.
func (r *Report) assume(g *grouping, rates *Rates, in Input, unsized []string) {
	add := func(format string, args ...any) { r.Assumptions = append(r.Assumptions, fmt.Sprintf(format, args...)) }
	r.Assumptions = append(r.Assumptions, rates.said()...)
	if rates.Clients == nil {
		add("The clients of each node are not known. They are taken to be a kubelet, a kube-proxy and a network plugin " +
			"that watches Nodes.")
	} else {
		add("Clients of a node are all watches of all objects that were seen, divided by the nodes.")
	}
	if n := len(g.left); n > 0 {
		add("%d nodes are of the control plane, or have no label %s, and are in no site: %s.", n, g.label, some(g.left))
	}
	add("Watches of stock clients are older than ten minutes, so kube-apiserver compresses none of them.")
	switch {
	case r.Kubernetes == "":
		add("The version of Kubernetes is not known. It is taken to be one that compresses no watch.")
	case in.Compresses:
		add("With Weir the watches stay compressed: %.2f of a change crosses the link, once for the site.", compressed)
	default:
		add("Kubernetes before 1.%d compresses no watch, with Weir either.", compresses)
	}
	if m := minor(r.Kubernetes); m > 0 && m < 36 {
		add("Weir needs Kubernetes 1.36 or later.")
	}
	if more := beyond(in.Resources); len(more) > 0 {
		add("The pool shares what it does not by default, as weir pool suggest would say: %s.", some(more))
	}
	if len(unsized) > 0 {
		add("Not counted, because nothing tells the size of a change: %s.", some(unsized))
	}
	add("Sites whose nodes are more than one all have Weir. A pod counts for a site by the pods that the site has.")
	add("Counted is the Kubernetes API over TLS, both ways. Lists after a broken link, images, logs and exec are not.")
	add("The model is within %.0f %% of what was measured for the workloads in docs/bytes.md, if each day is like this.",
		100*within)
	if slices.ContainsFunc(r.Missing, func(m Missing) bool { return m.Forbidden }) {
		r.Role = Role
	}
}

// beyond are the resources that a pool shares only if it is told to.
func beyond(all []Resource) (names []string) {
	usual := directory.DefaultScope()
	for _, r := range all {
		resource, group, _ := strings.Cut(r.Name, ".")
		shared := slices.ContainsFunc(usual, func(name string) bool {
			return strings.HasPrefix(name, resource+".v") && strings.HasSuffix(name, "."+group)
		})
		if r.Clients > 0 && !shared && !r.private() {
			names = append(names, r.Name)
		}
	}
	return names
}

// some are at most five names, and how many more there are.
func some(all []string) string {
	const most = 5
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// Write writes it as table, json or yaml.
func (r *Report) Write(w io.Writer, form string) error {
	if written, err := commands.Write(w, form, r); written {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "SITE\tNODES\tPODS\tSTOCK A DAY\tWEIR A DAY\tWEIR/STOCK\tWEIR")
	for _, s := range r.Sites {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%.2f\t%s: %s\n", s.Name, s.Nodes, s.Pods, commands.Size(int64(s.Stock)),
			commands.Size(int64(s.Weir)), s.Ratio, s.Verdict, s.Why)
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "WATCHED ON NODES\tOBJECTS\tA CHANGE\tCHANGES A DAY\tCLIENTS OF A NODE")
	for _, x := range r.Resources {
		fmt.Fprintf(t, "%s\t%d\t%s\t%.0f\t%.1f\n", x.Name, x.Objects, commands.Size(int64(x.Size)), x.Changes, x.Clients)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%.0f pods are replaced at these sites in a day, of %s each.\n\nAssumptions:\n", r.PodsReplaced,
		commands.Size(int64(r.PodSize)))
	for _, a := range r.Assumptions {
		fmt.Fprintln(w, "- "+a)
	}
	if len(r.Missing) > 0 {
		fmt.Fprintln(w, "\nNot read:")
		for _, m := range r.Missing {
			fmt.Fprintf(w, "- %s: %s\n", m.What, m.Why)
		}
	}
	if r.Role != "" {
		fmt.Fprintf(w, "\nThis ClusterRole grants what is missing:\n\n%s", r.Role)
	}
	if !slices.ContainsFunc(r.Sites, func(s Row) bool { return s.Verdict == Pays }) {
		_, err := fmt.Fprintln(w, "\nWeir does not pay at any of these sites, by this estimate.")
		return err
	}
	return nil
}
