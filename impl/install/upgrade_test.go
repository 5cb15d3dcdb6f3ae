package install

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/install/cluster"
)

// joinedWorld is a node that has joined, and what it was before.
func joinedWorld(t *testing.T) (w *world, before map[string]string) {
	t.Helper()
	w = newWorld(t)
	before = w.snapshot()
	check(t, w.installer(nil).Join(t.Context()))
	return w, before
}

// release lets the installer bring another hub.
func (w *world) release(text string) func(*Config) {
	w.write("/opt/weir-hub-2", text)
	check(w.t, chmod(w.root+"/opt/weir-hub-2"))
	return func(c *Config) { c.Hub, c.Timeout = w.root+"/opt/weir-hub-2", 10*time.Second }
}

// TestUpgrade: another hub is tried, proves itself, and counts; the former one is gone. The kubelet is not restarted.
// Leaving takes all away.
func TestUpgrade(t *testing.T) {
	w, before := joinedWorld(t)
	second := w.release("another program")
	w.commands = nil
	check(t, w.installer(second).Join(t.Context()))
	if w.hub.program != "another program" || !w.hasAPI() || slices.Contains(w.commands, "restart "+kubeletService) {
		t.Errorf("the hub is %q, API %v, after %v", w.hub.program, w.hasAPI(), w.commands)
	}
	if w.said["status"] != "True" || w.said["reason"] != cluster.ReasonUpgraded {
		t.Errorf("the condition is %v", w.said)
	}
	i := w.installer(second)
	program := programOf([]byte("another program"))
	if left := i.Host.others(program); len(left) > 0 || !i.Host.leads(program) || i.Host.there(hubTrial) {
		t.Errorf("beside the program: %v; trial %v", left, i.Host.there(hubTrial))
	}
	if w.boot(); w.hub == nil || w.hub.program != "another program" {
		t.Errorf("after a restart of the machine: %+v", w.hub)
	}
	w.commands = nil
	check(t, w.installer(second).Join(t.Context()))
	if slices.Contains(w.commands, "restart "+hubService) {
		t.Errorf("the same once more: %v", w.commands)
	}
	check(t, w.installer(nil).Leave(t.Context()))
	if diff := differ(before, w.snapshot()); !slices.Equal(diff, []string{"+ /opt/weir-hub-2"}) {
		t.Errorf("leaves %v", diff)
	}
}

// TestKeptPort: a join can mend a hub that does not run, while systemd keeps the port of its kubelet. Its other ports,
// and another port for the kubelet, have to be free.
func TestKeptPort(t *testing.T) {
	w, _ := joinedWorld(t)
	w.mu.Lock()
	w.stopHub()
	w.mu.Unlock()
	kept, err := net.Listen("tcp", local(w.ports.Secure))
	check(t, err)
	defer kept.Close()
	check(t, w.installer(nil).Check(t.Context()))
	taken := w.cloud.Listener.Addr().(*net.TCPAddr).Port
	for name, change := range map[string]func(*Config){
		"another": func(c *Config) { c.Ports.Secure = taken }, "the pool's": func(c *Config) { c.Ports.Pool = taken },
	} {
		if err := w.installer(change).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "taken by another") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUpgradeUndone: a hub that does not prove itself is taken off, and the former one goes on.
func TestUpgradeUndone(t *testing.T) {
	for text, want := range map[string]string{
		"a broken program": "weir-hub.service failed", "an unready program": "not synced yet",
	} {
		t.Run(text, func(t *testing.T) {
			w, _ := joinedWorld(t)
			after := w.snapshot()
			second := w.release(text)
			err := w.installer(func(c *Config) { second(c); c.Timeout = 200 * time.Millisecond }).Join(t.Context())
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the former hub goes on") {
				t.Errorf("%v: does not say %q", err, want)
			}
			if w.hub == nil || w.hub.program != "a program" || !w.hasAPI() {
				t.Errorf("hub %+v, API %v", w.hub, w.hasAPI())
			}
			if diff := slices.DeleteFunc(differ(after, w.snapshot()),
				func(s string) bool { return s == "+ /opt/weir-hub-2" || strings.Contains(s, authority) }); len(diff) > 0 {
				t.Errorf("left is %v", diff)
			}
			if last := w.events[len(w.events)-1]; w.said["status"] != "True" ||
				w.said["reason"] != cluster.ReasonUpgradeUndone || !strings.Contains(last, want) {
				t.Errorf("condition %v, Event %s", w.said, last)
			}
		})
	}
}

