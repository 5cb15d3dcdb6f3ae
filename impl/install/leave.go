package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/hub/nodelocal"
	"github.com/weir-edge/weir/impl/install/cluster"
)

// Leave makes the node what it was before Join. It is no error that it never joined.
func (i *Installer) Leave(ctx context.Context) error {
	unlock, err := i.Host.lock()
	if err != nil {
		return err
	}
	defer unlock()
	j, err := i.Host.load()
	if err != nil {
		return err
	}
	if j == nil {
		i.say("this node has not joined a pool by weir node join: nothing is done")
		return i.Host.clear(journalFile + ".tmp")
	}
	if j.State == Joined && !i.Abandon {
		if c := i.asNode(ctx, j); c != nil {
			if err := i.tenants(c).Held(ctx); err != nil {
				return err
			}
		}
	}
	if err := i.leave(ctx, j); err != nil {
		return err
	}
	i.say("node %s has left pool %s: its kubelet calls the cloud", j.Node, j.Pool)
	return nil
}

// undo reverts a join that failed, and says why.
func (i *Installer) undo(ctx context.Context, p *preflight, j *journal, why error) error {
	i.say("it failed, and is undone: %v", why)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	if err := i.leave(ctx, j); err != nil {
		return fmt.Errorf("%w; and what was done could not be undone: %w; call weir node leave", why, err)
	}
	if err := p.cloud.Tell(ctx, cluster.ReasonUndone, why.Error()); err != nil {
		i.say("the cloud could not be told: %v", err)
	}
	return fmt.Errorf("%w; the node is as it was", why)
}

// leave removes all there is. The kubelet goes first: until it calls the cloud again the hub stays.
func (i *Installer) leave(ctx context.Context, j *journal) error {
	joined := j.State != Joining
	if j.State != Leaving {
		j.State = Leaving
		if err := i.Host.keep(j); err != nil { // a full disk keeps nobody from leaving: the journal of before says enough
			i.say("%v", err)
		}
	}
	if err := i.release(ctx, j); err != nil {
		return err
	}
	cloud := i.asNode(ctx, j)
	if cloud != nil {
		i.tenants(cloud).Release(ctx, j.Began, j.Pods != "")
	}
	if err := i.takeHosts(j); err != nil {
		return err
	}
	if err := i.stop(ctx); err != nil {
		return err
	}
	if j.Pods != "" {
		if err := i.Host.drop(ctx, j.Pods); err != nil {
			return err
		}
	}
	if cloud != nil {
		if err := i.clearPod(ctx, cloud, j); err != nil {
			i.say("%s is left: %v", podData, err)
		}
	}
	if err := i.clear(j); err != nil {
		return err
	}
	if cloud != nil && joined {
		if err := cloud.Forget(ctx, fmt.Sprintf("The kubelet of node %s calls the cloud itself.", j.Node)); err != nil {
			i.say("the cloud could not be told: %v", err)
		}
	}
	_, err := i.Host.remove(journalFile)
	return errors.Join(err, i.Host.clear(journalFile+".tmp"))
}

// release gives the kubelet its own kubeconfig back.
func (i *Installer) release(ctx context.Context, j *journal) error {
	led := j.Trial
	for _, path := range []string{lasting + dropIn, volatile + dropIn} {
		was, err := i.Host.remove(path)
		if err != nil {
			return err
		}
		led = led || was
		if err := i.Host.clear(path + half); err != nil {
			return err
		}
	}
	if !led {
		return nil
	}
	i.say("giving the kubelet its own kubeconfig back")
	if err := i.ownCertificate(j); err != nil {
		i.say("the kubelet's certificate: %v", err)
	}
	for _, args := range [][]string{{"daemon-reload"}, {"restart", kubeletService}} {
		if _, err := i.Host.systemctl(ctx, args...); err != nil {
			return fmt.Errorf("%w; its hub is left as it is", err)
		}
	}
	return nil
}

