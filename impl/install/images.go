package install

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/install/host"
)

const (
	// Reasons to have no mirror.
	ownersNo = "a file in " + hubConfig + ".d has images-port: 0"
	flagsNo  = "weir node join --images=false said so"
)

func sumOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// ours reports whether what the journal tells of is there as it was written, or not there at all.
func (i *Installer) ours(was *images) bool {
	if was == nil || was.Hosts == "" {
		return false
	}
	text, err := i.Host.read(was.Hosts)
	return errors.Is(err, fs.ErrNotExist) || err == nil && sumOf(text) == was.Sum
}

// pulls looks how the machine's containers get their images.
func (i *Installer) pulls(ctx context.Context, runtime, address string, was *images) host.Pulls {
	text, err := i.Host.systemctl(ctx, "cat", host.ContainerdService)
	c := host.Runtime{Machine: i.Host.Root, Runtime: runtime, Unit: text, NoUnit: err, Half: half, Address: address}
	if i.ours(was) {
		c.Ours = was.Hosts
	}
	return host.PullsOf(c)
}

// mirrorAddress is where the hub listens for containerd: what the owner has put beside its configuration wins. "": not.
func (i *Installer) mirrorAddress() (string, error) {
	text, err := i.beside(map[string]any{"images-port": i.Ports.Images})
	if err != nil {
		return "", err
	}
	var all struct {
		Port any `json:"images-port"`
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		return "", err
	}
	address, err := host.Listens(all.Port)
	if err != nil {
		return "", fmt.Errorf("%s.d: images-port: %w", hubConfig, err)
	}
	return address, nil
}

// tellRuntime has containerd ask the hub, or not any more. A file that cannot be written leaves the node without the
// mirror.
func (i *Installer) tellRuntime(p *preflight, j *journal) error {
	m := p.mirror
	now := m.images
	if j.Images != nil && *j.Images == now && j.Ports.Images == i.Ports.Images &&
		(now.Hosts == "" || i.Host.same(m.hosts)) {
		return nil
	}
	if was := j.Images; was != nil && (was.Hosts != now.Hosts || was.Sum != now.Sum) {
		if err := i.takeHosts(j); err != nil {
			return err
		}
	}
	if now.Hosts != "" {
		for _, dir := range i.Host.missing(filepath.Dir(m.hosts.path)) {
			if !slices.Contains(j.Folders, dir) {
				j.Folders = append(j.Folders, dir)
			}
		}
	}
	j.Images, j.Ports.Images = &now, i.Ports.Images
	if err := i.Host.keep(j); err != nil {
		return err
	}
	if now.Hosts == "" {
		return nil
	}
	if _, err := i.Host.put(m.hosts); err != nil {
		i.say("images: the mirror is off: %v", err)
	}
	return nil
}

// takeHosts takes away what has containerd ask the hub, if it is still what Join wrote.
func (i *Installer) takeHosts(j *journal) error {
	if j.Images == nil || j.Images.Hosts == "" {
		return nil
	}
	path := j.Images.Hosts
	if err := i.Host.clear(path + half); err != nil {
		return err
	}
	if !i.ours(j.Images) {
		i.say("images: %s is not as weir node join wrote it: it is left as it is", path)
		return nil
	}
	if err := i.Host.clear(path); err != nil {
		return err
	}
	for dir := filepath.Dir(path); slices.Contains(j.Folders, dir); dir = filepath.Dir(dir) {
		if err := i.Host.removeEmpty(dir); err != nil {
			return err
		}
	}
	return nil
}

func (i *Installer) imagesStatus(ctx context.Context, j *journal, hub *HubStatus) *host.MirrorStatus {
	was := j.Images
	switch {
	case was == nil:
		return &host.MirrorStatus{Why: "the join is not ended, or it was one of a version without a mirror: " + host.Again}
	case was.Refused:
		return &host.MirrorStatus{Refused: true, Why: flagsNo}
	case hub == nil:
		return &host.MirrorStatus{Why: "the hub does not answer"}
	}
	i.Ports = j.Ports
	address, err := i.mirrorAddress()
	switch {
	case err != nil:
		return &host.MirrorStatus{Why: err.Error()}
	case address == "":
		return &host.MirrorStatus{Why: ownersNo}
	}
	mirror := ""
	if hub.Images != nil {
		mirror = hub.Images.Address
	}
	pulls := i.pulls(ctx, was.Runtime, address, was)
	return host.MirrorStatusOf(pulls, was.Hosts, i.Host.there(was.Hosts), address, mirror)
}
