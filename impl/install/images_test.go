package install

import (
	"cmp"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/install/host"
)

const hostsToml = "/etc/containerd/certs.d/_default/hosts.toml"

// told is an installer whose lines are kept.
func (w *world) told(change func(*Config)) (*Installer, *strings.Builder) {
	var b strings.Builder
	return w.installer(func(c *Config) {
		c.Out = &b
		if change != nil {
			change(c)
		}
	}), &b
}

// imagesAre checks what status says, and that it says why.
func (w *world) imagesAre(on bool, why string) {
	w.t.Helper()
	s, err := w.installer(nil).Status(w.t.Context())
	check(w.t, err)
	if s.Images == nil || s.Images.On != on || !strings.Contains(s.Images.String(), why) || on != (s.Images.Why == "") {
		w.t.Errorf("%+v: want on %v, and %q", s.Images, on, why)
	}
}

func refuse(c *Config) { no := false; c.Images = &no }

// TestImages: a join has containerd ask the hub where its configuration allows that, says what to change where it does
// not, and joins all the same. A leave leaves the machine as it was.
func TestImages(t *testing.T) {
	const (
		three = "version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/etc/containerd/certs.d'\n"
		list  = "version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\n" +
			"config_path = '/etc/containerd/certs.d:/etc/docker/certs.d'\n"
	)
	for name, test := range map[string]struct {
		runtime, config string
		files           map[string]string
		change          func(*Config)
		hosts           string // that is written; "": none
		says            string
		on              bool
	}{
		"version 2": {"containerd://1.7.27", containerdText, nil, nil, hostsToml, "hub first, by " + hostsToml, true},
		"version 3": {"containerd://2.1.4", three, nil, nil, hostsToml, "asks the hub first", true},
		"imports": {
			"containerd://2.1.4", "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n",
			map[string]string{"/etc/containerd/conf.d/50.toml": three}, nil, hostsToml, "asks the hub first", true,
		},
		"no config_path": {
			"containerd://1.7.27", "version = 2\n", nil, nil, "",
			`in /etc/containerd/config.toml, table [plugins."io.containerd.grpc.v1.cri".registry], set config_path`, false,
		},
		"transfer service": {"containerd://2.2.0", list, nil, nil, "", "use_local_image_pull = true", false},
		"local pulls": {
			"containerd://2.2.0", list + "[plugins.'io.containerd.cri.v1.images']\nuse_local_image_pull = true\n", nil, nil,
			"/etc/docker/certs.d/_default/hosts.toml", "asks the hub first, by /etc/docker/certs.d/", true,
		},
		"no layers": {
			"containerd://1.7.27", containerdText +
				"[plugins.'io.containerd.grpc.v1.cri'.containerd]\ndiscard_unpacked_layers = true\n", nil, nil, hostsToml,
			"set discard_unpacked_layers = false", true,
		},
		"CRI-O": {"cri-o://1.33.0", containerdText, nil, nil, "", "CRI-O, which is not supported", false},
		"somebody's": {
			"containerd://1.7.27", containerdText, map[string]string{hostsToml: "server = 'https://x'\n"}, nil, "",
			"left as it is", false,
		},
		"own directory": {
			"containerd://1.7.27", containerdText,
			map[string]string{"/etc/containerd/certs.d/registry.example/hosts.toml": ""}, nil, hostsToml,
			"asks others for registry.example", true,
		},
		"refused": {"containerd://1.7.27", containerdText, nil, refuse, "", "--images=false", false},
		"by a file": {
			"containerd://1.7.27", containerdText, map[string]string{hubConfig + ".d/a.yaml": "images-port: 0\n"}, nil, "",
			"images-port: 0", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for the disk
			w := newWorld(t)
			w.runtime = test.runtime
			w.write(host.ContainerdConfig, test.config)
			for path, text := range test.files {
				w.write(path, text)
			}
			before := w.snapshot()
			i, said := w.told(test.change)
			check(t, i.Join(t.Context()))
			joined := w.snapshot()
			if !strings.Contains(said.String(), test.says) {
				t.Errorf("%s: does not say %q", said, test.says)
			}
			text, written := joined[cmp.Or(test.hosts, "/none")]
			if written != (test.hosts != "") || written && !strings.Contains(text, "http://"+local(w.ports.Images)+"\"") {
				t.Errorf("%s has %q", test.hosts, text)
			}
			if port := strings.Contains(joined[hubConfig], "images-port: "); port != test.on {
				t.Errorf("the hub's configuration has a port: %v: want %v", port, test.on)
			}
			why := ""
			if !test.on {
				why = test.says
			}
			w.imagesAre(test.on, why)
			w.commands = nil
			check(t, w.installer(nil).Join(t.Context()))
			if diff := differ(joined, w.snapshot()); len(diff) > 0 || slices.Contains(w.commands, "restart "+hubService) {
				t.Errorf("the second join changed %v", diff)
			}
			check(t, w.installer(nil).Leave(t.Context()))
			if diff := differ(before, w.snapshot()); len(diff) > 0 {
				t.Errorf("join and leave changed %v", diff)
			}
		})
	}
}

