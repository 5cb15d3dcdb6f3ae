package install

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/install/cluster"
	"github.com/weir-edge/weir/impl/install/host"
)

// programOf is where a hub's program stands: the name has a hash of what is in it, so that the former one stays beside
// it until the new one is proved. hubProgram is a link to the one that counts.
func programOf(program []byte) string {
	sum := sha256.Sum256(program)
	return fmt.Sprintf("%s-%x", hubProgram, sum[:6])
}

// leads reports whether hubProgram leads to a program.
func (h *Host) leads(program string) bool {
	to, err := os.Readlink(h.at(hubProgram))
	return err == nil && to == filepath.Base(program)
}

// point lets hubProgram lead to a program, at once and durably.
func (h *Host) point(program string) error {
	if h.leads(program) {
		return nil
	}
	return h.swap(hubProgram, "led", func(half string) error { return os.Symlink(filepath.Base(program), half) })
}

// others are the programs of hubs but the one, and what is left of them.
func (h *Host) others(program string) (all []string) {
	entries, _ := os.ReadDir(h.at(programs))
	for _, e := range entries {
		if path := filepath.Join(programs, e.Name()); strings.HasPrefix(path, hubProgram+"-") && path != program {
			all = append(all, path)
		}
	}
	return all
}

// upgrade puts another hub in the place of the one that runs, or the same one that goes by what its machine says now.
// The former one stays until the new one has let the kubelet be heard, and is what a machine starts that loses its
// power meanwhile; it is what runs again if the new one does not prove itself.
func (i *Installer) upgrade(ctx context.Context, p *preflight, n *next) error {
	what := "another one"
	if n.current(i) {
		what = "told what is new of its machine"
	}
	i.say("the hub is to be %s: it is tried", what)
	before, err := p.cloud.Lease(ctx)
	if err != nil {
		return err
	}
	was, err := i.Host.remember(n.first)
	if err != nil {
		return err
	}
	if err := i.try(ctx, p, n, before); err != nil {
		return i.revert(ctx, p, was, err)
	}
	if err := i.Host.point(n.program.path); err != nil {
		return i.revert(ctx, p, was, err)
	}
	for _, f := range n.last {
		if _, err := i.Host.put(f); err != nil {
			return err
		}
	}
	if err := i.endTrial(ctx); err != nil {
		return err
	}
	for _, path := range n.gone {
		if _, err := i.Host.remove(path); err != nil {
			return err
		}
	}
	if err := i.sweep(n.program.path); err != nil {
		return err
	}
	message := fmt.Sprintf("The hub of node %s is %s, and its kubelet is heard through it.", p.kubelet.node, what)
	if err := p.cloud.Tell(ctx, cluster.ReasonUpgraded, message); err != nil {
		i.say("the cloud could not be told: %v", err)
	}
	i.say("the hub of node %s is %s, and its kubelet is heard through it", p.kubelet.node, what)
	return nil
}

// try lets the new program run until the machine starts again.
func (i *Installer) try(ctx context.Context, p *preflight, n *next, before string) error {
	text := fmt.Appendf(nil, "[Service]\n"+host.KeepSockets+"EnvironmentFile=-%s\nExecStart=\nExecStart=%s --config=%s\n",
		proxyEnv, n.program.path, hubNext)
	for _, f := range append(n.first[:len(n.first):len(n.first)], n.program, n.trial,
		file{hubTrial + dropIn, 0o644, text}) {
		if _, err := i.Host.put(f); err != nil {
			return err
		}
	}
	if _, err := i.Host.systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	if err := i.restartHub(ctx, p); err != nil {
		return err
	}
	return i.until(ctx, "the kubelet renews the Lease of its Node through the hub", i.heard(p, before))
}

// endTrial leaves what runs as it is. What is started next is what hubProgram leads to.
func (i *Installer) endTrial(ctx context.Context) error {
	if _, err := i.Host.remove(hubTrial + dropIn); err != nil {
		return err
	}
	if err := errors.Join(i.Host.clear(hubTrial+dropIn+half), i.Host.clear(hubNext), i.Host.clear(hubNext+half),
		i.Host.removeEmpty(hubTrial)); err != nil {
		return err
	}
	_, err := i.Host.systemctl(ctx, "daemon-reload")
	return err
}

// sweep removes programs of hubs but one.
func (i *Installer) sweep(program string) error {
	for _, path := range i.Host.others(program) {
		if _, err := i.Host.remove(path); err != nil {
			return err
		}
	}
	return i.Host.clear(hubProgram + half)
}

// revert lets the former hub run again, and says why.
func (i *Installer) revert(ctx context.Context, p *preflight, was []file, why error) error {
	i.say("it failed, and the former hub goes on: %v", why)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	err := errors.Join(i.Host.recall(was), i.endTrial(ctx))
	if err == nil {
		err = i.restartHub(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("%w; and the former hub could not be started: %w; call weir node leave", why, err)
	}
	to, err := os.Readlink(i.Host.at(hubProgram))
	if err == nil {
		err = i.sweep(filepath.Join(programs, to))
	}
	if err != nil {
		i.say("programs of hubs that do not run are left in %s: %v", programs, err)
	}
	if err := p.cloud.Tell(ctx, cluster.ReasonUpgradeUndone, why.Error()); err != nil {
		i.say("the cloud could not be told: %v", err)
	}
	return fmt.Errorf("%w; the former hub goes on", why)
}
