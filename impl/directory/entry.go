package directory

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/relay"
)

// Bounds of an Entry.
const (
	MaxText         = 64 << 10 // bytes, as it travels inside a pool
	MaxLeaders      = 64
	MaxCoordinators = 9
	MaxReplicas     = 9
	MaxScope        = 64
	maxAddresses    = 4 // of one leader hub
)

// Entry is what a pool is told about itself. It is a value: nobody changes what its slices hold.
type Entry struct {
	Pool    string `json:"pool"`
	Version uint64 `json:"version"` // the number under which it was signed, see package bulletin; 0: nothing was told
	// Mode is contract.ModeCoordinator or contract.ModeLeaderHubs. "" of what was told: nothing; "" of Directory.Now: the
	// pool shares nothing.
	Mode         string   `json:"mode,omitempty"`
	Connected    bool     `json:"connected,omitempty"` // its nodes reach each other
	Leaders      []Leader `json:"leaders,omitempty"`
	Coordinators []string `json:"coordinators,omitempty"` // https://host:port of each replica
	// that weir-manager runs, ready or not; none: somebody else runs the coordinator.
	Replicas []Replica `json:"replicas,omitempty"`
	Scope    []Shared  `json:"scope,omitempty"` // sorted by Shared.String
	// Allowance is contract.LeaderHubAllowance, see OfflineAllowance.
	Allowance string `json:"offlineAllowance,omitempty"`
	// Images are how images of registries are shared.
	Images ImageRules `json:"images,omitempty"`
	// Gate is the relay beside kube-apiserver, if there is one.
	Gate Gate `json:"gate,omitzero"`
	// Reach is what the gate may reach in the pool, beside the kubelets of its nodes; sorted, each port once.
	Reach Reach `json:"reach,omitempty"`
}

// Replica is one of a coordinator, or all of it, that weir-manager runs.
type Replica struct {
	Placement string     `json:"placement"` // names this stay of it on the node
	Node      string     `json:"node"`
	Address   netip.Addr `json:"address"`
}

// Name is that of the replica among the others.
func (r Replica) Name() string { return contract.ReplicaName(r.Node) }

// URL is where it is met at a port.
func (r Replica) URL(port int) *url.URL {
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(r.Address.String(), strconv.Itoa(port))}
}

// String is the form in contract.LeaderHubReplicas.
func (r Replica) String() string { return r.Placement + "/" + r.Node + "/" + r.Address.String() }

// Placed is the replica on a node; false: there is none.
func (e Entry) Placed(node string) (Replica, bool) {
	i := slices.IndexFunc(e.Replicas, func(r Replica) bool { return r.Node == node })
	if i < 0 {
		return Replica{}, false
	}
	return e.Replicas[i], true
}

// Leader is a leader hub.
type Leader struct {
	Node      string           `json:"node"`
	Addresses []netip.AddrPort `json:"addresses"` // of its pool port, one or more
}

// Shared is a resource that the pool has one copy of.
type Shared struct {
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	// Kind is that of a custom resource, with a "!" behind it if it has no namespaces; "" if nobody told.
	Kind string `json:"kind,omitempty"`
}

// SharedOf is a resource as an Entry names it.
func SharedOf(r relay.Resource) Shared {
	s := Shared{Group: r.Group, Version: r.Version, Resource: r.Resource}
	if !r.Known() {
		if s.Kind = r.Kind; !r.Namespaced {
			s.Kind += "!"
		}
	}
	return s
}

// SharedAll are resources as an Entry names them.
func SharedAll(resources []relay.Resource) (all []Shared) {
	for _, r := range resources {
		all = append(all, SharedOf(r))
	}
	return all
}

// String is the form of --pool-scope-resources, "widgets.v1.example.com", without the kind.
func (s Shared) String() string { return s.Resource + "." + s.Version + "." + s.Group }

// Flag is String with the kind behind it, if that is known: what relay.ParseResource reads.
func (s Shared) Flag() string {
	if s.Kind == "" {
		return s.String()
	}
	return s.String() + "=" + s.Kind
}

// OfflineAllowance is for how long a certificate of the pool is valid after its end, while there is no sign of the
// cloud.
func (e Entry) OfflineAllowance() time.Duration {
	if d, err := time.ParseDuration(e.Allowance); err == nil { // check saw to it
		return d
	}
	return contract.OfflineAllowance
}

// URLs are where the coordinator is.
func (e Entry) URLs() (all []*url.URL) {
	for _, c := range e.Coordinators {
		if u, err := url.Parse(c); err == nil { // check saw to it
			all = append(all, u)
		}
	}
	return all
}

// form is how an Entry is signed.
var form = bulletin.Form{Subject: "directory", Field: "directory", Max: MaxText}

