package operator

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// page is all that weir status says.
type page struct {
	Manager string    `json:"manager"` // who leads; "": nobody does
	Pools   []poolRow `json:"pools"`
}

// poolRow is one.
type poolRow struct {
	Name         string     `json:"name"`
	Mode         string     `json:"mode,omitempty"` // as its hubs are told; "": nothing is told
	Leaders      []string   `json:"leaders,omitempty"`
	Coordinators []string   `json:"coordinators,omitempty"`
	SilentSince  *time.Time `json:"silentSince,omitempty"`
	Members      int        `json:"members"`
	Heard        int        `json:"heard"`
	CutOff       int        `json:"cutOff"`   // heard through the pool alone
	Joined       int        `json:"joined"`   // their kubelets call their hubs
	Told         int        `json:"hubsTold"` // of themselves: what follows is of these
	traffic
	Nodes    []nodeRow     `json:"nodes"`
	Suggests *suggestBrief `json:"suggests,omitempty"` // of weir pool suggest
}

// nodeRow is one of a pool.
type nodeRow struct {
	Name      string     `json:"name"`
	State     string     `json:"state"` // Heard, CutOff, Silent or Lost
	Heartbeat *int       `json:"heartbeatSeconds,omitempty"`
	Joined    bool       `json:"joined"`
	Hub       bool       `json:"hub"`                       // it has told what it holds
	Ends      *time.Time `json:"certificatesEnd,omitempty"` // the first of those that it told of
	Version   string     `json:"hubVersion,omitempty"`
	Role      string     `json:"role,omitempty"` // Leader, Follower or Pending
	Told      *time.Time `json:"told,omitempty"` // when the hub told last
	Started   *time.Time `json:"hubStarted,omitempty"`
	traffic
}

// States of nodes.
const (
	stateHeard  = "Heard"
	stateCutOff = "CutOff" // through its pool alone
	stateSilent = "Silent" // with all of its pool
	stateLost   = "Lost"
)

// pageOf is the page of what was seen.
func pageOf(v *commands.View, only string) page {
	p := page{Pools: []poolRow{}}
	if l := v.ManagerLease; l != nil && l.Spec.HolderIdentity != nil {
		p.Manager = *l.Spec.HolderIdentity
	}
	for _, name := range v.PoolNames() {
		if only == "" || only == name {
			one := poolOf(v, name)
			if own := v.Pool(name); own != nil {
				s := suggest(own, v.NodePool(name), v.Aggregated, v.Now)
				one.Suggests = s.Brief()
			}
			p.Pools = append(p.Pools, one)
		}
	}
	return p
}

func poolOf(v *commands.View, name string) poolRow {
	p := poolRow{Name: name, Nodes: []nodeRow{}}
	if own := v.Pool(name); own != nil {
		p.Mode, p.Coordinators = own.Status.Mode, own.Status.Coordinators
		if own.Status.SilentSince != nil {
			p.SilentSince = &own.Status.SilentSince.Time
		}
	}
	hubs := map[string]poolv1.Hub{}
	if own := v.Pool(name); own != nil {
		for _, h := range own.Status.Hubs {
			hubs[h.Node] = h
		}
		if own.Status.Mode == poolv1.ModeCoordinator && own.Status.Leader != "" {
			p.Leaders = []string{own.Status.Leader}
		}
	}
	if n := v.NodePool(name); n != nil && p.Mode != poolv1.ModeCoordinator {
		for _, l := range n.Status.LeaderEndpoints {
			p.Leaders = append(p.Leaders, l.NodeName)
		}
	}
	for _, n := range v.Members(name) {
		one := nodeOf(v, n, p.SilentSince != nil)
		if h, told := hubs[n.Name]; told {
			one.tells(h, v.Now)
			p.add(one.traffic)
			p.Told++
		}
		p.Nodes = append(p.Nodes, one)
		p.Members++
		if one.State == stateHeard || one.State == stateCutOff {
			p.Heard++
		}
		if one.State == stateCutOff {
			p.CutOff++
		}
		if one.Joined {
			p.Joined++
		}
	}
	return p
}