// TestUpgradeCut cuts an upgrade off after each change: by a kill, and by the power of the machine. After the power was
// gone a hub runs that has proved itself, and the next call finishes.
func TestUpgradeCut(t *testing.T) {
	for _, power := range []bool{false, true} {
		t.Run(fmt.Sprintf("power=%v", power), func(t *testing.T) {
			t.Parallel()
			w, before := joinedWorld(t)
			cuts := 0
			for n := 1; ; n++ {
				second := w.release(fmt.Sprintf("program %d", n))
				was := w.hub.program
				after, err := w.until(n, func(i *Installer) error { second(&i.Config); return i.Join(t.Context()) })
				if after == "" {
					check(t, err)
					break
				}
				cuts++
				w.survives(after, power)
				want := was // until it has proved itself
				if slices.Contains(w.changes, "led "+hubProgram) {
					want = fmt.Sprintf("program %d", n)
				}
				if power && (w.hub == nil || w.hub.program != want) {
					t.Fatalf("without power after %q: hub %+v, not %q", after, w.hub, want)
				}
				if err := w.installer(second).Join(t.Context()); err != nil {
					t.Fatalf("join after a cut after %q: %v", after, err)
				}
				if s, err := w.installer(second).Status(t.Context()); err != nil || !s.Well() ||
					w.hub.program != fmt.Sprintf("program %d", n) {
					t.Fatalf("join after a cut after %q: %+v, %v, %q", after, s, err, w.hub.program)
				}
			}
			if cuts < 8 {
				t.Errorf("%d cuts: changes are not told any more", cuts)
			}
			check(t, w.installer(nil).Leave(t.Context()))
			if diff := differ(before, w.snapshot()); !slices.Equal(diff, []string{"+ /opt/weir-hub-2"}) {
				t.Errorf("leaves %v", diff)
			}
		})
	}
}

// former makes of a node that has joined one that a former version has joined: the hub has copies of what the kubelet's
// kubeconfig said, and the kubelet calls it by its own certificate alone.
func (w *world) former() {
	w.t.Helper()
	w.write(cloudCA, string(w.ca.pem))
	w.write(clientCA, string(w.ca.pem))
	var flags map[string]any
	check(w.t, yaml.Unmarshal([]byte(w.snapshot()[hubConfig][len("-rw------- "):]), &flags))
	delete(flags, "cloud-client-kubeconfig")
	flags["cloud-server"], flags["cloud-ca-file"], flags["client-ca-file"] = []string{w.cloud.URL}, w.root+cloudCA,
		w.root+clientCA
	delete(flags, "etc-dir")
	flags["node-authority-file"], flags["store-generated-key-file"] = w.root+authority, w.root+storeKey
	text, err := hubText(flags)
	check(w.t, err)
	w.write(hubConfig, string(text))
	w.write(kubeletConf, strings.ReplaceAll(w.snapshot()[kubeletConf], "client-certificate-data",
		"client-certificate-data-of-before")[len("-rw------- "):])
	for _, path := range []string{localCA, localPair} {
		check(w.t, os.Remove(w.root+path))
	}
	check(w.t, os.Chmod(w.root+hubConfig, 0o600))
	check(w.t, os.Chmod(w.root+kubeletConf, 0o600))
	w.write(hubUnit, "# of a former version\n"+w.snapshot()[hubUnit][len("-rw-r--r-- "):])
}

// TestFormer: a node that a former version has joined gets a hub that follows the kubelet's kubeconfig, with the flags
// that a person chose; no copy is left, and it leaves as others do. Power that is cut meanwhile leaves a hub, and the
// next call finishes.
func TestFormer(t *testing.T) {
	w, before := joinedWorld(t)
	joined := w.snapshot()
	for n := 1; ; n++ {
		w.former()
		after, err := w.until(n, func(i *Installer) error { return i.Join(t.Context()) })
		if after == "" {
			check(t, err)
			break
		}
		w.survives(after, true)
		check(t, w.installer(nil).Join(t.Context()))
		now := w.snapshot()
		for _, path := range []string{cloudCA, clientCA, hubNext} {
			if _, there := now[path]; there {
				t.Fatalf("cut after %q: %s is left", after, path)
			}
		}
		if !strings.Contains(now[hubConfig], "cloud-client-kubeconfig") || strings.Contains(now[hubConfig], "cloud-server") ||
			!strings.Contains(now[hubConfig], "enable-coordinator") || !strings.Contains(now[hubConfig], "etc-dir") ||
			strings.Contains(now[hubConfig], "node-authority-file") {
			t.Fatalf("cut after %q: the configuration is\n%s", after, now[hubConfig])
		}
		if now[hubUnit] != joined[hubUnit] {
			t.Fatalf("cut after %q: another unit", after)
		}
	}
	check(t, w.installer(nil).Leave(t.Context()))
	if diff := differ(before, w.snapshot()); len(diff) > 0 || !w.hasAPI() {
		t.Errorf("leaves %v", diff)
	}
}

