package host

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/weir-edge/weir/impl/disk"
)

const (
	// ContainerdService is the unit of containerd.
	ContainerdService = "containerd.service"
	// HostsFile is where containerd reads of the mirrors of a registry, in a directory of that registry's name.
	HostsFile = "hosts.toml"
	// anyRegistry is the directory for registries that have none.
	anyRegistry = "_default"
	// certs is the directory that is recommended.
	certs = "/etc/containerd/certs.d"
	// mostHosts bounds the registries that are named.
	mostHosts = 50
)

// Runtime says where a runtime is.
type Runtime struct {
	Machine string // the folder that is the root of the machine
	Runtime string // as the Node has it: containerd://2.1.4
	Unit    string // of containerd, as systemctl cat prints it
	NoUnit  error  // it cannot be printed
	Ours    string // the hosts.toml that is Weir's, and may be replaced; "": there is none
	Half    string // the end of the name of a file that is being written, which is Weir's, too
	Address string // of the mirror
}

// Pulls is how the runtime pulls images.
type Pulls struct {
	// Hosts is the file by which containerd asks a mirror first, of registries that have no directory of their own; "":
	// none counts, and Why says what to change.
	Hosts string
	Why   string
	// Theirs is a hosts.toml of somebody's that leads all registries to the mirror already; "": there is none.
	Theirs string
	// Own are the registries that have a directory of their own: for them Hosts does not count.
	Own []string
	// Content is containerd's content store.
	Content string
	// Discards says what to change where containerd keeps no layers, so that others can read an image only while it is
	// pulled; "": it keeps them.
	Discards string
}

// supported reports why a runtime has no mirror whatever its configuration says.
func supported(runtime string) error {
	switch name, _, _ := strings.Cut(runtime, "://"); name {
	case "containerd":
		return nil
	case "":
		return fmt.Errorf("the Node does not say which container runtime it has")
	case "cri-o":
		return fmt.Errorf("the container runtime is CRI-O, which is not supported: the mirror reads the files of " +
			"containerd's content store")
	default:
		return fmt.Errorf("the container runtime is %.40q, which is not supported: want containerd", name)
	}
}

// PullsOf reads how the runtime pulls.
func PullsOf(c Runtime) Pulls {
	if err := supported(c.Runtime); err != nil {
		return Pulls{Why: err.Error()}
	}
	p := c.look()
	p.Why = strings.Join(strings.Fields(p.Why), " ") // a line, whatever names there are
	return p
}

func (c Runtime) look() Pulls {
	_, text, _ := strings.Cut(c.Runtime, "://")
	v := parseVersion(text)
	if c.NoUnit != nil {
		return Pulls{Why: fmt.Sprintf("it is not known where containerd's configuration is: want the unit %s: %v",
			ContainerdService,
			c.NoUnit)}
	}
	command, err := UnitCommand(c.Unit, UnitFilesBelow(c.Machine, maxFile))
	if err != nil {
		return Pulls{Why: fmt.Sprintf("%s: %v", ContainerdService, err)}
	}
	file, root := flags(command)
	conf, err := load(c.Machine, file, v)
	if err != nil {
		return Pulls{Why: "containerd's configuration cannot be read: " + err.Error()}
	}
	if root == "" {
		root = conf.root
	}
	p := Pulls{Content: filepath.Join(root, "io.containerd.content.v1.content")}
	dirs := conf.directories(v)
	transfer := v.two(1) && conf.forcesLocal() == ""
	switch {
	case len(dirs) == 0:
		p.Why = "containerd reads no hosts.toml: " + conf.advice(v)
	case transfer && len(dirs) > 1:
		p.Why = fmt.Sprintf("containerd reads no hosts.toml: its transfer service takes config_path, %s, for one "+
			"directory; %s; or, if both directories are in use, set use_local_image_pull = true in table [plugins.%q]",
			strings.Join(dirs, ":"), conf.advice(v), imagesPlugin)
	}
	if p.Why == "" {
		c.hosts(dirs, &p)
	}
	p.Own = c.own(dirs)
	if conf.discards() {
		p.Discards = conf.keep(v)
	}
	return p
}

// section is the table of images as a person writes it, and the version of the form that it belongs to.
func (c *config) section(v version) (table string, form int) {
	form = c.form
	switch {
	case form == 0 && v.two(0):
		form = 3
	case form == 0:
		form = 2
	}
	switch {
	case form == 1:
		return "plugins.cri", form
	case form < 3:
		return fmt.Sprintf("plugins.%q", criPlugin), form
	}
	return fmt.Sprintf("plugins.%q", imagesPlugin), form
}

