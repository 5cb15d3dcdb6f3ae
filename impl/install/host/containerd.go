package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/weir-edge/weir/impl/disk"
)

const (
	// ContainerdConfig is containerd's configuration, unless its command names another one.
	ContainerdConfig = "/etc/containerd/config.toml"
	defaultRoot      = "/var/lib/containerd"
	// of configuration version 3 and later, and of version 2.
	imagesPlugin, criPlugin = "io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri"

	maxFile   = 1 << 20 // bytes of a file of the configuration
	mostFiles = 100     // that it may have, with imports
	mostDeep  = 20      // tables in tables that are merged
)

// table is one of a configuration.
type table = map[string]any

// version is the one of a containerd.
type version struct{ major, minor int }

// two reports whether it is 2.minor or later.
func (v version) two(minor int) bool { return v.major > 2 || v.major == 2 && v.minor >= minor }

// newest is the newest version of a configuration that a containerd knows: it migrates older ones.
func (v version) newest() int {
	switch {
	case !v.two(0):
		return 2
	case !v.two(3):
		return 3
	}
	return 4
}

var versionForm = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})`)

// parseVersion reads the version of a containerd. One that cannot be read is taken for 2.1, the first with a transfer
// service: that one reads hosts.toml in the fewest cases.
func parseVersion(text string) version {
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return version{2, 1}
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return version{major, minor}
}

// config is what matters of a containerd's configuration.
type config struct {
	file    string // where a person changes the section of images
	form    int    // the version of that file's form; 0: there is no such file
	root    string
	images  table // the section
	plugins table
}

// load reads the configuration with its imports. A first file that is not there is an empty one.
func load(machine, file string, v version) (*config, error) {
	c := &config{file: file, root: defaultRoot, plugins: table{}}
	loaded := map[string]bool{}
	for pending := []string{file}; len(pending) > 0; {
		path := pending[0]
		pending = pending[1:]
		if loaded[path] {
			continue
		}
		if len(loaded) == mostFiles {
			return nil, fmt.Errorf("%s: it has more than %d files by its imports, which is the most that are read", file,
				mostFiles)
		}
		loaded[path] = true
		text, err := disk.ReadFile(filepath.Join(machine, path), maxFile)
		if errors.Is(err, fs.ErrNotExist) && path == file {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		imports, err := c.add(path, text, v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, p := range imports {
			if p = filepath.Clean(p); !filepath.IsAbs(p) {
				p = filepath.Join(filepath.Dir(path), p)
			}
			if !strings.Contains(p, "*") {
				pending = append(pending, p)
				continue
			}
			all, err := filepath.Glob(filepath.Join(machine, p))
			if err != nil {
				return nil, fmt.Errorf("%s: imports: %q: %w", path, p, err)
			}
			for _, at := range all[:min(len(all), mostFiles+1)] {
				pending = append(pending, filepath.Join("/", strings.TrimPrefix(at, filepath.Clean(machine))))
			}
		}
	}
	c.images = within(c.plugins, sectionOf(v))
	return c, nil
}

// sectionOf is the plugin whose section counts in the end.
func sectionOf(v version) string {
	if v.two(0) {
		return imagesPlugin
	}
	return criPlugin
}

// add adds what a file says, and returns what it imports.
func (c *config) add(path string, text []byte, v version) (imports []string, err error) {
	var f struct {
		Version int      `toml:"version"`
		Root    string   `toml:"root"`
		Imports []string `toml:"imports"`
		Plugins table    `toml:"plugins"`
	}
	if err := toml.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	if f.Root != "" {
		c.root = f.Root
	}
	if one := within(f.Plugins, "cri"); f.Version < 2 && one != nil {
		f.Plugins[criPlugin] = one
	}
	if v.two(0) && f.Version < v.newest() {
		migrate(f.Plugins)
	}
	has := within(f.Plugins, sectionOf(v)) != nil
	if has || path == c.file {
		c.file, c.form = path, max(f.Version, 1)
	}
	if !v.two(0) {
		maps.Copy(c.plugins, f.Plugins)
	} else {
		merge(c.plugins, f.Plugins, mostDeep)
	}
	return f.Imports, nil
}

// migrate brings what a plugin of version 2 says of images to that of version 3, as containerd 2.x does.
func migrate(plugins table) {
	was := within(plugins, criPlugin)
	if was == nil {
		return
	}
	now := within(plugins, imagesPlugin)
	if now == nil {
		now = table{}
	}
	take := func(from table, keys ...string) {
		for _, k := range keys {
			if v, ok := from[k]; ok {
				now[k] = v
			}
		}
	}
	take(was, "registry", "max_concurrent_downloads", "image_pull_with_sync_fs")
	take(within(was, "containerd"), "disable_snapshot_annotations", "discard_unpacked_layers")
	plugins[imagesPlugin] = now
}

// merge adds tables of one to another. What is empty replaces nothing.
func merge(to, from table, deep int) {
	for k, v := range from {
		was, had := to[k].(table)
		now, has := v.(table)
		switch {
		case had && has && deep > 0:
			merge(was, now, deep-1)
		case to[k] == nil || !isZero(v):
			to[k] = v
		}
	}
}

func isZero(v any) bool { return v == nil || reflect.ValueOf(v).IsZero() }

// within is a table of a table; nil: it has none of that name.
func within(t table, names ...string) table {
	for _, name := range names {
		t, _ = t[name].(table)
	}
	return t
}

// forcesLocal names the setting by which containerd pulls without its transfer service; "": none does.
func (c *config) forcesLocal() string {
	is := func(name string, value bool) bool { v, ok := c.images[name].(bool); return ok && v == value }
	switch {
	case is("use_local_image_pull", true):
		return "use_local_image_pull"
	case is("disable_snapshot_annotations", false):
		return "disable_snapshot_annotations"
	case is("discard_unpacked_layers", true):
		return "discard_unpacked_layers"
	case is("image_pull_with_sync_fs", true):
		return "image_pull_with_sync_fs"
	}
	if n, ok := c.images["max_concurrent_downloads"].(int64); ok && n != 3 {
		return "max_concurrent_downloads"
	}
	for _, name := range []string{"mirrors", "configs", "auths"} {
		if len(within(c.images, "registry", name)) > 0 {
			return "registry." + name
		}
	}
	return ""
}

// directories are those of config_path.
func (c *config) directories(v version) []string {
	path, _ := within(c.images, "registry")["config_path"].(string)
	if path == "" && v.two(2) && len(within(c.images, "registry", "mirrors")) == 0 {
		path = "/etc/containerd/certs.d:/etc/docker/certs.d"
	}
	return slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return dir == "" })
}

// discards reports whether containerd keeps no layer of an image that is unpacked.
func (c *config) discards() bool {
	const key = "discard_unpacked_layers"
	is, ok := c.images[key].(bool)
	if !ok { // before 2.0
		is, _ = within(c.images, "containerd")[key].(bool)
	}
	return is
}
