package install

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/install/cluster"
)

// TestJoinAndLeave: a node joins, and its kubelet calls its hub; a second join changes nothing; it leaves, and all is
// as it was, byte by byte. kube-proxy starts again where it calls who it should not.
func TestJoinAndLeave(t *testing.T) {
	w := newWorld(t)
	w.proxies["kube-proxy-old"] = time.Now().Add(-time.Hour)
	before := w.snapshot()
	i := w.installer(func(c *Config) { c.Token = "abcdef.0123456789abcdef" })
	check(t, i.Join(t.Context()))
	w.mu.Lock()
	if w.server() != "https://"+local(w.ports.Secure) || w.said["status"] != "True" ||
		w.said["reason"] != cluster.ReasonJoined {
		t.Errorf("the kubelet calls %s, the condition is %v", w.server(), w.said)
	}
	if len(w.proxies) > 0 {
		t.Errorf("kube-proxies that were started before the join: %v", w.proxies)
	}
	w.proxies["kube-proxy-new"], w.proxies["kube-proxy-missed"] = time.Now().Add(time.Second), time.Now().Add(-time.Hour)
	w.mu.Unlock()
	joined := w.snapshot()
	if joined[ownConfig] != before[ownConfig] {
		t.Error("the kubelet's own kubeconfig was written")
	}
	if drop := joined[lasting+dropIn]; !strings.Contains(drop,
		`--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/weir/kubelet.conf"`) {
		t.Errorf("drop-in:\n%s", drop)
	}
	if config := joined[hubConfig]; !strings.Contains(config, "coordinator-replica: weir-manager\n") ||
		!strings.Contains(config, "enrol-coordinator-host:\n- 10.0.0.1\n") {
		t.Errorf("the hub's configuration:\n%s", config)
	}
	s, err := i.Status(t.Context())
	if err != nil || !s.Well() || s.Led != "for good" || s.Pool != "harbour" {
		t.Errorf("%+v, %v", s, err)
	}
	w.commands = nil
	check(t, w.installer(nil).Join(t.Context())) // without the token, which counts once
	if diff := differ(joined, w.snapshot()); len(diff) > 0 ||
		slices.ContainsFunc(w.commands, func(c string) bool { return strings.HasPrefix(c, "restart") }) {
		t.Errorf("the second join changed %v, by %v", diff, w.commands)
	}
	if _, ok := w.proxies["kube-proxy-new"]; !ok || len(w.proxies) != 1 {
		t.Errorf("after the second join: %v", w.proxies)
	}
	check(t, i.Leave(t.Context()))
	if diff := differ(before, w.snapshot()); len(diff) > 0 {
		t.Errorf("join and leave changed %v", diff)
	}
	if w.said != nil || !w.hasAPI() || len(w.proxies) > 0 {
		t.Errorf("condition %v, API %v, kube-proxies %v", w.said, w.hasAPI(), w.proxies)
	}
	check(t, i.Leave(t.Context()))
}

// TestCoordinatorsData: what a coordinator on the node has kept goes with the hub, when its Pod has gone; while it is
// to stay nobody takes its data from under it.
func TestCoordinatorsData(t *testing.T) {
	for name, label := range map[string]string{"in another pool": "", "still in the pool": "harbour"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := w.snapshot()
			i := w.installer(nil)
			check(t, os.MkdirAll(i.Host.at(podData+"/member"), 0o700)) // its Pod was there before the hub
			check(t, os.MkdirAll(i.Host.at(forPod), 0o755))
			check(t, i.Join(t.Context()))
			check(t, os.WriteFile(i.Host.at(podData+"/member/db"), []byte("Leases"), 0o600))
			w.mu.Lock()
			w.label, w.coordinates = label, 3
			w.mu.Unlock()
			check(t, i.Leave(t.Context()))
			w.mu.Lock()
			defer w.mu.Unlock()
			diff := differ(before, w.snapshot())
			if kept := label != ""; kept != i.Host.there(podData+"/member/db") || !kept && (len(diff) > 0 || w.coordinates > 0) {
				t.Errorf("left is %v, and the Pod is seen %d times more", diff, w.coordinates)
			}
		})
	}
}

// cut is the power that fails.
type cut struct{ after string }

