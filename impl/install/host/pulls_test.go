package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	address = "127.0.0.1:10272"
	section = "[plugins.'io.containerd.cri.v1.images']\n" // of version 3
	former  = "[plugins.'io.containerd.grpc.v1.cri']\n"   // of version 2
	two     = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"/etc/containerd/certs.d\"\n"
	three   = "version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/etc/containerd/certs.d'\n"
	list    = "version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\n" +
		"config_path = '/etc/containerd/certs.d:/etc/docker/certs.d'\n"
	hosts    = "/etc/containerd/certs.d/_default/hosts.toml"
	inDocker = "/etc/docker/certs.d/_default/hosts.toml"
	discards = "discard_unpacked_layers = true\n"
)

type hostsFiles map[string]string

// machine is a folder with files.
func machine(t testing.TB, all hostsFiles) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range all {
		if strings.HasSuffix(path, "/") { // a directory with something in it
			path += "x.crt"
		}
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestLook: where a hosts.toml counts by the rules of a containerd's version, and what its owner is told where none
// does.
func TestLook(t *testing.T) {
	for name, test := range map[string]struct {
		runtime string
		files   hostsFiles
		command []string
		ours    string
		hosts   string
		why     []string // parts of it
		own     []string
		keeps   string // what it says to have layers kept
		content string
	}{
		"version 2":           {runtime: "1.7.27", files: hostsFiles{ContainerdConfig: two}, hosts: hosts},
		"version 2 and 2.1":   {runtime: "2.1.4", files: hostsFiles{ContainerdConfig: two}, hosts: hosts},
		"version 3":           {runtime: "2.0.5", files: hostsFiles{ContainerdConfig: three}, hosts: hosts},
		"version 3, transfer": {runtime: "v2.1.0", files: hostsFiles{ContainerdConfig: three}, hosts: hosts},
		"version 4": {
			runtime: "2.4.2",
			files:   hostsFiles{ContainerdConfig: strings.Replace(three, "3", "4", 1)},
			hosts:   hosts,
		},
		"a version that is none": {runtime: "dev", files: hostsFiles{ContainerdConfig: three}, hosts: hosts},
		"version 1": {
			runtime: "1.6.8",
			files:   hostsFiles{ContainerdConfig: "[plugins.cri.registry]\nconfig_path='/etc/certs'\n"},
			hosts:   "/etc/certs/_default/hosts.toml",
		},
		"3 with the section of 2": {
			runtime: "2.1.0",
			files:   hostsFiles{ContainerdConfig: strings.Replace(two, "2", "3", 1)},
			why:     []string{"containerd reads no hosts.toml", `[plugins."io.containerd.cri.v1.images".registry]`},
		},
		"3 with that, 2.3": {
			runtime: "2.3.0",
			files:   hostsFiles{ContainerdConfig: strings.Replace(two, "2", "3", 1)},
			hosts:   hosts,
		},
		"2 with the section of 3": {
			runtime: "1.7.0",
			files:   hostsFiles{ContainerdConfig: strings.Replace(three, "3", "2", 1)},
			why: []string{
				`table [plugins."io.containerd.grpc.v1.cri".registry], set config_path = "/etc/containerd/certs.d"; restart`,
			},
		},
		"nothing set": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: "version = 2\n"},
			why:     []string{"in /etc/containerd/config.toml, table", "io.containerd.grpc.v1.cri"},
		},
		"nothing set, 2.1": {
			runtime: "2.1.0",
			files:   hostsFiles{ContainerdConfig: "version = 3\n"},
			why:     []string{"in /etc/containerd/config.toml, table", "io.containerd.cri.v1.images"},
		},
		"no version": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: ""},
			why:     []string{"[plugins.cri.registry]"},
		},
		"no file": {
			runtime: "1.7.27",
			why:     []string{"in /etc/containerd/config.toml of version = 2, table"},
		},
		"no file, 2.0": {
			runtime: "2.0.0",
			why:     []string{"in /etc/containerd/config.toml of version = 3, table"},
		},
		"mirrors of before": {
			runtime: "2.2.0",
			files: hostsFiles{
				ContainerdConfig: "version = 3\n[plugins.'io.containerd.cri.v1.images'.registry.mirrors.x]\nendpoint = ['y']\n",
			},
			why: []string{"in the place of registry.mirrors"},
		},
		"no TOML": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: "version = \n"},
			why:     []string{"cannot be read", ContainerdConfig},
		},
		"plugins of another kind": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: "version = 2\nplugins = 3\n"},
			why:     []string{"containerd reads no hosts.toml"},
		},
		"another kind of setting": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: "version = 2\n" + former + "registry = [1]\n"},
			why:     []string{"containerd reads no hosts.toml"},
		},
		"relative": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: strings.Replace(two, "/etc/containerd/certs.d", "certs.d", 1)},
			why:     []string{`"certs.d"`, "from / on"},
		},
		"too large": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: strings.Repeat("#", maxFile+1)},
			why:     []string{"more than"},
		},
		"CRI-O": {runtime: "cri-o://1.33.0", why: []string{"CRI-O, which is not supported"}},
		"another runtime": {
			runtime: "docker://27.0",
			why:     []string{`"docker", which is not supported: want containerd`},
		},
		"no runtime": {runtime: "-", why: []string{"does not say"}},
		"another file": {
			runtime: "1.7.27",
			files:   hostsFiles{"/opt/c.toml": two},
			command: []string{"/usr/bin/containerd", "--config", "/opt/c.toml"},
			hosts:   hosts,
		},
		"another file, -c": {
			runtime: "1.7.27",
			files:   hostsFiles{"/opt/c.toml": two},
			command: []string{"/usr/bin/containerd", "-c=/opt/c.toml"},
			hosts:   hosts,
		},
		"another root": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: "root = '/data'\n" + two},
			hosts:   hosts,
			content: "/data/io.containerd.content.v1.content",
		},
		"another root by a flag": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: "root = '/data'\n" + two},
			command: []string{"containerd", "--root=/flag"},
			hosts:   hosts,
			content: "/flag/io.containerd.content.v1.content",
		},
		"import": {
			runtime: "2.1.0",
			files: hostsFiles{
				ContainerdConfig:                "version = 3\nimports = ['conf.d/*.toml']\n",
				"/etc/containerd/conf.d/a.toml": three,
			},
			hosts: hosts,
		},
		"import that is not there": {
			runtime: "2.1.0",
			files:   hostsFiles{ContainerdConfig: "imports = ['/etc/none.toml']\n" + three},
			why:     []string{"/etc/none.toml", "no such file"},
		},
		"imports in a circle": {
			runtime: "2.1.0",
			files:   hostsFiles{ContainerdConfig: "imports = ['config.toml']\n" + three},
			hosts:   hosts,
		},
		"import adds, 2.x": {
			runtime: "2.1.0", files: hostsFiles{
				ContainerdConfig: "imports = ['/a.toml']\n" + three,
				"/a.toml":        "version = 3\n" + section + "stats_collect_period = 5\n",
			}, hosts: hosts,
		},
		"import replaces, 1.x": {
			runtime: "1.7.0", files: hostsFiles{
				ContainerdConfig: "imports = ['/a.toml']\n" + two,
				"/a.toml":        "version = 2\n" + former + "stats_collect_period = 5\n",
			}, why: []string{"in /a.toml, table"},
		},
		"import of another directory": {
			runtime: "2.1.0", files: hostsFiles{
				ContainerdConfig: "imports = ['/a.toml']\n" + three,
				"/a.toml":        strings.Replace(three, "/etc/containerd", "/opt", 1),
			}, hosts: "/opt/certs.d/_default/hosts.toml",
		},

		"transfer, a list": {runtime: "2.1.5", files: hostsFiles{ContainerdConfig: list}, why: []string{
			"its transfer service takes config_path, /etc/containerd/certs.d:/etc/docker/certs.d, for one directory",
			"in /etc/containerd/config.toml, table [plugins.\"io.containerd.cri.v1.images\".registry], set config_path = " +
				"\"/etc/containerd/certs.d\"",
			"use_local_image_pull = true in table [plugins.\"io.containerd.cri.v1.images\"]",
		}},
		"transfer, the list of 2.2": {
			runtime: "2.2.0",
			files:   hostsFiles{ContainerdConfig: "version = 3\n"},
			why:     []string{"its transfer service takes"},
		},
		"no transfer, a list": {runtime: "2.0.5", files: hostsFiles{ContainerdConfig: list}, hosts: inDocker},
		"use_local_image_pull": {
			runtime: "2.1.5",
			files:   hostsFiles{ContainerdConfig: list + section + "use_local_image_pull = true\n"},
			hosts:   inDocker,
		},
		"the list of 2.2, local": {
			runtime: "2.2.0",
			files:   hostsFiles{ContainerdConfig: "version = 3\n" + section + "use_local_image_pull = true\n"},
			hosts:   inDocker,
		},
		"use_local_image_pull of 2": {
			runtime: "2.1.5",
			files: hostsFiles{
				ContainerdConfig: strings.Replace(two, "certs.d", "certs.d:/x", 1) + former + "use_local_image_pull = true\n",
			},
			why: []string{"its transfer service"},
		},
		"discard_unpacked_layers": {
			runtime: "2.1.5",
			files:   hostsFiles{ContainerdConfig: list + section + discards},
			hosts:   inDocker,
			keeps:   "in /etc/containerd/config.toml, table [plugins.\"io.containerd.cri.v1.images\"], set discard_",
		},
		"layers are kept": {
			runtime: "2.1.5",
			files:   hostsFiles{ContainerdConfig: three + section + "discard_unpacked_layers = false\n"},
			hosts:   hosts,
		},
		"discard_unpacked_layers of 2, as kind has it": {
			runtime: "2.3.4",
			files: hostsFiles{
				ContainerdConfig: two + former + "[plugins.'io.containerd.grpc.v1.cri'.containerd]\n" + discards,
			},
			hosts: hosts,
			keeps: "table [plugins.\"io.containerd.grpc.v1.cri\".containerd], set discard_unpacked_layers = false",
		},
		"discard_unpacked_layers of 1.x": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: two + "[plugins.'io.containerd.grpc.v1.cri'.containerd]\n" + discards},
			hosts:   hosts,
			keeps:   "table [plugins.\"io.containerd.grpc.v1.cri\".containerd], set discard_unpacked_layers = false",
		},
		"snapshot annotations": {runtime: "2.1.5", files: hostsFiles{
			ContainerdConfig: strings.Replace(two, "certs.d", "certs.d:/etc/docker/certs.d", 1) +
				"[plugins.'io.containerd.grpc.v1.cri'.containerd]\ndisable_snapshot_annotations = false\n",
		}, hosts: inDocker},
		"max_concurrent_downloads": {
			runtime: "2.1.5",
			files:   hostsFiles{ContainerdConfig: list + section + "max_concurrent_downloads = 5\n"},
			hosts:   inDocker,
		},
		"max_concurrent_downloads of 3": {
			runtime: "2.1.5",
			files:   hostsFiles{ContainerdConfig: list + section + "max_concurrent_downloads = 3\n"},
			why:     []string{"its transfer service"},
		},
		"sync_fs": {
			runtime: "2.1.5",
			files:   hostsFiles{ContainerdConfig: list + section + "image_pull_with_sync_fs = true\n"},
			hosts:   inDocker,
		},
		"registry.configs": {
			runtime: "2.1.5",
			files: hostsFiles{
				ContainerdConfig: list + "[plugins.'io.containerd.cri.v1.images'.registry.configs.x.auth]\nusername = 'y'\n",
			},
			hosts: inDocker,
		},

		"somebody's": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: two, hosts: "server = 'https://x'\n"},
			why: []string{
				"/etc/containerd/certs.d/_default is there",
				"left as it is",
				`[host."http://` + address + `"]`,
			},
		},
		"somebody's that led": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: two, hosts: "[host.'http://" + address + "']\n"},
			hosts:   "theirs " + hosts,
		},
		"somebody's authority": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: two, "/etc/containerd/certs.d/_default/": ""},
			why:     []string{"is there"},
		},
		"ours": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: two, hosts: "x"},
			ours:    hosts,
			hosts:   hosts,
		},
		"half of ours": {
			runtime: "1.7.27",
			files:   hostsFiles{ContainerdConfig: two, hosts + ".half": "x"},
			hosts:   hosts,
		},
		"one before in the list": {
			runtime: "2.0.5", files: hostsFiles{ContainerdConfig: list, hosts: "x"},
			why: []string{"/etc/containerd/certs.d/_default is there"},
		},
		"own directories": {
			runtime: "2.0.5", files: hostsFiles{
				ContainerdConfig: list, "/etc/containerd/certs.d/registry.example/hosts.toml": "",
				"/etc/containerd/certs.d/x.crt":    "",
				"/etc/docker/certs.d/local_5000_/": "", "/etc/docker/certs.d/registry.example/": "",
			}, hosts: inDocker, own: []string{"local:5000", "registry.example"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := Runtime{
				Machine: machine(t, test.files), Runtime: test.runtime,
				Unit: "[Service]\nExecStart=" + strings.Join(test.command, " ") + "\n",
				Ours: test.ours, Half: ".half",
				Address: address,
			}
			if !strings.Contains(c.Runtime, "://") {
				c.Runtime = "containerd://" + c.Runtime
			}
			if test.runtime == "-" {
				c.Runtime = ""
			}
			p := PullsOf(c)
			got := p.Hosts
			if p.Theirs != "" {
				got = "theirs " + p.Theirs
			}
			if got != test.hosts || (p.Why == "") != (test.why == nil) || strings.Contains(p.Why, "\n") ||
				strings.Contains(p.Why, c.Machine) && !strings.Contains(p.Why, "no such file") && name != "too large" {
				t.Errorf("%+v: want hosts %q", p, test.hosts)
			}
			for _, part := range test.why {
				if !strings.Contains(p.Why, part) {
					t.Errorf("%s: does not say %q", p.Why, part)
				}
			}
			if !slices.Equal(p.Own, test.own) {
				t.Errorf("own %v: want %v", p.Own, test.own)
			}
			if (p.Discards == "") != (test.keeps == "") || !strings.Contains(p.Discards, test.keeps) {
				t.Errorf("to keep layers: %q: want %q", p.Discards, test.keeps)
			}
			if test.content != "" && p.Content != test.content {
				t.Errorf("content %s: want %s", p.Content, test.content)
			}
		})
	}
}