func nodeOf(v *commands.View, n *corev1.Node, silent bool) nodeRow {
	h := v.Heartbeat(n.Name)
	one := nodeRow{Name: n.Name, State: stateHeard}
	switch {
	case h.Late && silent:
		one.State = stateSilent
	case h.Late:
		one.State = stateLost
	case h.Delegated:
		one.State = stateCutOff
	}
	if h.Age >= 0 {
		seconds := int(h.Age / time.Second)
		one.Heartbeat = &seconds
	}
	if c := commands.Condition(n, contract.JoinedCondition); c != nil {
		one.Joined = c.Status == corev1.ConditionTrue
	}
	if holds, err := digest.ParseHolding(n.Annotations[contract.HoldsAnnotation]); err == nil &&
		n.Annotations[contract.HoldsAnnotation] != "" {
		one.Hub = true
		for _, life := range holds.Certificates {
			if one.Ends == nil || life.End.Before(*one.Ends) {
				end := life.End.UTC()
				one.Ends = &end
			}
		}
	}
	return one
}

// tells takes what the hub of a node has told. How old the relays of a node are that is not heard, or of a hub that has
// ceased to tell, nobody knows.
func (n *nodeRow) tells(h poolv1.Hub, now time.Time) {
	told, started := h.Told.UTC(), h.Started.UTC()
	n.Version, n.Role, n.Told, n.Started, n.traffic = h.Version, h.Role, &told, &started, trafficOf(h)
	if n.State != stateHeard || now.Sub(told) > digest.Lapsed {
		n.Freshness = nil
	}
}

// Write writes it as table, wide, json or yaml.
func (p page) Write(w io.Writer, form string, now time.Time) error {
	if written, err := commands.Write(w, form, p); written {
		return err
	}
	if len(p.Pools) == 0 {
		_, err := fmt.Fprintln(w, "there are no pools: weir pool create NAME")
		return err
	}
	return p.table(w, form == "wide", now)
}

func (p page) table(w io.Writer, wide bool, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "POOL\tMODE\tNODES\tHEARD\tCUT OFF\tJOINED\tLEADER\tFRESHNESS\tUPLINK\tSAVED\tSILENT\tCOORDINATOR")
	for _, o := range p.Pools {
		silent := ""
		if o.SilentSince != nil {
			silent = duration.HumanDuration(now.Sub(*o.SilentSince))
		}
		row(t, o.Name, o.Mode, fmt.Sprint(o.Members), fmt.Sprint(o.Heard), fmt.Sprint(o.CutOff), fmt.Sprint(o.Joined),
			strings.Join(o.Leaders, ","),
			seconds(o.Freshness), size(o.Uplink), size(o.Saved), silent, strings.Join(o.Coordinators, ","))
	}
	if wide {
		fmt.Fprintln(t,
			"\nNODE\tPOOL\tSTATE\tHEARTBEAT\tHUB\tJOINED\tROLE\tFRESHNESS\tUPLINK\tSERVED\t"+
				"SAVED\tIMAGES PULLED\tIMAGES SAVED\tIMAGES SERVED\tTOLD\tVERSION\tCERTIFICATES END")
		for _, o := range p.Pools {
			for _, n := range o.Nodes {
				beat, ends, told := "", "", ""
				if n.Heartbeat != nil {
					beat = duration.HumanDuration(time.Duration(*n.Heartbeat)*time.Second) + " ago"
				}
				if n.Ends != nil {
					ends = n.Ends.Format(time.DateOnly)
				}
				if n.Told != nil {
					told = duration.HumanDuration(max(now.Sub(*n.Told), 0)) + " ago"
				}
				pulled, saved, served := imageCells(n.Images)
				row(t, n.Name, o.Name, n.State, beat, yes(n.Hub), yes(n.Joined), n.Role, seconds(n.Freshness), size(n.Uplink),
					size(n.Served), size(n.Saved), pulled, saved, served, told, n.Version, ends)
			}
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var below []string
	for _, o := range p.Pools {
		if o.Images != nil {
			below = append(below, imagesLine(o.Name, o.Images))
		}
		if o.Suggests != nil {
			below = append(below, o.Suggests.Line(o.Name))
		}
	}
	if len(below) > 0 {
		fmt.Fprintln(w, "\n"+strings.Join(below, "\n"))
	}
	return nil
}

// row writes cells; an empty one is a dash.
func row(w io.Writer, cells ...string) {
	for i, c := range cells {
		cells[i] = cmp.Or(c, "-")
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
