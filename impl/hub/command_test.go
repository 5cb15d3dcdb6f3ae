package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
)

// args is a complete command line; pairs override or, with an empty value, take away.
func (b *bed) args(pairs ...string) []string {
	c := b.config
	flags := map[string]string{
		"node-name": c.NodeName, "nodepool-name": c.NodePoolName, "cloud-server": c.CloudServers[0],
		"cloud-client-cert-file": c.CloudClientCertFile, "client-ca-file": c.ClientCAFiles[0], "etc-dir": c.EtcDir,
		"secure-port": "0", "health-port": "0", "data-dir": filepath.Join(b.dir, "data"),
	}
	var more []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if _, ok := flags[pairs[i]]; ok {
			flags[pairs[i]] = pairs[i+1]
		} else {
			more = append(more, "--"+pairs[i]+"="+pairs[i+1])
		}
	}
	for name, value := range flags {
		if value != "" {
			more = append(more, "--"+name+"="+value)
		}
	}
	return more
}

// TestUsage: wrong input is told in one line, with the flag, what was given and what is allowed; exit code 2.
func TestUsage(t *testing.T) {
	b := newBed(t, 1)
	garbage := filepath.Join(t.TempDir(), "garbage.pem")
	check(t, os.WriteFile(garbage, []byte("garbage"), 0o600))
	coordinator := []string{"enable-coordinator", "true", "coordinator-server", "https://127.0.0.1:1"}
	etc := func(name, content string) string { // with another content of one file; "": without the file
		dir := t.TempDir()
		write(t, dir, map[string][]byte{cloudCA: b.ca.pem, servingPair: b.local.pair("hub"), name: []byte(content)})
		if content == "" {
			check(t, os.Remove(filepath.Join(dir, name)))
		}
		return dir
	}
	with := func(pairs ...string) []string { return append(append([]string(nil), coordinator...), pairs...) }
	tests := []struct {
		pairs []string
		want  []string
	}{
		{[]string{"node-name", ""}, []string{"--node-name", "required name", "name of this node"}},
		{[]string{"node-name", "a_b"}, []string{"--node-name", `"a_b"`}},
		{[]string{"nodepool-name", ""}, []string{"--nodepool-name"}},
		{[]string{"cloud-server", ""}, []string{"--cloud-server", "https://"}},
		{[]string{"cloud-server", "http://x:1"}, []string{"--cloud-server", `"http://x:1"`, "https://host:port"}},
		{[]string{"cloud-server", "https://x:1/path"}, []string{"--cloud-server"}},
		{[]string{"cloud-server", "bulk=https://x:1"}, []string{"--cloud-server", "pool node heartbeat control"}},
		{[]string{"cloud-server", "pool=http://x:1"}, []string{"--cloud-server", "https://host:port"}},
		{[]string{"cloud-server", "pool=https://x:1"}, []string{"--cloud-server", "one for each without a class"}},
		{[]string{"etc-dir", etc(cloudCA, "")}, []string{"cloud-ca.crt in --etc-dir", "no such file"}},
		{[]string{"etc-dir", etc(cloudCA, "garbage")}, []string{"cloud-ca.crt in --etc-dir", "PEM"}},
		{[]string{"cloud-client-cert-file", ""}, []string{"--cloud-client-cert-file", "required"}},
		{[]string{"cloud-client-cert-file", garbage}, []string{"--cloud-client-cert-file", "PEM"}},
		{[]string{"etc-dir", etc(servingPair, string(b.ca.pem))}, []string{"serving.pem in --etc-dir", "key"}},
		{[]string{"etc-dir", "/proc/none"}, []string{"--etc-dir", "/proc/none"}},
		{[]string{"tls-hosts", "10.0.0.1"}, []string{"--tls-hosts", "10.0.0.1", "none with serving.pem in --etc-dir"}},
		{[]string{"etc-dir", etc(servingPair, ""), "tls-hosts", "*.x"}, []string{"--tls-hosts", "*.x", "DNS name"}},
		{[]string{"health-port", "localhost:1"}, []string{"--health-port", "IP address"}},
		{[]string{"bind-address", "localhost"}, []string{"--bind-address", "IP address"}},
		{[]string{"secure-port", "70000"}, []string{"--secure-port", "70000"}},
		{[]string{"secure-port", "5", "health-port", "5"}, []string{"--secure-port", "no other flag"}},
		{[]string{"secure-port", "x"}, []string{"secure-port"}},
		{[]string{"pool-scope-resources", "widgets"}, []string{"--pool-scope-resources", "widgets"}},
		{
			[]string{
				"pool-scope-resources", "secrets.v1.",
			}, []string{"--pool-scope-resources", "secrets.v1.", "Secrets are not for a pool"},
		},
		{
			[]string{
				"pool-scope-resources", "secrets.v1.=Secret",
			}, []string{"--pool-scope-resources", "Secrets are not for a pool"},
		},
		{
			[]string{"pool-scope-resources", "endpoints.v1.", "pool-scope-resources", "endpoints.v1."},
			[]string{"--pool-scope-resources", "once"},
		},
		{[]string{"data-dir", "/data", "store-max-bytes", "1"}, []string{"--store-max-bytes", "at least 1048576"}},
		{
			[]string{"heartbeat-interval", "1s", "heartbeat-timeout", "2s"},
			[]string{"--heartbeat-timeout", "at most --heartbeat-interval"},
		},
		{[]string{"heartbeat-failed-retry", "0"}, []string{"--heartbeat-failed-retry"}},
		{[]string{"heartbeat-healthy-threshold", "0"}, []string{"--heartbeat-healthy-threshold"}},
		{
			with("leader-elect-renew-deadline", "20s"), []string{
				"--leader-elect-renew-deadline", "less than the lease duration",
			},
		},
		{with("leader-elect-retry-period", "9s"), []string{"--leader-elect-retry-period"}},
		{[]string{"config", "/none.yaml"}, []string{"--config", "/none.yaml"}},
		{[]string{"no-such-flag", "1"}, []string{"no-such-flag"}},
		{[]string{"store-every", "1s"}, []string{"--store-every", "no flag any more", "it is a constant"}},
		{[]string{"store-plaintext-secrets", "true"}, []string{"no flag any more", "--store-key-file=none"}},
		{[]string{"store-generated-key-file", "/key"}, []string{"--store-generated-key-file", "store.key in --etc-dir"}},
		{[]string{"tls-cert-file", "/pem"}, []string{"no flag any more", "as serving.pem"}},
		{[]string{"cloud-hub-cert-file", "/pem"}, []string{"--cloud-hub-cert-file", "the hub asks weir-manager"}},
	}
	for _, test := range tests {
		t.Run(strings.Join(test.pairs, " "), func(t *testing.T) {
			err := Run(t.Context(), b.args(test.pairs...), io.Discard, io.Discard)
			if cli.ExitCode(err) != 2 || strings.Contains(err.Error(), "\n") {
				t.Fatalf("exit code %d: %v", cli.ExitCode(err), err)
			}
			for _, want := range test.want {
				if want != "required name" && !strings.Contains(err.Error(), want) {
					t.Errorf("%v: does not say %q", err, want)
				}
			}
		})
	}
}

