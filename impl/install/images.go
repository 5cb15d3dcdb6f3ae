package install

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/install/cri"
	"github.com/weir-edge/weir/impl/install/unit"
)

const (
	containerdService = "containerd.service"
	// Reasons to have no mirror.
	ownersNo = "a file in " + hubConfig + ".d has images-port: 0"
	flagsNo  = "weir node join --images=false said so"
)

// images is what the journal says of the mirror of registries.
type images struct {
	Refused bool   `json:"refused,omitempty"` // a person wants none
	Runtime string `json:"runtime,omitempty"` // of containers, as the Node had it
	// Hosts is the hosts.toml that Join writes, maybe; "": none. Sum is the SHA-256 of what it writes.
	Hosts string `json:"hosts,omitempty"`
	Sum   string `json:"sum,omitempty"`
}

// mirror is what a join would have containerd ask first.
type mirror struct {
	images
	hosts   file   // as it is to be
	theirs  string // one of somebody's leads to the hub, and there is none to be
	content string // containerd's content store
	why     string // there is none; "": there is one
}

func (m *mirror) on() bool { return m != nil && m.why == "" }

// file is by what containerd is led.
func (m *mirror) file() string { return cmp.Or(m.Hosts, m.theirs) }

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
func (i *Installer) pulls(ctx context.Context, runtime, address string, was *images) cri.Pulls {
	if err := cri.Supported(runtime); err != nil {
		return cri.Pulls{Why: err.Error()}
	}
	text, err := i.Host.systemctl(ctx, "cat", containerdService)
	if err != nil {
		return cri.Pulls{Why: fmt.Sprintf("it is not known where containerd's configuration is: want the unit %s: %v",
			containerdService, err)}
	}
	command, err := unit.Command(text, unit.Below(i.Host.Root, maxFile))
	if err != nil {
		return cri.Pulls{Why: fmt.Sprintf("%s: %v", containerdService, err)}
	}
	c := cri.Config{Machine: i.Host.Root, Runtime: runtime, Command: command, Half: half, Address: address}
	if i.ours(was) {
		c.Ours = was.Hosts
	}
	return cri.Look(c)
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
		own, err := p.look(ctx, was)
		if err != nil {
			return err
		}
		if len(own) > 0 && m.on() {
			p.say("images: containerd asks others for %s: they have a directory of their own beside %s",
				strings.Join(own, ", "), filepath.Dir(m.file()))
		}
	}
	if m.on() {
		p.say("images: containerd asks the hub first, by %s", m.file())
	} else {
		p.say("images: the mirror is off: %s", m.why)
	}
	return nil
}

// look fills in the mirror, and returns the registries that it is not for.
func (p *preflight) look(ctx context.Context, was *images) (own []string, err error) {
	address, err := p.mirrorAddress()
	if err != nil {
		return nil, err
	}
	pulls := p.pulls(ctx, p.node.Runtime, address, was)
	m := p.mirror
	switch {
	case address == "":
		m.why = ownersNo
	case pulls.Why != "":
		m.why = pulls.Why
	case pulls.Theirs != "":
		m.content, m.theirs = pulls.Content, pulls.Theirs
	default:
		m.content, m.hosts = pulls.Content, file{pulls.Hosts, 0o644, cri.HostsText(address)}
		m.Hosts, m.Sum = m.hosts.path, sumOf(m.hosts.content)
	}
	return pulls.Own, nil
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
	said := fmt.Sprint(all.Port)
	if said == "0" || strings.HasSuffix(said, ":0") {
		return "", nil
	}
	if strings.Contains(said, ":") {
		_, err = netip.ParseAddrPort(said)
	} else {
		said = "127.0.0.1:" + said
		_, err = netip.ParseAddrPort(said)
	}
	if err != nil {
		return "", fmt.Errorf("%s.d: images-port: %w", hubConfig, err)
	}
	return said, nil
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

// ImagesStatus says whether containerd asks the hub for images first.
type ImagesStatus struct {
	On      bool     `json:"on"`
	Refused bool     `json:"refused,omitempty"` // by --images=false
	Hosts   string   `json:"hosts,omitempty"`   // the file by which containerd is told
	Why     string   `json:"why,omitempty"`     // it is off
	Others  []string `json:"others,omitempty"`  // registries for which containerd asks somebody else
}

// String is a line for a person.
func (s *ImagesStatus) String() string {
	if !s.On {
		return "containerd asks registries: " + s.Why
	}
	if len(s.Others) == 0 {
		return "containerd asks the hub first"
	}
	return "containerd asks the hub first, but for images of " + strings.Join(s.Others, ", ")
}

func (i *Installer) imagesStatus(ctx context.Context, j *journal, hub *HubStatus) *ImagesStatus {
	const again = "weir node join once more sets it up"
	was := j.Images
	switch {
	case was == nil:
		return &ImagesStatus{Why: "the join is not ended, or it was one of a version without a mirror: " + again}
	case was.Refused:
		return &ImagesStatus{Refused: true, Why: flagsNo}
	}
	i.Ports = j.Ports
	address, err := i.mirrorAddress()
	if err != nil {
		return &ImagesStatus{Why: err.Error()}
	}
	pulls := i.pulls(ctx, was.Runtime, address, was)
	s := &ImagesStatus{Hosts: cmp.Or(was.Hosts, pulls.Theirs), Others: pulls.Own}
	switch {
	case address == "":
		s.Why = ownersNo
	case pulls.Why != "":
		s.Why = pulls.Why
	case pulls.Hosts != was.Hosts || was.Hosts != "" && !i.Host.there(was.Hosts):
		s.Why = fmt.Sprintf("%s does not lead to the hub: %s", cmp.Or(pulls.Hosts, was.Hosts), again)
	case hub == nil:
		s.Why = "the hub does not answer"
	case hub.Images == nil:
		s.Why = "the hub is no mirror: see what it lacks, and images-port in its configuration"
	case hub.Images.Address != address:
		s.Why = fmt.Sprintf("the mirror is at %s, and containerd is led to %s: %s", hub.Images.Address, address, again)
	default:
		s.On = true
	}
	return s
}