// keep is what a person changes to have containerd keep layers.
func (c *config) keep(v version) string {
	table, form := c.section(v)
	if form < 3 {
		table += ".containerd"
	}
	return fmt.Sprintf("in %s, table [%s], set discard_unpacked_layers = false, and restart containerd", c.file, table)
}

// advice is what a person changes.
func (c *config) advice(v version) string {
	table, form := c.section(v)
	also, instead := "", ""
	if c.form == 0 {
		also = fmt.Sprintf(" of version = %d", form)
	}
	if len(within(c.images, "registry", "mirrors")) > 0 {
		instead = " in the place of registry.mirrors, which containerd does not read beside it"
	}
	return fmt.Sprintf("in %s%s, table [%s.registry], set config_path = %q%s; restart containerd, and call weir node "+
		"join again", c.file, also, table, certs, instead)
}

// flags are what containerd's command says.
func flags(command []string) (file, root string) {
	file = ContainerdConfig
	for n, word := range command {
		name, value, ok := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !strings.HasPrefix(word, "-") {
			continue
		}
		if !ok && n+1 < len(command) {
			value = command[n+1]
		}
		if !filepath.IsAbs(value) {
			continue
		}
		switch name {
		case "config", "c":
			file = value
		case "root":
			root = value
		}
	}
	return file, root
}

// hosts finds the hosts.toml that may be written: of the last directory, so that it hides none of the others.
func (c Runtime) hosts(dirs []string, p *Pulls) {
	for n, dir := range dirs {
		if !filepath.IsAbs(dir) {
			p.Why = fmt.Sprintf("config_path of containerd has %q: want a directory, from / on", dir)
			return
		}
		home := filepath.Join(dir, anyRegistry)
		p.Hosts = filepath.Join(home, HostsFile)
		entries, err := os.ReadDir(filepath.Join(c.Machine, home))
		ours := func(e fs.DirEntry) bool {
			return e.Name() == HostsFile && p.Hosts == c.Ours || c.Half != "" && e.Name() == HostsFile+c.Half
		}
		others := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !ours(e) })
		switch {
		case os.IsNotExist(err), err == nil && !others && (len(entries) > 0 || n == len(dirs)-1):
			continue
		case err != nil:
			p.Why = err.Error()
		case c.leads(p.Hosts):
			p.Theirs = p.Hosts
		case others:
			p.Why = fmt.Sprintf("%s is there, and weir node join has not written what is in it: it is left as it is; "+
				"[host.%q] in its %s would lead to the hub", home, "http://"+c.Address, HostsFile)
		default:
			p.Why = fmt.Sprintf("%s is there, so containerd does not look into %s: it is left as it is", home, dirs[n+1])
		}
		p.Hosts = ""
		return
	}
}

// leads reports whether a hosts.toml leads to the mirror.
func (c Runtime) leads(path string) bool {
	var f struct {
		Host map[string]any `toml:"host"`
	}
	text, err := disk.ReadFile(filepath.Join(c.Machine, path), maxFile)
	if err != nil || toml.Unmarshal(text, &f) != nil {
		return false
	}
	_, ok := f.Host["http://"+c.Address]
	return ok
}

// own are the registries with a directory of their own.
func (c Runtime) own(dirs []string) (all []string) {
	for _, dir := range dirs {
		entries, _ := os.ReadDir(filepath.Join(c.Machine, dir))
		for _, e := range entries {
			name := e.Name()
			if info, err := os.Stat(filepath.Join(c.Machine, dir, name)); err != nil || !info.IsDir() || name == anyRegistry {
				continue
			}
			if host, port, ok := strings.Cut(strings.TrimSuffix(name, "_"), "_"); ok && strings.HasSuffix(name, "_") {
				name = host + ":" + port
			}
			all = append(all, name)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), mostHosts)]
}

// HostsText has containerd ask a mirror first, at an address of this machine.
func HostsText(address string) []byte {
	return fmt.Appendf(nil, "# Written by weir node join, taken away by weir node leave. containerd asks the hub of this "+
		"node first, and the\n# registry if the hub has it not, or is off.\n[host.%q]\n  capabilities = [\"pull\", "+
		"\"resolve\"]\n", "http://"+address)
}