// TestCommand: the command has systemd keep the port of the API alone, serves until its context ends, and says clearly
// that its port is taken; see TestPortsTaken for the others.
func TestCommand(t *testing.T) {
	b := newBed(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	log := &logBuffer{}
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{
		Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram",
	})
	check(t, err)
	defer systemd.Close()
	t.Setenv("NOTIFY_SOCKET", systemd.LocalAddr().String())
	heard := func(want string) {
		t.Helper()
		b := make([]byte, 100)
		check(t, systemd.SetReadDeadline(time.Now().Add(time.Minute)))
		if n, err := systemd.Read(b); err != nil || string(b[:n]) != want {
			t.Errorf("systemd heard %q, %v, want %q", b[:n], err, want)
		}
	}
	done := make(chan error)
	// A join of a former version has written the latter flags.
	args := b.args("log-format", "json", "node-authority-file", b.config.etc(nodeAuthority),
		"store-generated-key-file", b.config.etc(storeKey), "cloud-client-key-file", b.config.CloudClientCertFile)
	go func() { done <- Run(ctx, args, io.Discard, log) }()
	var started struct{ Address, Health string }
	eventually(t, "the hub to say where it listens", func() bool {
		for line := range strings.Lines(log.String()) {
			if json.Unmarshal([]byte(line), &started) == nil && started.Health != "" {
				return true
			}
		}
		return false
	})
	heard("FDSTORE=1\nFDNAME=" + strings.ReplaceAll(started.Address, ":", "_"))
	heard("READY=1")
	if resp, _ := get(t, http.DefaultClient, "http://"+started.Health+"/healthz"); resp.StatusCode != http.StatusOK {
		t.Errorf("a hub that says that it is ready answers %s", resp.Status)
	}
	for path, want := range map[string]string{
		"/healthz": "ok", "/livez": "ok", "/v1/healthz": "ok", contract.StatusPath: `"node":"edge-1"`,
		"/metrics": "weir_hub_cloud_bytes_total",
	} {
		eventually(t, path+" to answer", func() bool {
			resp, body := get(t, http.DefaultClient, "http://"+started.Health+path)
			return resp.StatusCode == http.StatusOK && strings.Contains(body, want)
		})
	}
	eventually(t, "the hub to be ready", func() bool {
		resp, _ := get(t, http.DefaultClient, "http://"+started.Health+"/v1/readyz")
		return resp.StatusCode == http.StatusOK
	})
	http.DefaultClient.CloseIdleConnections()
	_, port, err := net.SplitHostPort(started.Address)
	check(t, err)
	err = Run(ctx, b.args("secure-port", port, "data-dir", t.TempDir()), io.Discard, io.Discard)
	if cli.ExitCode(err) != 1 ||
		!strings.Contains(err.Error(), fmt.Sprintf("--secure-port %s is taken on 127.0.0.1", port)) {
		t.Errorf("exit code %d: %v", cli.ExitCode(err), err)
	}
	cancel()
	heard("STOPPING=1")
	if err := <-done; err != nil {
		t.Error(err)
	}
}
