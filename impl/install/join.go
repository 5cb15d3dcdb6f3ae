package install

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/install/cluster"
)

// Check is the preflight of Join. It changes nothing.
func (i *Installer) Check(ctx context.Context) error {
	if err := i.checkJoin(); err != nil {
		return err
	}
	j, err := i.Host.load()
	if err != nil {
		return err
	}
	return (&preflight{Installer: i, journal: j}).check(ctx)
}

// Join leads the kubelet to a hub. After an error the node is as it was, unless the error says otherwise.
func (i *Installer) Join(ctx context.Context) error {
	if err := i.checkJoin(); err != nil {
		return err
	}
	unlock, err := i.Host.lock()
	if err != nil {
		return err
	}
	defer unlock()
	j, err := i.Host.load()
	if err != nil {
		return err
	}
	switch {
	case j == nil:
	case j.State == Leaving:
		i.say("a weir node leave was cut short: it is ended first")
		if err := i.leave(ctx, j); err != nil {
			return err
		}
		j = nil
	case j.Pool != i.Pool:
		return cli.Usage("--pool", i.Pool, j.Pool+", in which this node is; or weir node leave first")
	}
	p := &preflight{Installer: i, journal: j}
	if err := p.check(ctx); err != nil {
		return err
	}
	if j != nil && j.State == Joined {
		return i.stays(ctx, p, j)
	}
	if j == nil {
		j = i.begin(p)
		if err := i.Host.keep(j); err != nil {
			return err
		}
	}
	if err := i.install(ctx, p, j); err != nil {
		return i.undo(ctx, p, j, err)
	}
	return nil
}

// begin is the journal of a node that nothing was done to.
func (i *Installer) begin(p *preflight) *journal {
	j := &journal{
		Version: journalVersion, State: Joining, Node: p.kubelet.node, Pool: i.Pool, Kubeconfig: p.kubelet.path,
		Began: i.Clock.Now().UTC(), Ports: i.Ports,
	}
	if i.Pods {
		j.Pods = contract.PodsAddress
	}
	made := func(dir string) {
		for _, d := range i.Host.missing(dir) {
			if !slices.Contains(j.Folders, d) {
				j.Folders = append(j.Folders, d)
			}
		}
	}
	for _, f := range p.files {
		made(filepath.Dir(f.path))
	}
	for _, dir := range i.folders() {
		made(dir)
	}
	return j
}

// stays is Join of a node that has joined.
func (i *Installer) stays(ctx context.Context, p *preflight, j *journal) error {
	next, err := i.next(p)
	if err != nil {
		return err
	}
	if err := next.same(i); err != nil {
		return fmt.Errorf("the node has joined pool %s with another %w: weir node leave first", i.Pool, err)
	}
	if !i.Host.active(ctx, hubService) {
		return fmt.Errorf("the node has joined pool %s, and %s is not active: journalctl -u %[2]s", i.Pool, hubService)
	}
	if err := i.until(ctx, "the kubelet's heartbeat through its hub", i.heard(p, "")); err != nil {
		return err
	}
	i.tenants(p.cloud).LeadProxies(ctx, j.Began)
	if !next.is(i) {
		if err := i.upgrade(ctx, p, next); err != nil {
			return err
		}
		return i.tellRuntime(p, j)
	}
	i.say("node %s is in pool %s already, and its kubelet is heard through its hub", p.kubelet.node, i.Pool)
	return i.tellRuntime(p, j)
}