// until runs something on a machine whose power is cut after the nth change. It tells after which, or "" if there were
// fewer.
func (w *world) until(n int, do func(*Installer) error) (after string, err error) {
	w.changes = nil
	defer func() {
		if c, ok := recover().(cut); ok {
			after = c.after
		}
	}()
	return "", do(w.installer(func(c *Config) {
		c.Host.Changed = func(what string) {
			w.changes = append(w.changes, what)
			if n--; n == 0 {
				panic(cut{what})
			}
		}
	}))
}

// survives reports whether the kubelet has an API server after a cut: at once, and when the machine is back.
func (w *world) survives(after string, power bool) {
	w.t.Helper()
	if !w.hasAPI() {
		w.t.Fatalf("killed after %q the kubelet has no API server", after)
	}
	if !power {
		return
	}
	if w.boot(); !w.hasAPI() {
		w.t.Fatalf("without power after %q the kubelet has no API server", after)
	}
}

// TestCut cuts the installer off after each change that it makes: by a kill, and by the power of the machine. The
// kubelet has an API server at once and after the machine is back. The next call finishes, or undoes everything.
func TestCut(t *testing.T) {
	for _, leaving := range []bool{false, true} {
		for _, power := range []bool{false, true} {
			for _, next := range []string{"join", "leave"} {
				t.Run(fmt.Sprintf("leaving=%v/power=%v/then %s", leaving, power, next), func(t *testing.T) {
					t.Parallel() // it waits for the disk
					w := newWorld(t)
					before, cuts := w.snapshot(), 0
					for n := 1; ; n++ {
						do := func(i *Installer) error { return i.Join(t.Context()) }
						if leaving {
							check(t, w.installer(nil).Join(t.Context()))
							do = func(i *Installer) error { return i.Leave(t.Context()) }
						}
						after, err := w.until(n, do)
						if after == "" {
							check(t, err)
							break
						}
						cuts++
						w.survives(after, power)
						if next == "join" {
							if err := w.installer(nil).Join(t.Context()); err != nil {
								t.Fatalf("join after a cut after %q: %v", after, err)
							}
							if s, err := w.installer(nil).Status(t.Context()); err != nil || !s.Well() || !w.hasAPI() {
								t.Fatalf("join after a cut after %q: %+v, %v", after, s, err)
							}
						}
						if err := w.installer(nil).Leave(t.Context()); err != nil {
							t.Fatalf("leave after a cut after %q: %v", after, err)
						}
						if diff := differ(before, w.snapshot()); len(diff) > 0 || !w.hasAPI() {
							t.Fatalf("leave after a cut after %q: differs in %v, API %v", after, diff, w.hasAPI())
						}
					}
					if cuts < 15 {
						t.Errorf("%d cuts: changes are not told any more", cuts)
					}
					check(t, w.installer(nil).Leave(t.Context()))
				})
			}
		}
	}
}

// TestUndone: a hub that does not work is taken off by itself, and the cloud is told why.
func TestUndone(t *testing.T) {
	for broken, want := range map[string]string{
		"dead": "weir-hub.service failed", "unready": "not synced yet", "shut": "does not let the kubelet",
		"deaf": "no heartbeat came through the hub",
	} {
		t.Run(broken, func(t *testing.T) {
			w := newWorld(t)
			before := w.snapshot()
			w.broken = broken
			err := w.installer(func(c *Config) { c.Timeout = 200 * time.Millisecond }).Join(t.Context())
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the node is as it was") ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: does not say %q", err, want)
			}
			if diff := differ(before, w.snapshot()); len(diff) > 0 || !w.hasAPI() || w.hub != nil {
				t.Errorf("changed %v, API %v, hub %v", diff, w.hasAPI(), w.hub)
			}
			if w.said["status"] != "False" || w.said["reason"] != cluster.ReasonUndone || len(w.events) != 1 ||
				!strings.Contains(w.events[0], want) {
				t.Errorf("condition %v, Events %v", w.said, w.events)
			}
			restarted := slices.Contains(w.commands, "restart "+kubeletService)
			if restarted != (broken == "deaf") {
				t.Errorf("the kubelet was started anew: %v", restarted)
			}
		})
	}
}