// TestFollows: when the authority of the cluster is rotated, the address of its API changes or the kubelet gets a
// proxy, another join is well, and changes what the hub has of it. What a person wants otherwise than before is still
// refused.
func TestFollows(t *testing.T) {
	w, before := joinedWorld(t)
	own := before[ownConfig][len("-rw-r--r-- "):]
	both := string(w.ca.pem) + string(newAuthority(t, "kubernetes-2").pem)
	w.write("/etc/kubernetes/pki/ca.crt", both)
	w.commands = nil
	check(t, w.installer(nil).Join(t.Context()))
	if slices.Contains(w.commands, "restart "+hubService) {
		t.Error("the hub was started anew for what it follows by itself")
	}
	w.write(ownConfig, strings.ReplaceAll(own, "127.0.0.1", "localhost"))
	// its certificate has no such name.
	if err := w.installer(nil).Join(t.Context()); err == nil || !strings.Contains(err.Error(), "localhost") {
		t.Error(err)
	}
	w.write(ownConfig, strings.ReplaceAll(strings.ReplaceAll(own, "127.0.0.1", "localhost"), "certificate-authority:",
		"tls-server-name: 127.0.0.1, certificate-authority:"))
	check(t, w.installer(nil).Join(t.Context()))
	w.write("/usr/lib/systemd/system/kubelet.service.d/20-proxy.conf",
		"[Service]\nEnvironment=\"HTTPS_PROXY=http://me:se$cret@192.0.2.1:3128\" NO_PROXY=localhost,.inside\n")
	check(t, w.installer(nil).Join(t.Context()))
	if got := w.snapshot()[proxyEnv]; got != "-rw------- HTTPS_PROXY=\"http://me:se\\$cret@192.0.2.1:3128\"\n"+
		"NO_PROXY=\"localhost,.inside\"\n" || !slices.Contains(w.commands, "restart "+hubService) {
		t.Errorf("the hub's environment is %q", got)
	}
	check(t, os.Remove(w.root+"/usr/lib/systemd/system/kubelet.service.d/20-proxy.conf"))
	check(t, w.installer(nil).Join(t.Context()))
	if _, there := w.snapshot()[proxyEnv]; there {
		t.Error("the proxy of before is left")
	}
	if err := w.installer(func(c *Config) { c.PoolAddress = "10.0.0.7:10269" }).Join(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "with another "+hubConfig) {
		t.Errorf("another address: %v", err)
	}
	w.write(ownConfig, own)
	w.write("/etc/kubernetes/pki/ca.crt", string(w.ca.pem))
	check(t, w.installer(nil).Leave(t.Context()))
	if diff := differ(before, w.snapshot()); len(diff) > 0 || !w.hasAPI() {
		t.Errorf("leaves %v", diff)
	}
}

// TestOwnCertificate: a kubelet that has started by the certificate of its hub, since its own had ended, gets its own
// back when its node leaves: no cloud takes the other.
func TestOwnCertificate(t *testing.T) {
	w, _ := joinedWorld(t)
	dir := w.root + "/var/lib/kubelet/pki/"
	real := w.snapshot()[rotated]
	w.write("/var/lib/kubelet/pki/kubelet-client-2025-01-01-00-00-00.pem", real[len("-rw-r--r-- "):])
	w.write("/var/lib/kubelet/pki/kubelet-client-2026-01-01-00-00-00.pem", w.snapshot()[localPair][len("-rw------- "):])
	check(t, os.Remove(w.root+rotated))
	check(t, os.Symlink(dir+"kubelet-client-2026-01-01-00-00-00.pem", w.root+rotated)) // as the kubelet does it
	if err := w.installer(nil).Join(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "client-certificate: it has expired") {
		t.Errorf("a join meanwhile: %v", err)
	}
	check(t, w.installer(nil).Leave(t.Context()))
	if to, err := os.Readlink(w.root + rotated); err != nil ||
		to != "/var/lib/kubelet/pki/kubelet-client-2025-01-01-00-00-00.pem" {
		t.Errorf("the kubelet has %q, %v", to, err)
	}
	if _, err := os.Stat(dir + "kubelet-client-2026-01-01-00-00-00.pem"); err == nil {
		t.Error("the other is left")
	}
}