// Sign is the entry as one line of text.
func (e Entry) Sign(a *pki.Authority) (line []byte, err error) {
	if err = e.check(e.Pool); err == nil {
		line, err = form.Sign(a, e)
	}
	if err != nil {
		return nil, fmt.Errorf("directory of pool %s: %w", e.Pool, err)
	}
	return line, nil
}

// Open reads a signed Entry of a pool, if one of some authorities has signed it: by.
func Open(line []byte, pool string, authorities []*x509.Certificate) (e Entry, by *x509.Certificate, err error) {
	fail := func(err error) (Entry, *x509.Certificate, error) {
		return Entry{}, nil, fmt.Errorf("directory of pool %s: %w", pool, err)
	}
	s, err := form.Read(line)
	if err != nil {
		return fail(err)
	}
	if by = s.By(authorities...); by == nil {
		return fail(bulletin.ErrUnsigned)
	}
	if e, err = decode(pool, s.Doc); err != nil {
		return Entry{}, nil, err
	}
	return e, by, nil
}

// decode reads an Entry of a pool.
func decode(pool string, text []byte) (Entry, error) {
	fail := func(err error) (Entry, error) { return Entry{}, fmt.Errorf("directory of pool %s: %w", pool, err) }
	var e Entry
	if err := json.Unmarshal(text, &e); err != nil {
		return fail(err)
	}
	if e.Version == 0 {
		return fail(errors.New("version is 0, want the number of what was signed"))
	}
	if err := e.check(pool); err != nil {
		return fail(err)
	}
	return e, nil
}

