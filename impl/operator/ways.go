package operator

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// Values of Way.Result.
const (
	WayOK      = "ok"
	WayError   = "error"
	WayUnknown = "unknown" // a node that would tell does not
)

// WaysReport is all that weir connectivity says.
type WaysReport struct {
	Success bool  `json:"success"` // all ways are known to work
	Ways    []Way `json:"ways"`
}

// Way is all ways of one kind in a pool.
type Way struct {
	Pool   string       `json:"pool"`
	Way    string       `json:"way"`            // as in "hub -> coordinator"
	Port   int32        `json:"port,omitempty"` // that is called; 0: it is that of the kubeconfig
	Result string       `json:"result"`
	Nodes  int          `json:"nodes"`              // of the pool
	Tell   int          `json:"tell"`               // that can tell of it
	Silent []string     `json:"silent,omitempty"`   // that cannot, and why
	Fails  []WayFailure `json:"failures,omitempty"` // that were told
	More   int          `json:"more,omitempty"`     // ways of all kinds that fail, and for which hubs had no room
}

// WayFailure is one that fails.
type WayFailure struct {
	Node   string     `json:"node"` // whose hub found it
	Peer   string     `json:"peer"` // the other end
	Port   int32      `json:"port,omitempty"`
	Cause  string     `json:"cause"` // one word
	Likely string     `json:"likely"`
	Told   *time.Time `json:"told,omitempty"`
	says   string
}

// WaysOf is what is known of a pool; "": of all.
func WaysOf(v *commands.View, only string) WaysReport {
	r := WaysReport{Success: true, Ways: []Way{}}
	for _, name := range v.PoolNames() {
		if only == "" || only == name {
			r.add(v, name)
		}
	}
	return r
}

func (r *WaysReport) add(v *commands.View, pool string) {
	own := v.Pool(pool)
	nodes := v.Members(pool)
	if own == nil {
		own = &poolv1.Pool{}
	}
	fails, more := v.Failures(pool)
	cloud := Way{Way: digest.ToCloud.String()}
	var inside []string // nodes that cannot tell of ways inside the pool, and why
	tell := 0
	for _, n := range nodes {
		h, beat := own.Status.Hub(n.Name), v.Heartbeat(n.Name)
		cut := commands.Condition(n, contract.CutOffCondition)
		isCut := beat.Delegated || cut != nil && cut.Status == corev1.ConditionTrue
		switch {
		case beat.Late:
			cloud.Fails = append(cloud.Fails, failure(poolv1.Failure{
				Node: n.Name, Edge: digest.Edge{Way: digest.ToCloud, Peer: "the cloud", Cause: digest.Unheard},
			}))
		case isCut && !slices.ContainsFunc(fails, func(f poolv1.Failure) bool {
			return f.Node == n.Name && f.Way == digest.ToCloud
		}):
			fails = append(fails, poolv1.Failure{
				Node: n.Name, Edge: digest.Edge{Way: digest.ToCloud, Peer: "the cloud", Cause: digest.CutOff},
			})
		}
		switch {
		case beat.Late:
			inside = append(inside, n.Name+": it is not heard")
		case isCut:
			inside = append(inside, n.Name+": it does not reach the cloud, which its hub would tell")
		case h == nil:
			inside = append(inside, n.Name+": its hub has told nothing")
		case v.Now.Sub(h.Told.Time) > digest.Lapsed:
			ago := v.Now.Sub(h.Told.Time).Round(time.Minute).String()
			inside = append(inside, n.Name+": its hub has told nothing for "+ago)
		default:
			tell++
		}
	}
	ways := map[digest.Way]*Way{digest.ToCloud: &cloud}
	cloud.Tell = len(nodes)
	order := []digest.Way{digest.ToCloud}
	for w, port := range expected(own) {
		ways[w] = &Way{Way: w.String(), Port: port, Tell: tell, Silent: inside}
		order = append(order, w)
	}
	for _, f := range fails {
		if ways[f.Way] == nil {
			ways[f.Way] = &Way{Way: f.Way.String(), Port: f.Port, Tell: tell, Silent: inside}
			order = append(order, f.Way)
		}
		ways[f.Way].Fails = append(ways[f.Way].Fails, failure(f))
	}
	place := func(w digest.Way) int { // one of a later version is the last
		return cmp.Or(1+slices.Index(digest.Ways(), w), len(digest.Ways())+1)
	}
	slices.SortFunc(order, func(a, b digest.Way) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
	for _, w := range order {
		is := ways[w]
		is.Pool, is.Nodes, is.Result = pool, len(nodes), WayOK
		switch {
		case len(is.Fails) > 0:
			is.Result, is.More = WayError, more
		case len(is.Silent) > 0 || len(nodes) == 0:
			is.Result = WayUnknown
		}
		r.Success = r.Success && is.Result == WayOK
		r.Ways = append(r.Ways, *is)
	}
}

// expected are the ways inside a pool that its hubs try, and their ports.
func expected(p *poolv1.Pool) map[digest.Way]int32 {
	if p.Status.Mode == poolv1.ModeLeaderHubs {
		return map[digest.Way]int32{digest.ToHub: contract.HubPoolPort}
	}
	return map[digest.Way]int32{
		digest.ToCoordinator: contract.CoordinatorPort, digest.FromCoordinator: contract.HubPoolPort,
		digest.ToHub: contract.HubPoolPort,
	}
}

func failure(f poolv1.Failure) WayFailure {
	out := WayFailure{
		Node: f.Node, Peer: f.Peer, Port: f.Port, Cause: f.Cause, Likely: digest.Likely(f.Cause), says: f.Says(),
	}
	if !f.Told.IsZero() {
		out.Told = &f.Told
	}
	return out
}

var wayMarks = map[string]string{WayOK: "√", WayError: "×", WayUnknown: "-"}

// Write writes it as table, json or yaml.
func (r WaysReport) Write(w io.Writer, form string) error {
	if written, err := commands.Write(w, form, r); written {
		return err
	}
	var b strings.Builder
	last := ""
	for _, is := range r.Ways {
		if is.Pool != last {
			fmt.Fprintf(&b, "pool %s\n", is.Pool)
			last = is.Pool
		}
		at := ""
		if is.Port != 0 {
			at = fmt.Sprintf(", port %d", is.Port)
		}
		fmt.Fprintf(&b, "%s %s%s: %d of %d nodes tell\n", wayMarks[is.Result], is.Way, at, is.Tell, is.Nodes)
		for _, f := range is.Fails {
			fmt.Fprintf(&b, "    × %s\n", f.says)
		}
		if is.More > 0 {
			fmt.Fprintf(&b, "    × %d more ways of any kind\n", is.More)
		}
		for _, s := range is.Silent {
			fmt.Fprintf(&b, "    - %s\n", s)
		}
	}
	if len(r.Ways) == 0 {
		b.WriteString("there is no pool\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
