package hub

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/process"
)

// names are the flags of what the hub lacks, as its status and its metrics have them.
func names(t *testing.T, lacks []process.Lack, metrics string) (all []string) {
	t.Helper()
	for _, l := range lacks {
		all = append(all, l.What)
		if !strings.Contains(metrics, fmt.Sprintf("weir_hub_lacks{what=%q} 1", l.What)) {
			t.Errorf("no metric says that the hub lacks %s", l.What)
		}
	}
	return all
}

// TestDamagedCredentials: a hub that has run before starts with credential files that a power cut has emptied, torn or
// taken, and passes on what callers with tokens ask. It says what it lacks, leaves the files alone, and has all again
// when they are there again.
func TestDamagedCredentials(t *testing.T) {
	halved := func(content []byte) []byte { return content[:len(content)/2] }
	for name, test := range map[string]struct {
		files map[string]func([]byte) []byte // nil: it is gone
		lacks []string
		node  bool // its kubelet is served meanwhile
	}{
		"an empty cloud.pem": {
			map[string]func([]byte) []byte{"cloud.pem": emptied}, []string{"--cloud-client-cert-file"}, false,
		},
		"half of cloud.pem": {
			map[string]func([]byte) []byte{"cloud.pem": halved}, []string{"--cloud-client-cert-file"}, false,
		},
		"no cloud.pem": {
			map[string]func([]byte) []byte{"cloud.pem": nil}, []string{"--cloud-client-cert-file"}, false,
		},
		"an empty cloud-ca.crt": {
			map[string]func([]byte) []byte{cloudCA: emptied}, []string{"--client-ca-file", inEtc(cloudCA)}, true,
		},
		"neither certificate for the cloud": {
			map[string]func([]byte) []byte{"cloud.pem": emptied, "data/pki/hub-at-cloud.pem": halved},
			[]string{"--cloud-client-cert-file"}, false,
		},
		"all of them": {
			map[string]func([]byte) []byte{
				"cloud.pem": emptied, "data/pki/hub-at-cloud.pem": emptied, cloudCA: halved,
			},
			[]string{"--client-ca-file", "--cloud-client-cert-file", inEtc(cloudCA)}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, 1)
			b.start()()
			was := map[string][]byte{}
			for file, damage := range test.files {
				path := filepath.Join(b.dir, file)
				content, err := os.ReadFile(path)
				check(t, err)
				was[file] = content
				if damage == nil {
					check(t, os.Remove(path))
				} else {
					check(t, os.WriteFile(path, damage(content), 0o600))
				}
			}
			h, err := New(b.config)
			check(t, err)
			clock := clocktesting.NewFakeClock(time.Now())
			h.reload.Clock = clock
			b.run(h)
			node := b.ca.tls("system:node:edge-1", "system:nodes")
			asks := func() (pod, kubelet int) {
				resp, _ := get(t, b.client(nil), b.url()+"/echo/x", "Authorization", "Bearer alice")
				own := b.client(&node)
				defer own.CloseIdleConnections()
				also, _ := get(t, own, b.url()+"/echo/x")
				return resp.StatusCode, also.StatusCode
			}
			for range 3 { // also when the cloud has been judged
				pod, kubelet := asks()
				if pod != http.StatusOK {
					t.Errorf("a pod with a token gets %d", pod)
				}
				if (kubelet == http.StatusOK) != test.node || kubelet == http.StatusUnauthorized ||
					kubelet == http.StatusForbidden {
					t.Errorf("the kubelet gets %d, want it served: %v, and never denied", kubelet, test.node)
				}
				b.clouds[0].probed(b, 3)
			}
			_, metrics := get(t, http.DefaultClient, "http://"+h.HealthAddr().String()+"/metrics")
			got := names(t, h.Status().Lacks, metrics)
			if slices.Sort(got); !slices.Equal(got, test.lacks) {
				t.Errorf("it lacks %v, want %v", got, test.lacks)
			}
			if !strings.Contains(b.log.String(), "a credential cannot be used") {
				t.Error("the log does not say so")
			}
			write(t, b.dir, was)
			eventually(t, "the reloader to wait", clock.HasWaiters)
			clock.Step(time.Minute)
			eventually(t, "all to be as before", func() bool {
				pod, kubelet := asks()
				return pod == http.StatusOK && kubelet == http.StatusOK && len(h.Status().Lacks) == 0
			})
		})
	}
}

func emptied([]byte) []byte { return nil }