// TestFull: a disk that is full during a join leaves nothing behind.
func TestFull(t *testing.T) {
	w := newWorld(t)
	check(t, os.MkdirAll(filepath.Join(w.root, etc), 0o755)) // somebody's
	before := w.snapshot()
	err := w.installer(func(c *Config) {
		c.Host.Changed = func(what string) {
			if what == "wrote "+hubUnit { // what comes next does not fit: a folder stands in its place
				_ = os.MkdirAll(filepath.Join(w.root, localCA+half, "x"), 0o755)
			}
		}
	}).Join(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the node is as it was") {
		t.Error(err)
	}
	if diff := differ(before, w.snapshot()); len(diff) > 0 || !w.hasAPI() {
		t.Errorf("changed %v", diff)
	}
}

// TestPreflight: what keeps a node from joining is told in one line, all of it, before anything is changed.
func TestPreflight(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world, c *Config)
		want   []string
	}{
		"no label": {
			func(w *world, _ *Config) { w.label = "" }, []string{
				"pool:", "kubectl label node edge-1 apps.openyurt.io/nodepool=harbour",
			},
		},
		"another pool": {func(w *world, _ *Config) { w.label = "quay" }, []string{"is in pool quay, and --pool is harbour"}},
		"unknown pool": {
			func(w *world, c *Config) { w.label, c.Pool = "quay", "quay" }, []string{"Service kube-system/leader-hub-quay"},
		},
		"wrong hash": {
			func(_ *world, c *Config) {
				c.Hashes = []string{"sha256:" + strings.Repeat("0a", 32)}
			}, []string{"authority:", "want sha256:0a0a"},
		},
		"clock": {
			func(w *world, _ *Config) { w.date = 10 * time.Minute }, []string{"time:", " away from the cloud's: want 1m0s"},
		},
		"cloud away": {func(w *world, _ *Config) { w.cloud.Close() }, []string{"cloud:", "connection refused"}},
		"full disk": {func(_ *world, c *Config) {
			c.Host.Disk = func(string) (uint64, bool, error) { return 1 << 20, false, nil }
		}, []string{"disk:", "1 MB free: want 512"}},
		"disk in memory": {func(_ *world, c *Config) {
			c.Host.Disk = func(string) (uint64, bool, error) { return 1 << 40, true, nil }
		}, []string{"disk:", "in memory"}},
		"no kubeconfig": {
			func(w *world, _ *Config) {
				check(w.t, os.Remove(filepath.Join(w.root, ownConfig)))
			}, []string{"kubelet:", ownConfig, "no such file"},
		},
		"not a node": {
			func(w *world, _ *Config) { w.write(rotated, "garbage") }, []string{"kubelet:", "client-certificate"},
		},
		"OpenYurt's": {func(w *world, _ *Config) {
			w.write(ownConfig,
				"current-context: c\nclusters: [{name: k, cluster: {server: \"http://127.0.0.1:10261\"}}]\ncontexts: [{name: c, "+
					"context: {cluster: k, user: u}}]\nusers: [{name: u, user: {}}]\n")
		}, []string{"kubelet:", `server: "http://127.0.0.1:10261"`, "YurtHub", "to the cloud first"}},
		"own unit": {func(w *world, _ *Config) {
			w.write(kubeadmDrop, "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config=x\n")
		}, []string{"kubelet:", "--kubeconfig"}},
		"a file of somebody's": {
			func(w *world, _ *Config) { w.write(hubUnit, "x") }, []string{"files:", hubUnit, "move it away"},
		},
		"a hub of before": {
			func(w *world, _ *Config) { w.write(hubData+"/x", "x") }, []string{"files:", hubData + " is not empty"},
		},
		"no program": {
			func(_ *world, c *Config) { c.Hub = "/nowhere/weir-hub" }, []string{"hub binary:", "/nowhere/weir-hub"},
		},
		"no iproute2": {
			func(w *world, _ *Config) { w.noIP = true }, []string{"pods:", "--pods=false", "no such file"},
		},
		"a taken address": {
			func(w *world, _ *Config) {
				w.address = contract.PodsAddress
			}, []string{"pods:", contract.PodsAddress + " is an address of this machine already"},
		},
		"a taken port": {
			func(w *world, c *Config) {
				c.Ports.Pool = w.cloud.Listener.Addr().(*net.TCPAddr).Port
			}, []string{"ports:", "taken by another process"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			i := w.installer(nil)
			test.change(w, &i.Config)
			before := w.snapshot()
			err := i.Join(t.Context())
			var failed *PreflightError
			if !errors.As(err, &failed) || cli.ExitCode(err) != 1 || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: does not say %q", err, want)
				}
			}
			if diff := differ(before, w.snapshot()); len(diff) > 0 || !slices.Contains(w.commands, "cat "+kubeletService) {
				t.Errorf("changed %v", diff)
			}
		})
	}
}

