package hub

import (
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
)

const (
	// of a certificate that a token brought: who takes the node's token from it wants it to be nobody soon.
	nodeLife = 24 * time.Hour
	patience = time.Hour // for a cloud that signs none
)

// credentials are the certificates by which the hub asks others.
type credentials struct {
	kubeconfig *uplink.Kubeconfig   // the kubelet's; nil: flags say all
	roots      *uplink.Bundle       // authorities of the cloud
	node       uplink.Certificate   // of the node, at the cloud
	shows      uplink.Bearer        // what the node shows there beside it; nil: nothing
	tokens     *credential.Source   // of that, if the kubelet has no certificate
	atCloud    *uplink.User         // of the hub itself, there
	member     *credential.Keeper   // in the pool; nil: there is none, and so for what follows
	forward    *credential.Keeper   // of a leader, at the cloud
	beside     []*credential.Keeper // of the coordinator on this node
	keepers    []asked              // all that the hub asks for itself
}

// asked is a certificate that the hub asks for.
type asked struct {
	*credential.Keeper
	token string // by which the first one is asked for; "": as the node
}

// openCredentials reads the certificates that there are. Run asks for the others.
func openCredentials(m *machine, t told) (*credentials, error) {
	c := &credentials{}
	for _, open := range []func(*machine, told) error{c.openCloud, c.openNode, c.openUser, c.openMember, c.openBeside} {
		if err := open(m, t); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// openCloud reads the kubelet's kubeconfig, if the hub goes by that, and the authorities of the cloud.
func (c *credentials) openCloud(m *machine, _ told) (err error) {
	flag, file := inEtc(cloudCA), m.etc(cloudCA)
	if m.CloudClientKubeconfig != "" {
		flag, file = uplink.KubeconfigFlag, m.CloudClientKubeconfig
		if c.kubeconfig, err = m.reload.Kubeconfig(file, filepath.Join(m.DataDir, "cloud")); err != nil {
			return err
		}
	}
	c.roots, err = m.reload.Kept(flag, filepath.Join(m.DataDir, cloudCA), file)
	return err
}

// openNode gets what the hub is its node by at the cloud: the kubelet's certificate, or what its kubeconfig has in the
// place of one. By that it asks for a certificate: while it has one that is valid, no program is run and no token is
// shown.
func (c *credentials) openNode(m *machine, _ told) error {
	if c.kubeconfig == nil {
		p, err := m.reload.Pair("--cloud-client-cert-file", m.CloudClientCertFile)
		c.node = p
		return err
	}
	if !c.kubeconfig.Tokens() {
		p, err := m.reload.PairOf(m.CloudClientKubeconfig, m.CloudClientCertFile)
		if err == nil && p.Ours() {
			m.Logger.Warn("the kubelet's own certificate has expired, and it uses the one of weir node join: at the cloud "+
				"this node is nobody until the kubelet has another", "kubeconfig", m.CloudClientKubeconfig)
		}
		c.node = p
		return err
	}
	user, err := c.kubeconfig.User()
	if err != nil && m.reload.Worked { // it is followed
		user, err = &credential.User{}, nil
	}
	if err != nil {
		return cli.Usage(uplink.KubeconfigFlag, m.CloudClientKubeconfig, err.Error())
	}
	s := credential.New(credential.Config{User: user, Clock: provenClock{m.clock, m.time}, Logger: m.Logger})
	c.tokens = s
	kubelet := pki.Must(pki.Kubelet)
	kubelet.Signer = contract.KubeletSigner // the cluster's own, in which weir-manager has no say
	k, err := c.keep(m, credential.KeeperConfig{
		Identity: kubelet, Subject: pki.Subject{Node: m.NodeName}, Life: nodeLife,
		Dir: filepath.Join(m.DataDir, "pki", "node"), Patience: patience,
	}, false)
	if err != nil {
		return err
	}
	name := contract.NodeUserPrefix + m.NodeName
	u := uplink.NewUser(uplink.UserConfig{
		Name: name, Node: name, OfNode: s, Own: k, Shows: s, Now: m.time.Now, Clock: m.clock, Logger: m.Logger,
	})
	k.Follow(u.Poke)
	c.node, c.shows = u, u
	return nil
}

// openUser gets the certificate of the hub's own user.
func (c *credentials) openUser(m *machine, _ told) error {
	k, err := c.keep(m, credential.KeeperConfig{
		Identity: pki.Must(pki.HubAtCloud), Dir: filepath.Join(m.DataDir, "pki"),
	}, true)
	if err != nil {
		return err
	}
	c.atCloud = uplink.NewUser(uplink.UserConfig{
		Name: contract.HubUserPrefix + m.NodePoolName + ":" + m.NodeName, Node: contract.NodeUserPrefix + m.NodeName,
		OfNode: c.node, Own: k, Shows: c.shows, Now: m.time.Now, Clock: m.clock, Logger: m.Logger,
	})
	k.Follow(c.atCloud.Poke)
	return nil
}

// openMember gets the hub's certificate in its pool, and that of a leader that forwards heartbeats. The hub asks for
// the second while it leads. It lives for an hour, so it is kept nowhere.
func (c *credentials) openMember(m *machine, t told) (err error) {
	if t.directory == nil {
		return nil
	}
	c.forward, err = c.keep(m, credential.KeeperConfig{Identity: pki.Must(pki.Forwarder), Idle: true}, false)
	if err != nil {
		return err
	}
	c.member, err = c.keep(m, credential.KeeperConfig{
		Identity: pki.Must(pki.Hub), Dir: filepath.Join(m.DataDir, "pki"), Trusted: t.trusted.List, Signs: t.trusted.Signer,
		Refused: t.denied.Refuse,
	}, true)
	if err != nil {
		return err
	}
	c.member.Follow(t.board().Retry) // weir-manager knows the node then, and grants it these
	return nil
}

// openBeside gets the certificates of the coordinator on this node, which has no way to the cloud. It reads them from
// its files.
func (c *credentials) openBeside(m *machine, t told) error {
	for _, kind := range m.kindsOfCoordinator() {
		k, err := c.keep(m, credential.KeeperConfig{
			Identity: pki.Must(kind), Subject: m.ofCoordinator(), Dir: m.EnrolCoordinatorDir, Trusted: t.trusted.List,
			Signs: t.trusted.Signer, Idle: m.managesReplica(),
		}, false)
		if err != nil {
			return cli.Usage("--enrol-coordinator-dir", m.EnrolCoordinatorDir,
				"a directory that this process may make and write: "+err.Error())
		}
		c.beside = append(c.beside, k)
	}
	return nil
}

// keep makes what asks for a certificate of this node. byToken: the first one is asked for by the bootstrap token, if
// there is one.
func (c *credentials) keep(m *machine, e credential.KeeperConfig, byToken bool) (k *credential.Keeper, err error) {
	if e.Subject.Pool == "" && e.Subject.Node == "" {
		e.Subject = pki.Subject{Pool: m.NodePoolName, Node: m.NodeName}
	}
	e.Clock, e.Metrics, e.Logger = provenClock{m.clock, m.time}, m.asking, m.Logger
	a := asked{}
	if a.Keeper, err = credential.OpenKeeper(e); err != nil {
		return nil, err
	}
	if byToken && a.Get() == nil && m.given(bootstrapToken) {
		if a.token, err = credential.BootstrapToken(m.etc(bootstrapToken)); err != nil {
			return nil, err
		}
	}
	c.keepers = append(c.keepers, a)
	return a.Keeper, nil
}

// by is how a certificate is asked for: as the node, or by a token while there is none. The hub's own user may only
// read.
func (a asked) by(cloud *uplink.Cloud) http.RoundTripper {
	asNode := cloud.Way(uplink.ClassNode, uplink.AsNode)
	if a.token == "" {
		return asNode
	}
	byToken := credential.Bearer{With: a.token, RoundTripper: cloud.Way(uplink.ClassControl, uplink.AsCaller)}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if a.Get() == nil {
			return byToken.RoundTrip(req)
		}
		return asNode.RoundTrip(req)
	})
}