// TestNoAuthoritiesAreNotAll: a hub that has no authorities of the cloud trusts nobody, and not whom this machine
// trusts.
func TestNoAuthoritiesAreNotAll(t *testing.T) {
	b := newBed(t, 1)
	b.start()()
	check(t, os.Truncate(filepath.Join(b.dir, "cloud-ca.crt"), 0))
	check(t, os.Remove(filepath.Join(b.config.DataDir, "cloud-ca.crt")))
	t.Setenv("SSL_CERT_FILE", filepath.Join(b.dir, "machine.crt"))
	write(t, b.dir, map[string][]byte{"machine.crt": b.ca.pem})
	b.start()
	if resp, _ := get(t, b.client(nil), b.url()+"/echo/x", "Authorization", "Bearer alice"); resp.StatusCode < 500 {
		t.Errorf("a token was shown to somebody whom the hub cannot know: %d", resp.StatusCode)
	}
}

// TestReadOnlyData: a hub whose data cannot be written goes on with a copy of its identities in memory. What was there
// is as it was.
func TestReadOnlyData(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root is needed to mount a folder read-only")
	}
	b := newBed(t, 1)
	check(t, os.Remove(b.config.etc(servingPair)))
	first := b.spawn()
	roots, err := os.ReadFile(filepath.Join(b.dir, "node-authority.crt"))
	check(t, err)
	first.kill()
	data := filepath.Join(b.dir, "data")
	before := tree(t, data)
	b.wrap = func(cmd *exec.Cmd) {
		cmd.Args = slices.Concat([]string{
			"sh", "-c",
			"mount --make-rprivate / && mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"", data,
		}, cmd.Args)
		cmd.Path = "/bin/sh"
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	}
	p := b.spawn()
	again, err := os.ReadFile(filepath.Join(b.dir, "node-authority.crt"))
	check(t, err)
	if string(again) != string(roots) {
		t.Error("it has another authority: its kubelet and pods do not trust it")
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	client := testClient(t, &tls.Config{RootCAs: pool}, true)
	eventually(t, "a pod's request to be passed on", func() bool {
		resp, _ := get(t, client, p.api+"/echo/x", "Authorization", "Bearer alice")
		return resp.StatusCode == http.StatusOK
	})
	var status struct{ Lacks []process.Lack }
	_, text := get(t, http.DefaultClient, p.health+contract.StatusPath)
	check(t, json.Unmarshal([]byte(text), &status))
	_, metrics := get(t, http.DefaultClient, p.health+"/metrics")
	if got := names(t, status.Lacks, metrics); !slices.Equal(got, []string{"--data-dir"}) ||
		!strings.Contains(status.Lacks[0].Why, "read-only") {
		t.Errorf("it lacks %+v", status.Lacks)
	}
	if n := strings.Count(p.log.String(), "the hub goes on without --data-dir"); n != 1 {
		t.Errorf("%d lines of the log say so", n)
	}
	p.kill()
	if after := tree(t, data); after != before {
		t.Errorf("the folder was\n%s\nand is\n%s", before, after)
	}
	b.wrap = nil
	if _, text := get(t, http.DefaultClient, b.spawn().health+"/metrics"); strings.Contains(
		text, "weir_hub_lacks{") {
		t.Error("it lacks something when the folder can be written again")
	}
}

// tree is what a folder holds, by name, size and time.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var s strings.Builder
	check(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && !e.IsDir() {
			fmt.Fprintln(&s, path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	}))
	return s.String()
}

// TestPortsTaken: of its ports a hub needs that of the API alone.
func TestPortsTaken(t *testing.T) {
	b := newBed(t, 1)
	b.config.EnableCoordinator, b.config.CoordinatorServers = true, []string{"https://127.0.0.1:1"}
	for _, port := range []*int{&b.config.HealthPort, &b.config.PoolPort, &b.config.ProxyPort} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		defer l.Close()
		*port = l.Addr().(*net.TCPAddr).Port
	}
	b.start()
	if resp, _ := get(t, b.client(nil), b.url()+"/echo/x", "Authorization", "Bearer alice"); resp.StatusCode !=
		http.StatusOK {
		t.Errorf("a request is answered with %d", resp.StatusCode)
	}
	_, metrics := get(t, http.DefaultClient, "http://"+b.hub.HealthAddr().String()+"/metrics")
	got := names(t, b.hub.Status().Lacks, metrics)
	if slices.Sort(got); !slices.Equal(got, []string{"--health-port", "--pool-port", "--proxy-port"}) {
		t.Errorf("it lacks %v", got)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	b.config.SecurePort = l.Addr().(*net.TCPAddr).Port
	if _, err := New(b.config); err == nil || !strings.Contains(err.Error(), "--secure-port") ||
		!errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("the port of the API is taken: %v", err)
	}
}
