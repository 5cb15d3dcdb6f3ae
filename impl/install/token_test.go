package install

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-edge/weir/impl/contract"
)

// withoutCertificate is a world whose cloud gives kubelets no certificate, with a user of the kubelet's kubeconfig.
func withoutCertificate(t testing.TB, user string) *world {
	t.Helper()
	w := newWorld(t)
	w.token, w.user = "a-token-of-the-node", contract.NodeUserPrefix+nodeName
	check(t, os.Remove(filepath.Join(w.root, rotated)))
	w.setUser(user)
	return w
}

func (w *world) setUser(user string) {
	w.write(ownConfig,
		fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: k, cluster: {server: %q, "+
			"certificate-authority: pki/ca.crt}}]\n"+
			"contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: %s}]\n", w.cloud.URL, user))
}

// printer is a program that prints a credential.
func printer(t testing.TB, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credential")
	check(t,
		os.WriteFile(path,
			[]byte("#!/bin/sh\necho '"+`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",`+
				`"status":{"token":"`+token+`"}}`+"'\n"), 0o755))
	return path
}

func execUser(command string) string {
	return fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: IfAvailable}}",
		command)
}

// TestTokens: a node whose kubelet has a token, or a program that prints one, joins as others do. Its kubelet is the
// node at its hub by a certificate that only this hub takes; the hub is the node at the cloud by what the kubelet was.
// It leaves, and all is as it was.
func TestTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	check(t, os.WriteFile(file, []byte("a-token-of-the-node\n"), 0o600))
	for name, user := range map[string]string{
		"token": "{token: a-token-of-the-node}", "tokenFile": fmt.Sprintf("{tokenFile: %q}", file),
		"exec": execUser(printer(t, "a-token-of-the-node")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withoutCertificate(t, user)
			before := w.snapshot()
			check(t, w.installer(nil).Join(t.Context()))
			joined := w.snapshot()
			if joined[ownConfig] != before[ownConfig] || !strings.HasPrefix(joined[localPair], "-rw------- ") {
				t.Errorf("the kubelet's own kubeconfig, or the mode of %s: %.10s", localPair, joined[localPair])
			}
			if config := joined[hubConfig]; !strings.Contains(config,
				"cloud-client-kubeconfig: "+filepath.Join(w.root, ownConfig)) ||
				strings.Contains(config, "cloud-client-cert-file") || strings.Contains(config, "cloud-server") {
				t.Errorf("the hub's configuration:\n%s", config)
			}
			led, err := clientcmd.LoadFromFile(filepath.Join(w.root, kubeletConf))
			check(t, err)
			if u := led.AuthInfos["node"]; u.ClientCertificate != localPair || u.ClientKey != localPair ||
				u.Token+u.TokenFile != "" || u.Exec != nil {
				t.Errorf("the kubelet is led by %+v", u)
			}
			check(t, w.installer(nil).Join(t.Context()))
			if diff := differ(joined, w.snapshot()); len(diff) > 0 {
				t.Errorf("the second join changed %v", diff)
			}
			all, err := w.installer(nil).Certificates(t.Context())
			if err != nil || len(all) == 0 {
				t.Errorf("certificates %v, %v", all, err)
			}
			check(t, w.installer(nil).Leave(t.Context()))
			if diff := differ(before, w.snapshot()); len(diff) > 0 || !w.hasAPI() || w.said != nil {
				t.Errorf("join and leave changed %v", diff)
			}
		})
	}
}

// TestTokensCut: power that is cut after any change of such a join leaves a kubelet that has an API server, and leave
// makes the node what it was.
func TestTokensCut(t *testing.T) {
	w := withoutCertificate(t, "{token: a-token-of-the-node}")
	before, cuts := w.snapshot(), 0
	for n := 1; ; n += 4 {
		after, err := w.until(n, func(i *Installer) error { return i.Join(t.Context()) })
		if after == "" {
			check(t, err)
			break
		}
		cuts++
		w.boot()
		if !w.hasAPI() {
			t.Fatalf("without power after %q the kubelet has no API server", after)
		}
		check(t, w.installer(nil).Leave(t.Context()))
		if diff := differ(before, w.snapshot()); len(diff) > 0 {
			t.Fatalf("cut after %q, then leave: %v", after, diff)
		}
	}
	if cuts < 8 {
		t.Errorf("%d cuts", cuts)
	}
}

// TestNoCredential: what keeps such a kubelet from being the node is told in one line, and nothing is changed.
func TestNoCredential(t *testing.T) {
	for name, test := range map[string]struct {
		user string
		also func(w *world, c *Config)
		want []string
	}{
		"a missing program": {
			execUser("/nowhere/iam"), nil, []string{"credential:", "exec /nowhere/iam: there is no such program"},
		},
		"a program that ends": {execUser("/bin/false"), nil, []string{"credential:", "exec /bin/false: exit status 1"}},
		"nonsense":            {execUser("/bin/pwd"), nil, []string{"credential:", "it prints no JSON of an ExecCredential"}},
		"a terminal": {
			"{exec: {apiVersion: client.authentication.k8s.io/v1, command: iam, interactiveMode: Always}}", nil,
			[]string{"kubelet:", "iam wants a terminal"},
		},
		"no file": {
			"{tokenFile: /nowhere/token}", nil, []string{"credential:", "tokenFile /nowhere/token", "no such file"},
		},
		"a token of before": {"{token: of-before}", nil, []string{"cloud:", http.StatusText(http.StatusUnauthorized)}},
		"somebody else's": {
			"{token: a-token-of-the-node}", func(w *world, _ *Config) { w.user = "system:serviceaccount:a:b" }, []string{
				"cloud:", `takes the kubelet's credential for that of "system:serviceaccount:a:b"`,
				"want system:node:<node> in system:nodes",
			},
		},
		"a password": {"{username: a, password: b}", nil, []string{"kubelet:", "a password or an auth-provider"}},
		"a file of authorities": {
			"{token: a-token-of-the-node}", func(_ *world, c *Config) { c.ClientCA = "/etc/kubernetes/pki/ca.crt" }, []string{
				"kubelet:", "--client-ca-file is for the authority of one",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutCertificate(t, test.user)
			i := w.installer(nil)
			if test.also != nil {
				test.also(w, &i.Config)
			}
			before := w.snapshot()
			err := i.Join(t.Context())
			var failed *PreflightError
			if !errors.As(err, &failed) || strings.Contains(err.Error(), "\n") ||
				strings.Contains(err.Error(), "a-token-of-the-node") {
				t.Fatalf("%v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: does not say %q", err, want)
				}
			}
			if diff := differ(before, w.snapshot()); len(diff) > 0 || !w.hasAPI() {
				t.Errorf("changed %v", diff)
			}
		})
	}
}