// TestImagesChanged: what a person has changed in the file that Join wrote stays, at joins and at leave.
func TestImagesChanged(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		on   bool // it leads to the hub as before
	}{"to another mirror": {"server = 'https://x'\n", false}, "but for the hub": {"[host.'http://%s']\n# mine\n", true}} {
		t.Run(name, func(t *testing.T) {
			w, before := joinedWorld(t)
			w.write(hostsToml, strings.Replace(test.text, "%s", local(w.ports.Images), 1))
			mine := w.snapshot()[hostsToml]
			i, said := w.told(nil)
			check(t, i.Join(t.Context()))
			if !strings.Contains(said.String(), hostsToml+" is not as weir node join wrote it") {
				t.Errorf("%s: does not say that it was changed", said)
			}
			why := ""
			if !test.on {
				why = "left as it is"
			}
			w.imagesAre(test.on, why)
			check(t, w.installer(nil).Leave(t.Context()))
			after := w.snapshot()
			if diff := differ(before, after); after[hostsToml] != mine || !slices.Equal(diff,
				[]string{"+ /etc/containerd/certs.d", "+ /etc/containerd/certs.d/_default", "+ " + hostsToml}) {
				t.Errorf("left is %v", diff)
			}
		})
	}
}

// TestImagesLater: a node whose containerd could not be led gets the mirror by a join after its owner has changed that,
// and loses it by --images=false, which later joins keep to. An upgrade of the hub keeps it.
func TestImagesLater(t *testing.T) {
	w := newWorld(t)
	w.write(host.ContainerdConfig, "version = 2\n")
	before := w.snapshot()
	check(t, w.installer(nil).Join(t.Context()))
	w.imagesAre(false, "set config_path")
	w.write(host.ContainerdConfig, containerdText)
	w.imagesAre(false, "weir node join once more")
	check(t, w.installer(nil).Join(t.Context()))
	w.imagesAre(true, "")
	check(t, w.installer(w.release("another program")).Join(t.Context()))
	w.imagesAre(true, "")
	w.write(host.ContainerdConfig, strings.Replace(containerdText, "/etc/containerd", "/opt", 1))
	w.imagesAre(false, "/opt/certs.d/_default/hosts.toml does not lead to the hub")
	second := w.release("another program")
	check(t, w.installer(second).Join(t.Context()))
	if all := w.snapshot(); all[hostsToml] != "" || all["/opt/certs.d/_default/hosts.toml"] == "" {
		t.Error("the file of before is there, or the new one is not")
	}
	check(t, w.installer(func(c *Config) { second(c); refuse(c) }).Join(t.Context()))
	check(t, w.installer(second).Join(t.Context()))
	w.imagesAre(false, "--images=false")
	if all := w.snapshot(); all["/opt/certs.d"] != "" || strings.Contains(all[hubConfig], "images-port") {
		t.Error("--images=false left something")
	}
	check(t, w.installer(nil).Leave(t.Context()))
	want := []string{"! " + host.ContainerdConfig, "+ /opt/weir-hub-2"}
	if diff := differ(before, w.snapshot()); !slices.Equal(diff, want) {
		t.Errorf("leaves %v", diff)
	}
}

// TestImagesReadOnly: a directory that cannot be written leaves the node without the mirror, and it joins.
func TestImagesReadOnly(t *testing.T) {
	w := newWorld(t)
	before := w.snapshot()
	i, said := w.told(func(c *Config) {
		c.Host.Changed = func(what string) {
			if what == "made /etc/containerd/certs.d" { // what comes next cannot be made: a file stands in its place
				_ = os.WriteFile(filepath.Join(w.root, filepath.Dir(hostsToml)), nil, 0o600)
			}
		}
	})
	check(t, i.Join(t.Context()))
	if !strings.Contains(said.String(), "images: the mirror is off: ") {
		t.Errorf("%s: does not say that it is off", said)
	}
	s, err := i.Status(t.Context())
	if err != nil || !s.Well() || s.Images.On {
		t.Errorf("%+v, %v", s, err)
	}
	check(t, os.Remove(filepath.Join(w.root, filepath.Dir(hostsToml))))
	check(t, w.installer(nil).Leave(t.Context()))
	if diff := differ(before, w.snapshot()); len(diff) > 0 {
		t.Errorf("leaves %v", diff)
	}
}

// TestImagesPort: a taken port keeps a node from joining, unless the mirror would be off.
func TestImagesPort(t *testing.T) {
	w := newWorld(t)
	taken := func(c *Config) { c.Ports.Images = w.cloud.Listener.Addr().(*net.TCPAddr).Port }
	err := w.installer(taken).Check(t.Context())
	var failed *PreflightError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "taken by another process") {
		t.Errorf("%v", err)
	}
	check(t, w.installer(func(c *Config) { taken(c); refuse(c) }).Check(t.Context()))
	c := w.installer(nil).Config
	c.Ports.Images = c.Ports.Pool
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "--images-port, --pool-port") {
		t.Errorf("two of the same: %v", err)
	}
}