// install does all that Join does to a machine. Each step may be done again.
func (i *Installer) install(ctx context.Context, p *preflight, j *journal) error {
	changed := false
	for _, f := range p.files {
		c, err := i.Host.put(f)
		if err != nil {
			return err
		}
		changed = changed || c
	}
	changed = changed || !i.Host.leads(p.files[0].path)
	if err := i.Host.point(p.files[0].path); err != nil {
		return err
	}
	if err := i.Host.makeFor(hubData + "/x"); err != nil {
		return err
	}
	if i.Coordinator {
		if err := i.Host.makeFor(forPod + "/x"); err != nil {
			return err
		}
	}
	if err := i.start(ctx, p, changed); err != nil {
		return err
	}
	if err := i.lead(ctx, p, j); err != nil {
		return err
	}
	if err := i.tellRuntime(p, j); err != nil {
		return err
	}
	j.State = Joined
	if err := i.Host.keep(j); err != nil {
		return err
	}
	message := fmt.Sprintf("The kubelet of node %s calls the Kubernetes API through its hub, in pool %s.", j.Node, j.Pool)
	if err := p.cloud.Tell(ctx, cluster.ReasonJoined, message); err != nil {
		i.say("the cloud could not be told: %v", err)
	}
	i.tenants(p.cloud).LeadProxies(ctx, i.Clock.Now())
	i.say("node %s has joined pool %s", j.Node, j.Pool)
	return nil
}

// start starts the hub, and waits until it serves the kubelet.
func (i *Installer) start(ctx context.Context, p *preflight, changed bool) error {
	i.say("starting %s", hubService)
	if _, err := i.Host.systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	if _, err := i.Host.systemctl(ctx, "enable", hubService); err != nil {
		return err
	}
	if changed || !i.Host.active(ctx, hubService) {
		return i.restartHub(ctx, p)
	}
	return i.serves(ctx, p)
}

// restartHub restarts the hub, and waits until it serves the kubelet.
func (i *Installer) restartHub(ctx context.Context, p *preflight) error {
	start, cancel := context.WithTimeout(ctx, i.Timeout)
	defer cancel()
	if _, err := i.Host.systemctl(start, "restart", hubService); err != nil {
		return fmt.Errorf("%w; journalctl -u %s tells more", err, hubService)
	}
	return i.serves(ctx, p)
}

// serves waits until the hub serves the kubelet.
func (i *Installer) serves(ctx context.Context, p *preflight) error {
	return i.until(ctx, "the hub serves", func(ctx context.Context) error { return i.doorOpen(ctx, p.kubelet) })
}

// lead leads the kubelet to the hub, first until the machine starts again, and when it was heard for good.
func (i *Installer) lead(ctx context.Context, p *preflight, j *journal) error {
	text := p.kubelet.unit.DropIn(kubeletConf, hubService)
	trial, kept := file{volatile + dropIn, 0o644, text}, file{lasting + dropIn, 0o644, text}
	before, err := p.cloud.Lease(ctx)
	if err != nil {
		return err
	}
	if !i.Host.same(kept) {
		j.Trial = true
		if err := i.Host.keep(j); err != nil {
			return err
		}
		i.say("leading the kubelet to its hub, on trial")
		if _, err := i.Host.put(trial); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"daemon-reload"}, {"restart", kubeletService}} {
		if _, err := i.Host.systemctl(ctx, args...); err != nil {
			return err
		}
	}
	if err := i.until(ctx, "the kubelet renews the Lease of its Node through the hub", i.heard(p, before)); err != nil {
		return err
	}
	if _, err := i.Host.put(kept); err != nil {
		return err
	}
	if _, err := i.Host.remove(volatile + dropIn); err != nil {
		return err
	}
	_, err = i.Host.systemctl(ctx, "daemon-reload")
	return err
}

// heard reports whether the kubelet is heard through the hub: the hub has passed a heartbeat of it, and the cloud has
// the Lease in another version than before.
func (i *Installer) heard(p *preflight, before string) func(context.Context) error {
	since := i.Clock.Now().Add(-staleBeat)
	if before != "" {
		since = i.Clock.Now()
	}
	return func(ctx context.Context) error {
		s, err := StatusOfHub(ctx, i.Ports.Health)
		if err != nil {
			return err
		}
		if s.Heartbeat.Passed.Before(since) {
			return errors.New("no heartbeat came through the hub and to the cloud")
		}
		version, err := p.cloud.Lease(ctx)
		if err == nil && (version == "" || version == before) {
			err = errors.New("the cloud shows no new heartbeat")
		}
		return err
	}
}