// check reports what is invalid, whoever tells it.
func (e Entry) check(pool string) error {
	if e.Pool != pool {
		return fmt.Errorf("it is of pool %.80q", e.Pool)
	}
	switch e.Mode {
	case "", contract.ModeCoordinator, contract.ModeLeaderHubs:
	default:
		return fmt.Errorf("%s is %.80q, want %s or %s", contract.LeaderHubMode, e.Mode, contract.ModeCoordinator,
			contract.ModeLeaderHubs)
	}
	for _, check := range []func() error{
		e.checkLeaders, e.checkCoordinators, e.checkReplicas, e.checkScope, e.checkAllowance, e.Images.check, e.Gate.check,
		e.Reach.check,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (e Entry) checkLeaders() error {
	if n := len(e.Leaders); n > MaxLeaders {
		return fmt.Errorf("%d leader hubs, want %d at most", n, MaxLeaders)
	}
	nodes, owner := map[string]bool{}, map[netip.AddrPort]string{}
	for _, l := range e.Leaders {
		switch n := len(l.Addresses); {
		case len(validation.IsDNS1123Subdomain(l.Node)) > 0:
			return fmt.Errorf("node name of a leader hub is %.80q, want the name of a Node", l.Node)
		case nodes[l.Node]:
			return fmt.Errorf("leader hub %s is named twice", l.Node)
		case n == 0 || n > maxAddresses:
			return fmt.Errorf("leader hub %s has %d addresses, want 1 to %d", l.Node, n, maxAddresses)
		}
		nodes[l.Node] = true
		for _, a := range l.Addresses {
			if a.Port() == 0 || !plain(a.Addr()) {
				return fmt.Errorf("address of leader hub %s is %s, want the IP address of a node and a port", l.Node, a)
			}
			if other := owner[a]; other != "" {
				return fmt.Errorf("address %s is of leader hub %s and of %s, want one of them", a, other, l.Node)
			}
			owner[a] = l.Node
		}
	}
	return nil
}

func (e Entry) checkCoordinators() error {
	if n := len(e.Coordinators); n > MaxCoordinators {
		return fmt.Errorf("%s has %d URLs, want %d at most", contract.LeaderHubCoordinators, n, MaxCoordinators)
	}
	hosts := map[string]bool{}
	for _, c := range e.Coordinators {
		u, ok := PlainURL(c)
		if !ok {
			return fmt.Errorf("%s has %.80q, want a URL of the form https://host:port", contract.LeaderHubCoordinators, c)
		}
		if hosts[u.Host] {
			return fmt.Errorf("%s has %.80q twice, want each replica once", contract.LeaderHubCoordinators, c)
		}
		hosts[u.Host] = true
	}
	return nil
}

func (e Entry) checkReplicas() error {
	if n := len(e.Replicas); n > MaxReplicas {
		return fmt.Errorf("%s has %d replicas, want %d at most", contract.LeaderHubReplicas, n, MaxReplicas)
	}
	taken := map[string]bool{}
	for _, r := range e.Replicas {
		if len(validation.IsDNS1123Label(r.Placement)) > 0 || len(validation.IsDNS1123Subdomain(r.Node)) > 0 ||
			!plain(r.Address) {
			return fmt.Errorf("%s has %.200q, want <placement>/<node>/<IP address>", contract.LeaderHubReplicas, r)
		}
		for _, one := range []string{"placement " + r.Placement, "node " + r.Node, "address " + r.Address.String()} {
			if taken[one] {
				return fmt.Errorf("%s has the %.80q twice, want each once", contract.LeaderHubReplicas, one)
			}
			taken[one] = true
		}
	}
	return nil
}

func (e Entry) checkAllowance() error {
	if e.Allowance == "" {
		return nil
	}
	if d, err := time.ParseDuration(e.Allowance); err != nil || d < 0 || d > contract.OfflineAllowance {
		return fmt.Errorf("%s is %.80q, want a duration, 0s to %v", contract.LeaderHubAllowance, e.Allowance,
			contract.OfflineAllowance)
	}
	return nil
}

// plain reports whether an address is that of one machine.
func plain(ip netip.Addr) bool {
	return ip.IsValid() && !ip.IsUnspecified() && !ip.IsMulticast() && ip.Zone() == "" && !ip.Is4In6()
}

// DefaultScope are the resources that a pool may share if nobody names others, as --pool-scope-resources names them:
// what components that run on each node read of the whole cluster. The kubelet reads services, csidrivers and
// runtimeclasses. kube-proxy reads services, endpointslices and servicecidrs. CoreDNS reads services, endpointslices
// and namespaces. flannel reads nodes. Calico, Cilium and kindnet read networkpolicies and namespaces beside these.
// Pods, ConfigMaps and ServiceAccounts are left out: the API lets a node read its own share of them alone.
func DefaultScope() []string {
	return []string{
		"endpoints.v1.", contract.EndpointSlices + ".v1." + contract.DiscoveryGroup, "services.v1.", "namespaces.v1.",
		"nodes.v1.", "csidrivers.v1.storage.k8s.io", "runtimeclasses.v1.node.k8s.io", "servicecidrs.v1.networking.k8s.io",
		"networkpolicies.v1.networking.k8s.io",
	}
}

func (e Entry) checkScope() error {
	if n := len(e.Scope); n > MaxScope {
		return fmt.Errorf("%s has %d resources, want %d at most", contract.LeaderHubScope, n, MaxScope)
	}
	fail := func(s Shared, want string) error {
		return fmt.Errorf("%s has %.200q, want %s", contract.LeaderHubScope, s.Group+"/"+s.Version+"/"+s.Resource, want)
	}
	versions := map[string]string{}
	for _, s := range e.Scope {
		name := s.Resource + "." + s.Group
		switch version, twice := versions[name]; {
		case s.Group != "" && len(validation.IsDNS1123Subdomain(s.Group)) > 0 ||
			len(validation.IsDNS1035Label(s.Version)) > 0 || len(validation.IsDNS1035Label(s.Resource)) > 0:
			return fail(s,
				"group/version/resource, as in discovery.k8s.io/v1/endpointslices or, for the core group, /v1/endpoints")
		case s.Kind != "" && len(validation.IsDNS1035Label(strings.ToLower(strings.TrimSuffix(s.Kind, "!")))) > 0:
			return fail(s, fmt.Sprintf("a kind behind it and not %.80q", s.Kind))
		case s.Group == "" && s.Resource == "secrets":
			return fail(s, "no Secrets: each node of the pool may read all that the pool shares")
		case s.Group == "coordination.k8s.io":
			return fail(s, "another group: coordination.k8s.io is the coordinator's own")
		case twice && version == s.Version:
			return fail(s, "each resource once")
		case twice:
			return fail(s, "one version of it: it is there as "+version+" too")
		}
		versions[name] = s.Version
	}
	if !slices.IsSortedFunc(e.Scope, func(a, b Shared) int { return strings.Compare(a.String(), b.String()) }) {
		return fmt.Errorf("%s is not in order", contract.LeaderHubScope)
	}
	return nil
}

// knowing is an entry with the kinds that another one has and it has not.
func (e Entry) knowing(other Entry) Entry {
	e.Scope = slices.Clone(e.Scope)
	for i, s := range e.Scope {
		if j := slices.IndexFunc(other.Scope, func(o Shared) bool { return o.String() == s.String() }); s.Kind == "" &&
			j >= 0 {
			e.Scope[i].Kind = other.Scope[j].Kind
		}
	}
	return e
}

// filled is an entry in which flags stand for what it does not tell.
func (e Entry) filled(flags Entry) Entry {
	if e.Version == 0 { // leader hubs of flags are used until an object was seen
		e.Mode, e.Connected, e.Leaders = flags.Mode, flags.Connected, flags.Leaders
	}
	if len(e.Coordinators) == 0 {
		e.Coordinators = flags.Coordinators
	}
	if len(e.Scope) == 0 {
		e.Scope = flags.Scope
	} else {
		e = e.knowing(flags)
	}
	switch {
	case e.Mode != "":
	case len(e.Coordinators) > 0:
		e.Mode = contract.ModeCoordinator
	case e.Connected:
		e.Mode = contract.ModeLeaderHubs
	}
	return e
}