// roundTripper is a function that is one.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// provenClock runs as this machine's and shows the time by which certificates are judged: a machine that starts in 1970
// would take each for one that has not begun.
type provenClock struct {
	clock.WithTicker
	time *pki.Proven
}

func (c provenClock) Now() time.Time { return c.time.Now() }

func (c provenClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// nodeCounts reports whether what the hub is its node by at the cloud is valid at a time.
func (c *credentials) nodeCounts(now func() time.Time) bool {
	if c.shows != nil {
		return c.shows.Counts()
	}
	held := c.node.Get()
	return held != nil && pki.CheckSpan(held.Leaf, now()) == nil
}

// look has all that are asked for looked at again: other authorities are trusted.
func (c *credentials) look() {
	for _, k := range c.keepers {
		k.Look()
	}
}

// certificates are all that the hub has and needs. serving is what it shows at its port.
func (c *credentials) certificates(serving uplink.Certificate) (all []pooldoor.Certificate) {
	add := func(k pki.Kind, of uplink.Certificate) {
		if now := of.Get(); now != nil && now.Leaf != nil {
			_, renews := of.(*credential.Keeper)
			all = append(all, pooldoor.Certificate{Kind: k, Cert: now, Renews: renews})
		}
	}
	node := c.node
	if u, ok := node.(*uplink.User); ok {
		node = u.Own
	}
	add(pki.Kubelet, node)
	add(pki.HubAtCloud, c.atCloud.Own)
	add(pki.Door, serving)
	if c.member != nil {
		add(pki.Hub, c.member)
	}
	for _, k := range c.beside {
		add(k.Identity.Kind, k)
	}
	if c.forward != nil && c.forward.Wanted() {
		add(pki.Forwarder, c.forward)
	}
	return all
}