// TestMany: imports without an end are an error.
func TestMany(t *testing.T) {
	all := hostsFiles{ContainerdConfig: "imports = ['/d/*.toml']\n" + three}
	for n := range mostFiles + 5 {
		all["/d/"+strings.Repeat("a", n+1)+".toml"] = "version = 3\n"
	}
	p := PullsOf(Runtime{Machine: machine(t, all), Runtime: "containerd://2.1.0", Address: address})
	if !strings.Contains(p.Why, "more than 100 files") {
		t.Errorf("%+v", p)
	}
}

// FuzzLook: whatever a configuration says, there is either a file or a reason, of one line.
func FuzzLook(f *testing.F) {
	for _, text := range []string{
		two, three, list, "imports = ['*']\n" + two, "plugins.cri = 1", "[plugins.cri]\nregistry=[]",
	} {
		for _, v := range []string{"1.7.27", "2.0.0", "2.1.0", "2.2.0", "2.4.2"} {
			f.Add(text, v)
		}
	}
	root := f.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "/etc/containerd"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, v string) {
		if err := os.WriteFile(filepath.Join(root, ContainerdConfig), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := PullsOf(Runtime{Machine: root, Runtime: "containerd://" + v, Address: address})
		if (p.Hosts == "") == (p.Why == "") || strings.Contains(p.Why, "\n") || p.Hosts != "" && !filepath.IsAbs(p.Hosts) {
			t.Errorf("%+v", p)
		}
	})
}
