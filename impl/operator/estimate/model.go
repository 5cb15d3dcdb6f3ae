package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/digest"
)

// Input is what is known of a cluster.
type Input struct {
	Sites     []Site
	Resources []Resource
	PodSize   float64 // bytes of a pod; 0: as in the reports
	// PodsReplaced are the pods that begin in a day on nodes of sites; each counts for a site by its share of Pods.
	PodsReplaced float64
	// Compresses is whether kube-apiserver compresses a watch, which Kubernetes 1.37 does.
	Compresses bool
	// Young is whether the watches of stock clients are compressed, too. Those of a cluster that runs are not: each
	// begins again after ten minutes, and then without a list.
	Young bool
}

// Site is a place with nodes behind one link.
type Site struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Pods  int    `json:"pods"`
	DNS   int    `json:"dnsPods"` // pods of CoreDNS among them
}

// Resource is one that clients on nodes watch in the whole cluster.
type Resource struct {
	Name    string  `json:"resource"` // endpointslices.discovery.k8s.io
	Objects int     `json:"objects"`
	Size    float64 `json:"bytesOfAChange"` // of protobuf, uncompressed; 0: unknown, and nothing is counted
	Changes float64 `json:"changesPerDay"`
	Clients float64 `json:"clientsPerNode"` // watches of all of it on each node
	DNS     int     `json:"clientsPerDNSPod"`
}

// private reports whether a pool shares it with nobody.
func (r Resource) private() bool {
	resource, group, _ := strings.Cut(r.Name, ".")
	return digest.Private(resource, group)
}

// Row is what one site costs in a day.
type Row struct {
	Site
	Stock   float64 `json:"stockBytesPerDay"`
	Weir    float64 `json:"weirBytesPerDay"`
	Ratio   float64 `json:"weirToStock"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
}

// Verdict is whether Weir pays at a site.
type Verdict string

// The verdicts.
const (
	Pays   Verdict = "pays"
	Unsure Verdict = "unsure" // the difference is smaller than the error of the estimate
	Not    Verdict = "does not pay"
)

// Of estimates each site.
func Of(in Input) (rows []Row) {
	all := 0
	for _, s := range in.Sites {
		all += s.Pods
	}
	for _, s := range in.Sites {
		r := Row{Site: s}
		r.Stock, r.Weir = in.quiet(s)
		for _, x := range in.Resources {
			stock, weir := in.changes(s, x)
			r.Stock += stock
			r.Weir += weir
		}
		if all > 0 {
			stock, weir := in.replaced(in.PodsReplaced * float64(s.Pods) / float64(all))
			r.Stock += stock
			r.Weir += weir
		}
		r.judge()
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(b.Stock, a.Stock), cmp.Compare(a.Name, b.Name)) })
	return rows
}

// judge says whether Weir pays, and why.
func (r *Row) judge() {
	if r.Stock > 0 {
		r.Ratio = r.Weir / r.Stock
	}
	saved := fmt.Sprintf("saves %.0f %%", 100*(1-r.Ratio))
	switch {
	case r.Nodes < 2:
		r.Verdict, r.Why = Not, "a pool of one node shares nothing"
	case r.Ratio >= 1:
		r.Verdict, r.Why = Not, "what its nodes ask for themselves is more than what they share"
	case r.Ratio > 1/(1+within):
		r.Verdict, r.Why = Unsure, saved+", which is less than the error of this estimate"
	default:
		r.Verdict, r.Why = Pays, saved
	}
}

// quiet is what a site costs while nothing changes but times in statuses of Nodes. Each node reads its own.
func (in Input) quiet(s Site) (stock, weir float64) {
	n, size, more := float64(s.Nodes), 0.0, 0.0
	for _, u := range usualClients() {
		more -= float64(u.nodes)
	}
	for _, r := range in.Resources {
		more += r.Clients
		if r.Name == nodes {
			size = r.Size
		}
	}
	stock = n * (stockQuiet + stockWatch*max(more, 0) + stockOwnNode*size/statusPeriod)
	weir = weirPoolQuiet + n*(weirNodeQuiet+in.left()*size/weirStatusPeriod)
	return stock * day, weir * day
}

// left is what is left of a change on a compressed watch.
func (in Input) left() float64 {
	if in.Compresses {
		return compressed
	}
	return 1
}

// changes are those of one resource: with stock Kubernetes in full to each client, with Weir once.
func (in Input) changes(s Site, r Resource) (stock, weir float64) {
	clients := float64(s.Nodes)*r.Clients + float64(s.DNS*r.DNS)
	bytes := r.Changes * r.Size
	stock = clients * bytes
	if in.Young {
		stock *= in.left()
	}
	switch {
	case clients == 0: // a pool shares what is read
		return 0, 0
	case r.private():
		return stock, stock
	case r.Name == nodes:
		bytes *= in.rarer()
	}
	return stock, bytes * in.left()
}

// rarer is what is left of the changes of Nodes when all sites have Weir: their statuses that only say when come less
// often. What remains of them is changes of something else.
func (in Input) rarer() float64 {
	sites, changes := 0.0, 0.0
	for _, s := range in.Sites {
		if s.Nodes > 1 {
			sites += float64(s.Nodes)
		}
	}
	for _, r := range in.Resources {
		if r.Name == nodes {
			changes = r.Changes
		}
	}
	if changes == 0 {
		return 1
	}
	spared := sites * day * (1/statusPeriod - 1/weirStatusPeriod)
	return max(1-spared/changes, statusPeriod/weirStatusPeriod)
}

// replaced is what so many pods cost their own nodes, which read and write them alone.
func (in Input) replaced(n float64) (stock, weir float64) {
	size := cmp.Or(in.PodSize, podSize)
	return n * (stockPodBytes + stockPodSizes*size), n * (weirPodBytes + weirPodSizes*size)
}