// ownCertificate gives a kubelet its last certificate of the cloud back that has taken the one of its hub for one of
// its own: it does so when it starts after its own has ended.
func (i *Installer) ownCertificate(j *journal) error {
	text, err := i.Host.read(rotated)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	isLocal := func(text []byte) bool {
		all := certificatesIn(text)
		return len(all) > 0 && credential.IsLocal(all[0])
	}
	if err != nil || !isLocal(text) {
		return err
	}
	dated, err := filepath.Glob(filepath.Join(filepath.Dir(i.Host.at(rotated)), "kubelet-client-2*.pem"))
	if err != nil {
		return err
	}
	last := ""
	for _, at := range dated { // the names are dates
		path := filepath.Join(filepath.Dir(rotated), filepath.Base(at))
		switch text, err := i.Host.read(path); {
		case err != nil:
			return err
		case !isLocal(text):
			last = path
		default:
			if _, err := i.Host.remove(path); err != nil {
				return err
			}
		}
	}
	i.say("the kubelet's certificate has ended on %s: give it another, or let it join its cluster again", j.Node)
	if last == "" {
		_, err = i.Host.remove(rotated)
		return err
	}
	return i.Host.swap(rotated, "led", func(half string) error { return os.Symlink(last, half) })
}

// tenants are the pods of this node.
func (i *Installer) tenants(c *cluster.Cluster) *cluster.Tenants {
	called, err := nodelocal.ReadCallers(i.Host.at(filepath.Join(hubData, nodelocal.CallersFile)))
	if err != nil {
		i.say("it is not known which pods call the hub: %v", err)
	}
	return &cluster.Tenants{Client: c.Client, Node: c.Node, Called: called, Wait: i.until, Say: i.say}
}

// asNode is the cloud; nil: it cannot be asked, and what is said to it is left out.
func (i *Installer) asNode(ctx context.Context, j *journal) *cluster.Cluster {
	i.Kubeconfig = j.Kubeconfig
	k, err := i.findKubelet(ctx)
	var c *cluster.Cluster
	if err == nil {
		k.node = cmp.Or(k.node, j.Node) // what has no certificate does not tell
		c, err = i.cluster(k)
	}
	if err != nil {
		i.say("the cloud cannot be asked: %v", err)
		return nil
	}
	return c
}

// stop ends the hub.
func (i *Installer) stop(ctx context.Context) error {
	if !i.Host.there(hubUnit) {
		return nil
	}
	i.say("stopping %s", hubService)
	for _, args := range [][]string{{"disable", hubService}, {"stop", hubService}} {
		if _, err := i.Host.systemctl(ctx, args...); err != nil {
			return err
		}
	}
	if _, err := i.Host.remove(hubUnit); err != nil {
		return err
	}
	_, err := i.Host.systemctl(ctx, "daemon-reload")
	return err
}

// clearPod removes what a coordinator on this node has kept, when its Pod is gone: weir-manager takes that away from a
// node that is in the pool no more. Its folders may be older than the join: the Pod can be there first.
func (i *Installer) clearPod(ctx context.Context, c *cluster.Cluster, j *journal) error {
	if !i.Host.there(podData) && !i.Host.there(forPod) {
		return nil
	}
	var kept error
	err := i.until(ctx, "the Pod of the coordinator is gone", func(ctx context.Context) error {
		there, stays, err := c.Coordinates(ctx, j.Pool)
		switch {
		case err != nil || !there:
			return err
		case stays:
			kept = errors.New("the pool's coordinator still runs on this node, which has the label of the pool")
			return nil
		}
		return errors.New("it is still there")
	})
	if err != nil || kept != nil {
		return errors.Join(err, kept)
	}
	for _, dir := range []string{podData, forPod} {
		if _, err := i.Host.remove(dir); err != nil {
			return err
		}
	}
	home := filepath.Dir(podData)
	return errors.Join(i.Host.removeEmpty(home), i.Host.removeEmpty(filepath.Dir(home)))
}

// clear removes what Join and the hub have written.
func (i *Installer) clear(j *journal) error {
	for _, path := range append(i.Host.others(""), hubTrial+dropIn, hubProgram, hubConfig, hubNext, cloudCA, clientCA,
		nodePair, localPair, localCA, proxyEnv, tokenFile, kubeletConf, authority, authorityKey, storeKey, hubUnit) {
		for _, p := range []string{path, path + half, path + ".tmp"} {
			if _, err := i.Host.remove(p); err != nil {
				return err
			}
		}
	}
	for _, dir := range []string{etc, programs, hubData, forPod} {
		if slices.Contains(j.Folders, dir) {
			if _, err := i.Host.remove(dir); err != nil {
				return err
			}
		}
	}
	if err := i.Host.removeEmpty(hubTrial); err != nil {
		return err
	}
	for _, dir := range slices.Backward(j.Folders) {
		if err := i.Host.removeEmpty(dir); err != nil {
			return err
		}
	}
	return nil
}
