package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/install/cluster"
	"github.com/weir-edge/weir/impl/install/host"
)

const (
	mostSkew  = time.Minute // of this machine's clock
	leastDisk = 512 << 20   // bytes: what the hub keeps by default, twice
)

// preflight is what Join finds out before it changes anything.
type preflight struct {
	*Installer
	journal *journal // of what was begun before; nil: nothing was
	kubelet *kubelet
	cloud   *cluster.Cluster
	node    *cluster.Node
	mirror  *mirror
	files   []file
}

// PreflightError is what has to be mended before a node can join.
type PreflightError struct{ Failed []string }

func (e *PreflightError) Error() string {
	return "preflight: " + strings.Join(e.Failed, "; ") + "; nothing was changed"
}

// check runs all checks, and tells of each. One that needs what failed before is left out.
func (p *preflight) check(ctx context.Context) error {
	failed := &PreflightError{}
	for _, c := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"systemd", p.checkSystemd},
		{"kubelet", p.checkKubelet},
		{"credential", p.checkCredential},
		{"authority", p.checkAuthority},
		{"hub binary", p.checkProgram},
		{"disk", p.checkDisk},
		{"files", p.checkFiles},
		{"cloud", p.checkCloud},
		{"time", p.checkTime},
		{"pool", p.checkPool},
		{"pods", p.checkPods},
		{"images", p.checkImages},
		{"ports", p.checkPorts},
	} {
		switch err := c.run(ctx); {
		case errors.Is(err, errNeeds):
			fmt.Fprintf(p.Out, "- %s: left out\n", c.name)
		case err != nil:
			fmt.Fprintf(p.Out, "× %s: %v\n", c.name, err)
			failed.Failed = append(failed.Failed, c.name+": "+err.Error())
		default:
			fmt.Fprintf(p.Out, "√ %s\n", c.name)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if len(failed.Failed) > 0 {
		return failed
	}
	if p.journal != nil && p.journal.State == Joined { // where its pool is asked is told to the hub meanwhile
		var was struct {
			Servers []string `json:"coordinator-server"`
		}
		if text, err := p.Host.read(hubConfig); err == nil && yaml.Unmarshal(text, &was) == nil {
			p.node.Coordinators = was.Servers
		}
	}
	var err error
	p.files, err = p.Installer.files(p.kubelet, p.node, p.mirror)
	return err
}

// errNeeds says that a check needs what failed before.
var errNeeds = errors.New("a check before it failed")

func (p *preflight) checkSystemd(ctx context.Context) error {
	out, err := p.Host.systemctl(ctx, "is-system-running")
	switch said := strings.TrimSpace(out); {
	case said == "offline" || said == "unknown" || said == "" && err != nil:
		return errors.New("it does not run this machine: a hub is a systemd service")
	case said == "stopping":
		return errors.New("the machine is being stopped")
	}
	if !p.Host.active(ctx, kubeletService) {
		return fmt.Errorf("%s is not active: a node joins with a kubelet that runs", kubeletService)
	}
	return nil
}

func (p *preflight) checkKubelet(ctx context.Context) (err error) {
	if p.journal != nil && p.Kubeconfig == "" {
		p.Kubeconfig = p.journal.Kubeconfig
	}
	k, err := p.findKubelet(ctx)
	if err != nil {
		return err
	}
	if k.source != nil {
		p.kubelet = k
		return nil
	}
	now := p.Clock.Now()
	if now.Before(k.leaf.NotBefore) || now.After(k.leaf.NotAfter) {
		return fmt.Errorf(
			"its certificate is valid from %s to %s, and it is %s: see whether the kubelet renews it, and the clock",
			k.leaf.NotBefore.Format(time.RFC3339), k.leaf.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if err := p.checkClientCA(k); err != nil {
		return err
	}
	p.kubelet = k
	return nil
}

// checkCredential gets what a kubelet without a certificate shows to the cloud, as its hub will.
func (p *preflight) checkCredential(ctx context.Context) error {
	if p.kubelet == nil {
		return errNeeds
	}
	if p.kubelet.source == nil {
		return nil
	}
	if _, err := p.kubelet.source.Token(ctx); err != nil {
		p.kubelet = nil
		return err
	}
	return nil
}

func (p *preflight) checkAuthority(context.Context) error {
	if p.kubelet == nil {
		return errNeeds
	}
	return cluster.Pinned(p.kubelet.ca, p.Hashes)
}

func (p *preflight) checkProgram(ctx context.Context) error {
	info, err := os.Stat(p.Hub)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is no program", p.Hub)
	}
	out, err := p.Host.Run(ctx, p.Hub, "--version")
	if err == nil && !strings.HasPrefix(out, "weir-hub ") {
		err = fmt.Errorf("%s --version says %.80q: want that of a weir-hub", p.Hub, out)
	}
	return err
}

// checkPorts tries those of the hub, unless it is the hub that has them.
func (p *preflight) checkPorts(ctx context.Context) error {
	if p.journal != nil && p.Host.active(ctx, hubService) {
		return nil
	}
	ports := []int{p.Ports.Secure, p.Ports.Health, p.Ports.Pool}
	if p.journal != nil && p.journal.Ports.Secure == p.Ports.Secure { // systemd may keep it for a hub that cannot start
		ports = ports[1:]
	}
	if p.mirror.on() {
		ports = append(ports, p.Ports.Images)
	}
	var taken []string
	for _, port := range ports {
		if l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf(":%d", port)); err != nil {
			taken = append(taken, fmt.Sprint(port))
		} else {
			l.Close()
		}
	}
	if len(taken) > 0 {
		return fmt.Errorf("%s: taken by another process; ss -ltnp tells by which", strings.Join(taken, ", "))
	}
	return nil
}

func (p *preflight) checkDisk(context.Context) error {
	dir := filepath.Dir(hubData)
	n, volatile, err := p.Host.Disk(p.Host.at(dir))
	switch {
	case err != nil:
		return err
	case volatile:
		return fmt.Errorf("%s is in memory: what a hub keeps has to survive a restart of the machine", dir)
	case n < leastDisk:
		return fmt.Errorf("%s has %d MB free: want %d", dir, n>>20, leastDisk>>20)
	}
	return nil
}

// checkFiles looks for what somebody else has put where Join writes.
func (p *preflight) checkFiles(context.Context) error {
	if p.journal != nil {
		return nil
	}
	for _, path := range []string{
		hubProgram, hubConfig, cloudCA, clientCA, nodePair, localPair, localCA, proxyEnv, tokenFile, kubeletConf, authority,
		storeKey, hubUnit, volatile + dropIn, lasting + dropIn,
	} {
		if p.Host.there(path) {
			return fmt.Errorf("%s is there, and weir node join has not written it: move it away", path)
		}
	}
	entries, err := os.ReadDir(p.Host.at(hubData))
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: a hub of before may have left it; move it away", hubData)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

func (p *preflight) checkCloud(ctx context.Context) (err error) {
	if p.kubelet == nil {
		return errNeeds
	}
	c, err := p.cluster(p.kubelet)
	if err != nil {
		return err
	}
	if p.kubelet.source != nil {
		if err = c.WhoAmI(ctx); err == nil {
			p.kubelet.node = c.Node
		}
	}
	if err == nil {
		err = p.localOf(p.kubelet)
	}
	if err == nil {
		p.node, err = c.Look(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.kubelet.server, err)
	}
	p.cloud = c
	return nil
}

func (p *preflight) checkTime(context.Context) error {
	if p.cloud == nil || p.cloud.Skew == nil {
		return errNeeds
	}
	if skew := *p.cloud.Skew; skew.Abs() > mostSkew {
		return fmt.Errorf("this machine's clock is %v away from the cloud's: want %v at most; certificates and "+
			"Leases go by it", skew.Abs().Round(time.Second), mostSkew)
	}
	return nil
}

// checkPods looks whether the machine can have the address at which pods reach their hub.
func (p *preflight) checkPods(ctx context.Context) error {
	switch {
	case p.node == nil:
		return errNeeds
	case p.journal != nil: // what was begun counts
		p.Pods = p.journal.Pods != ""
		return nil
	case p.Pods && p.node.Six:
		p.say("pods are not led to the hub: Service default/kubernetes has an IPv6 address, and %s is none",
			contract.PodsAddress)
		p.Pods = false
	}
	if !p.Pods {
		return nil
	}
	switch has, err := p.Host.has(ctx, contract.PodsAddress); {
	case err != nil:
		return fmt.Errorf("want ip of iproute2, or --pods=false: %w", err)
	case has:
		return fmt.Errorf("%s is an address of this machine already, maybe of a hub of another kind: take that away, or "+
			"--pods=false", contract.PodsAddress)
	}
	return nil
}

// checkImages looks whether containerd can be led to the hub. That it cannot keeps no node from joining.
func (p *preflight) checkImages(ctx context.Context) error {
	if p.node == nil {
		return errNeeds
	}
	var was *images
	if p.journal != nil {
		was = p.journal.Images
	}
	if p.journal != nil && p.journal.Ports.Images != 0 { // what was begun counts
		p.Ports.Images = p.journal.Ports.Images
	}
	m := &mirror{}
	p.mirror = m
	m.Runtime = p.node.Runtime
	m.Refused = was != nil && was.Refused
	if p.Images != nil {
		m.Refused = !*p.Images
	}
	if m.Refused {
		m.why = flagsNo
	} else {
		pulls, err := p.look(ctx, was)
		if err != nil {
			return err
		}
		if notes := pulls.Notes(m.file()); m.on() && notes != "" {
			p.say("images: %s", notes)
		}
	}
	if m.on() {
		p.say("images: containerd asks the hub first, by %s", m.file())
	} else {
		p.say("images: the mirror is off: %s", m.why)
	}
	return nil
}

// look fills in the mirror, and returns how containerd pulls.
func (p *preflight) look(ctx context.Context, was *images) (pulls host.Pulls, err error) {
	address, err := p.mirrorAddress()
	if err != nil {
		return pulls, err
	}
	pulls = p.pulls(ctx, p.node.Runtime, address, was)
	m := p.mirror
	switch {
	case address == "":
		m.why = ownersNo
	case pulls.Why != "":
		m.why = pulls.Why
	case pulls.Theirs != "":
		m.content, m.theirs = pulls.Content, pulls.Theirs
	default:
		m.content, m.hosts = pulls.Content, file{pulls.Hosts, 0o644, host.HostsText(address)}
		m.Hosts, m.Sum = m.hosts.path, sumOf(m.hosts.content)
	}
	return pulls, nil
}

func (p *preflight) checkPool(context.Context) error {
	if p.cloud == nil {
		return errNeeds
	}
	switch label := p.node.Pool; {
	case label == "":
		return fmt.Errorf("the Node %s has no pool: kubectl label node %[1]s %s=%s", p.kubelet.node, contract.NodePoolLabel,
			p.Pool)
	case label != p.Pool:
		return fmt.Errorf("the Node %s is in pool %s, and --pool is %s", p.kubelet.node, label, p.Pool)
	case !p.node.Told:
		return fmt.Errorf("the cloud tells nothing of it: want Service %s/%s%s, which weir-manager makes; see weir check",
			contract.ManagerNamespace, contract.LeaderHubPrefix, p.Pool)
	case p.Coordinator && len(p.node.Addresses) == 0:
		return fmt.Errorf("the Node %s has no address of the type InternalIP, at which a coordinator could be asked: "+
			"--coordinator=false if none is to run here", p.kubelet.node)
	}
	for _, url := range p.node.Coordinators {
		if !strings.HasPrefix(url, "https://") {
			return fmt.Errorf("the cloud tells of a coordinator at %.80q: want https://host:port", url)
		}
	}
	slices.Sort(p.node.Coordinators)
	return nil
}

// checkClientCA looks whether the hub will know the kubelet by its certificate: by the one that signs that.
func (i *Installer) checkClientCA(k *kubelet) error {
	if i.ClientCA == "" {
		return cluster.Signed(k.certPEM, k.keyPEM, k.ca, "that of its kubeconfig")
	}
	bundle, err := i.Host.read(i.ClientCA)
	if err != nil {
		return fmt.Errorf("--client-ca-file: %w", err)
	}
	return cluster.Signed(k.certPEM, k.keyPEM, bundle, i.ClientCA)
}