// TestKubespray: a kubelet whose flags stand in a file of EnvironmentFile=, which its owner goes on to write, joins and
// leaves as others do. The file is left alone.
func TestKubespray(t *testing.T) {
	w := newWorld(t)
	check(t, os.Remove(filepath.Join(w.root, kubeadmDrop)))
	const env = "/etc/kubernetes/kubelet.env"
	w.write(kubeletUnit, "[Service]\nEnvironmentFile=-"+env+
		"\nExecStart=/usr/local/bin/kubelet \\\n\t\t$KUBE_LOG_LEVEL \\\n\t\t$KUBELET_ARGS\nRestart=always\n")
	w.write(env, "KUBE_LOG_LEVEL=\"--v=2\"\n"+
		"KUBELET_ARGS=\"--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \\\n--kubeconfig="+ownConfig+
		" \\\n \"\n")
	w.boot()
	before := w.snapshot()
	check(t, w.installer(nil).Join(t.Context()))
	if s, err := w.installer(nil).Status(t.Context()); err != nil || !s.Well() {
		t.Errorf("%+v, %v", s, err)
	}
	w.boot()
	if !w.hasAPI() || w.kubelet != kubeletConf {
		t.Errorf("after a restart of the machine the kubelet runs by %s", w.kubelet)
	}
	check(t, w.installer(nil).Join(t.Context()))
	check(t, w.installer(nil).Leave(t.Context()))
	if diff := differ(before, w.snapshot()); len(diff) > 0 || !w.hasAPI() {
		t.Errorf("join and leave changed %v", diff)
	}
}

// TestTrial: while a hub has not proved itself the kubelet is led to it until the machine starts again, and no longer.
func TestTrial(t *testing.T) {
	w := newWorld(t)
	w.broken = "deaf"
	cuts := 0
	for n := 1; ; n++ {
		after, _ := w.until(n, func(i *Installer) error {
			i.Timeout = 50 * time.Millisecond
			return i.Join(t.Context())
		})
		if after == "" {
			break
		}
		cuts++
		w.boot()
		w.mu.Lock()
		server := w.server()
		w.mu.Unlock()
		if server != w.cloud.URL {
			t.Fatalf("without power after %q the kubelet calls %s, a hub that was never proved", after, server)
		}
		check(t, w.installer(nil).Leave(t.Context()))
	}
	if cuts < 30 {
		t.Errorf("%d cuts", cuts)
	}
}

// TestCertificates: what can be read of certificates is told, even where the kubelet's unit cannot.
func TestCertificates(t *testing.T) {
	w := newWorld(t)
	i := w.installer(nil)
	all, err := i.Certificates(t.Context())
	if err != nil || len(all) != 1 || all[0].What != "kubelet" {
		t.Errorf("before a join: %+v, %v", all, err)
	}
	check(t, w.installer(nil).Join(t.Context()))
	for _, deaf := range []bool{false, true} {
		i = w.installer(nil)
		if run := i.Host.Run; deaf {
			i.Host.Run = func(ctx context.Context, name string, args ...string) (string, error) {
				if slices.Contains(args, "cat") {
					return "", errors.New("no systemd")
				}
				return run(ctx, name, args...)
			}
		}
		all, err = i.Certificates(t.Context())
		kubelet := slices.ContainsFunc(all, func(c Certificate) bool { return c.What == "kubelet" && c.Signer != "" })
		authority := slices.ContainsFunc(all, func(c Certificate) bool { return c.What == "authority" && c.File == localCA })
		if kubelet == deaf || !authority || (err != nil) != deaf {
			t.Errorf("deaf %v: %+v, %v", deaf, all, err)
		}
	}
}
