package pki

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// Kind is the name of an Identity.
type Kind string

// The kinds.
const (
	Hub         Kind = "hub"
	Coordinator Kind = "coordinator"
	Replica     Kind = "replica"
	Viewer      Kind = "viewer"
	Operator    Kind = "operator"
	HubAtCloud  Kind = "hub-at-cloud"
	Forwarder   Kind = "forwarder"
	Door        Kind = "door"
	Kubelet     Kind = "kubelet"
)

// Issuer is whose authority signs a certificate.
type Issuer string

// The issuers.
const (
	PoolIssuer    Issuer = "pool"    // the pool's own authority; its key is in the cloud only
	ClusterIssuer Issuer = "cluster" // the authority that kube-apiserver trusts
	NodeIssuer    Issuer = "node"    // an authority of the node, for those on the node
)

// Life is how long a certificate may live.
type Life struct{ Least, Usual, Most time.Duration }

// Identity is all that the certificates of one kind have in common. <pool>, <node> and <name> stand for what a Subject
// says.
type Identity struct {
	Kind          Kind
	About         string
	CommonName    string
	Organizations []string // exactly these
	Leads         string   // organization that the signer adds for a Subject that may lead; nobody asks for it; "": none
	Client        bool     // its holder proves by it who calls
	Server        bool     // and by it who answers, at addresses of its machine
	Keys          []string // types of key
	Life          Life
	Issuer        Issuer
	Signer        string // signerName of a CertificateSigningRequest for it; "": it is made by hand, or by others
	Joins         bool   // a node may ask for it by a bootstrap token
}

// Ends of lives. A node may be away for a month, and comes back with the certificate that it left with.
const (
	day        = 24 * time.Hour
	shortest   = 10 * time.Minute // kube-controller-manager signs nothing shorter
	longest    = 90 * day
	byHand     = 30 * day  // of a person's
	errand     = time.Hour // of a forwarder: who leads fetches one
	errandMost = day
)

var (
	ecdsaKeys  = []string{"ECDSA P-256", "ECDSA P-384"}
	nodesLife  = Life{shortest, longest, longest}
	peopleLife = Life{time.Minute, day, byHand}
	errandLife = Life{shortest, errand, errandMost}
	// kube-controller-manager signs those of kubelets, for a year if nobody tells it otherwise.
	kubeletLife = Life{shortest, longest, 366 * day}
)

// own is the name of weir-manager as the signer of a kind.
func own(k Kind) string { return contract.SignerPrefix + string(k) }

// Identities is the table of all kinds.
func Identities() []Identity {
	pool := contract.PoolGroupPrefix + "<pool>"
	all := []Identity{
		{
			Kind: Hub, About: "a hub, to the coordinator and to other hubs of its pool, who asks or who answers",
			Issuer: PoolIssuer, Life: nodesLife, Signer: own(Hub), Joins: true,
			CommonName: contract.NodeUserPrefix + "<node>", Organizations: []string{contract.HubGroup, pool}, Client: true,
			Leads: contract.LeaderGroup,
		},
		{
			Kind: Coordinator, About: "a coordinator, to hubs, who asks or who answers", Issuer: PoolIssuer, Life: nodesLife,
			Signer:     own(Coordinator),
			CommonName: contract.CoordinatorName, Organizations: []string{pool}, Server: true,
		},
		{
			Kind: Replica, About: "one replica of a coordinator, to the others, etcd's among them", Issuer: PoolIssuer,
			Life: nodesLife, Signer: own(Replica),
			CommonName: contract.ReplicaUser("<pool>", "<name>"), Organizations: []string{contract.ReplicaGroup, pool},
			Client: true, Server: true,
		},
		{
			Kind: Viewer, About: "a person who reads at a coordinator", Issuer: PoolIssuer, Life: peopleLife,
			CommonName: "<name>", Organizations: []string{contract.ViewerGroup, pool}, Client: true,
		},
		{
			Kind: Operator, About: "a person who reads there, and clears the pool's Leases", Issuer: PoolIssuer,
			Life:       peopleLife,
			CommonName: "<name>", Organizations: []string{contract.OperatorGroup, pool}, Client: true,
		},
		{
			Kind: HubAtCloud, About: "a hub, at kube-apiserver, as a user of its own", Issuer: ClusterIssuer, Life: nodesLife,
			Signer: contract.CloudSigner, Joins: true,
			CommonName: contract.HubUserPrefix + "<pool>:<node>", Client: true,
		},
		{
			Kind: Forwarder, About: "the leader of a pool, when it forwards heartbeats to kube-apiserver", Issuer: ClusterIssuer,
			Life: errandLife, Signer: contract.CloudSigner,
			CommonName: contract.ForwarderUserPrefix + "<pool>:<node>", Client: true,
			Organizations: []string{contract.ForwarderGroup, contract.ForwarderGroupPrefix + "<pool>"},
		},
		{
			Kind: Door, About: "a hub, to pods and kubelet of its node", Issuer: NodeIssuer, Life: nodesLife,
			CommonName: contract.HubName, Server: true,
		},
		{
			Kind: Kubelet, About: "a kubelet, at kube-apiserver and at its hub, which shows it for what the kubelet asks",
			Issuer: ClusterIssuer, Life: kubeletLife,
			CommonName: contract.NodeUserPrefix + "<node>", Organizations: []string{contract.NodesGroup}, Client: true,
		},
	}
	for i := range all {
		all[i].Keys = ecdsaKeys
	}
	return all
}

// Of returns the identity of a kind.
func Of(k Kind) (Identity, error) {
	kinds := []string{}
	for _, i := range Identities() {
		if i.Kind == k {
			return i, nil
		}
		kinds = append(kinds, string(i.Kind))
	}
	return Identity{}, mismatch("kind", string(k), "one of "+strings.Join(kinds, ", "))
}

// Must is Of for the constants above.
func Must(k Kind) Identity {
	i, err := Of(k)
	if err != nil {
		panic(err)
	}
	return i
}

// SignedBy are the identities that are asked for at a signer.
func SignedBy(signer string) []Identity {
	return slices.DeleteFunc(Identities(), func(i Identity) bool { return i.Signer == "" || i.Signer != signer })
}

// Needs tells which parts of a Subject an identity names.
func (i Identity) Needs() (pool, node, name bool) {
	all := i.CommonName + " " + strings.Join(i.Organizations, " ")
	return strings.Contains(all, "<pool>"), strings.Contains(all, "<node>"), strings.Contains(all, "<name>")
}

// Usages tells what a certificate is for.
func (i Identity) Usages() string {
	switch {
	case i.Client && i.Server:
		return "client and server"
	case i.Server:
		return "server"
	}
	return "client"
}

// CheckLife reports whether a certificate may be asked to live for so long.
func (i Identity) CheckLife(d time.Duration) error {
	if d < i.Life.Least || d > i.Life.Most {
		return mismatch("life", d, fmt.Sprintf("%s to %s", i.Life.Least, i.Life.Most))
	}
	return nil
}
