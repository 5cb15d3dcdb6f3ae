package certificates

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/yaml"

	"github.com/spf13/cobra"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/pki"
)

// said runs weir pki and returns what it prints.
func said(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := commands.Program{
		Name: "weir", All: []*cobra.Command{Command()},
	}.Run(t.Context(), append([]string{"pki"}, args...), &out, io.Discard)
	return out.String(), err
}

func done(t *testing.T, args ...string) string {
	t.Helper()
	out, err := said(t, args...)
	if err != nil {
		t.Fatalf("weir pki %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TestPKIFiles: who runs an authority makes the files of a pool, and each is what it should be. Below an authority that
// exists too.
func TestPKIFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
	done(t, "authority", "--pool", "harbour", "--dir", at("ca"))
	done(t, "authority", "--pool", "cluster", "--dir", at("cluster"))
	ca := []string{
		"--pool", "harbour", "--ca-cert", at("ca", "ca.crt"), "--ca-key", at("ca", "ca.key"), "--dir", at("out"),
	}
	out := done(t, append([]string{
		"files", "--node", "edge-1,edge-2", "--coordinator", "one=10.0.0.1,one.example.com", "--coordinator", "10.0.0.2",
		"--viewer", "ann",
		"--operator", "eve", "--cluster-ca-cert", at("cluster", "ca.crt"), "--cluster-ca-key", at("cluster", "ca.key"),
	},
		ca...)...)
	files := strings.Fields(out)
	if len(files) != 11 {
		t.Errorf("%d files:\n%s", len(files), out)
	}
	for file, want := range map[string][]string{
		"edge-1/coordinator-client.crt": {"--kind", "hub", "--pool", "harbour", "--node", "edge-1"},
		"coordinator-one/peer.crt": {
			"--kind", "replica", "--pool", "harbour", "--name", "one", "--host", "10.0.0.1", "--host", "one.example.com",
		},
		"coordinator-one/serving.crt": {"--kind", "coordinator", "--pool", "harbour", "--host", "10.0.0.1,one.example.com"},
		"coordinator/serving.crt":     {"--kind", "coordinator", "--pool", "harbour", "--host", "10.0.0.2"},
		"viewer/ann.crt":              {"--kind", "viewer", "--pool", "harbour", "--name", "ann"},
		"operator/eve.crt":            {"--kind", "operator", "--pool", "harbour", "--name", "eve"},
	} {
		key := strings.TrimSuffix(file, ".crt") + ".key"
		check := append([]string{"check", "--ca", at("out", "ca.crt"), "--key", at("out", key), at("out", file)}, want...)
		if out := done(t, check...); !strings.HasSuffix(out, ": good\n") {
			t.Error(out)
		}
		for i, word := range check { // another pool, node, name or host
			if i > 5 && !strings.HasPrefix(word, "-") && check[i-1] != "--kind" {
				wrong := append([]string{}, check...)
				wrong[i] = "other"
				if out, err := said(t, wrong...); cli.ExitCode(err) != 1 || strings.Contains(out, ": good") {
					t.Errorf("%s: %v: %s", strings.Join(wrong, " "), err, out)
				}
			}
		}
	}
	// What they are is told without asking for it; who vouches, when they end and whose key it is counts.
	out = done(t, "check", "--ca", at("cluster", "ca.crt"), at("out", "edge-1", "cloud-hub.crt"),
		at("out", "edge-2", "delegate-client.crt"))
	if !strings.Contains(out, "hub-at-cloud of pool harbour (CN=weir:hub:harbour:edge-1") ||
		!strings.Contains(out, "forwarder of pool harbour (CN=weir:forwarder:harbour:edge-2") {
		t.Error(out)
	}
	for what, args := range map[string][]string{
		"issuer":      {"--ca", at("cluster", "ca.crt"), at("out", "edge-1", "coordinator-client.crt")},
		"common name": {"--ca", at("out", "ca.crt"), "--node", "edge-2", at("out", "edge-1", "coordinator-client.crt")},
		"public key": {
			"--ca", at("out", "ca.crt"), "--key", at("out", "edge-2", "coordinator-client.key"),
			at("out", "edge-1", "coordinator-client.crt"),
		},
		"ends within":    {"--ca", at("out", "ca.crt"), "--within", "2200h", at("out", "edge-1", "coordinator-client.crt")},
		"none of Weir's": {"--ca", at("out", "ca.crt"), at("out", "ca.crt")},
	} {
		if out, err := said(t, append([]string{"check"}, args...)...); cli.ExitCode(err) != 1 ||
			!strings.Contains(out, what) {
			t.Errorf("%s: %v: %s", what, err, out)
		}
	}
	for _, c := range []struct {
		flag string
		args []string
	}{
		{"--node", []string{"files", "--node", "Edge 1"}},
		{"--coordinator", []string{"files", "--coordinator", "../x=10.0.0.1"}},
		{"--coordinator", []string{"files", "--coordinator", "*.example.com"}},
		{"--viewer", []string{"files", "--viewer", "system:admin"}},
		{"--node", []string{"files", "--node", "edge-1", "--life", "87600h"}},
	} {
		if _, err := said(t, append(c.args, ca...)...); cli.ExitCode(err) != 2 || !strings.HasPrefix(err.Error(), c.flag) {
			t.Errorf("%v: %v", c.args, err)
		}
	}
	if _, err := os.Stat(at("x")); err == nil {
		t.Error("a file outside of the folder was made")
	}
	ca[1] = "lighthouse"
	if _, err := said(t, append([]string{"files", "--node", "edge-1"}, ca...)...); cli.ExitCode(err) != 2 {
		t.Errorf("another pool's authority: %v", err)
	}
	for _, args := range [][]string{
		{"authority", "--pool", "harbour", "--dir", at("ca")}, {"authority", "--pool", "a:b", "--dir", at("new")},
		{"authority", "--pool", "p"},
		// path length 0.
		{"authority", "--pool", "p", "--dir", at("new"), "--ca-cert", at("ca", "ca.crt"), "--ca-key", at("ca", "ca.key")},
		{"check", "--ca", at("ca", "ca.crt")}, {
			"check", at("ca", "ca.crt"),
		}, {"check", "--ca", at("ca", "ca.key"), at("ca", "ca.crt")},
		{"check", "--ca", at("ca", "ca.crt"), "--kind", "king", at("ca", "ca.crt")},
	} {
		if _, err := said(t, args...); cli.ExitCode(err) != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestPKIRequest: a request is of a key that stays, and in a manifest it is what weir-manager expects.
func TestPKIRequest(t *testing.T) {
	key := filepath.Join(t.TempDir(), "hub.key")
	who := []string{"request", "--kind", "hub", "--pool", "harbour", "--node", "edge-1", "--key", key}
	s := pki.Subject{Pool: "harbour", Node: "edge-1"}
	first, err := pki.ParseRequest([]byte(done(t, who...)))
	if err != nil {
		t.Fatal(err)
	}
	var r certificatesv1.CertificateSigningRequest
	if err := yaml.UnmarshalStrict([]byte(done(t, append(who, "--manifest", "edge-1-hub")...)), &r); err != nil {
		t.Fatal(err)
	}
	second, err := pki.ParseRequest(r.Spec.Request)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.RawSubjectPublicKeyInfo, second.RawSubjectPublicKeyInfo) {
		t.Error("the key did not stay")
	}
	if err := pki.Must(pki.Hub).CheckRequest(second, s); err != nil || r.Name != "edge-1-hub" ||
		r.Spec.SignerName != "weir.dev/hub" || len(r.Spec.Usages) != 2 {
		t.Errorf("%v: %+v", err, r.Spec)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	for _, args := range [][]string{
		{
			"--kind", "hub", "--pool", "harbour", "--key", key + "2",
		}, {"--kind", "hub", "--pool", "a:b", "--node", "edge-1", "--key", key + "2"},
		{"--kind", "king", "--key", key + "2"}, {"--kind", "hub", "--pool", "harbour", "--node", "edge-1"},
		{"--kind", "coordinator", "--pool", "harbour", "--key", key + "2"},
		{"--kind", "viewer", "--pool", "p", "--name", "ann", "--manifest", "x", "--key", key + "2"},
		{"--kind", "hub", "--pool", "harbour", "--node", "edge-1", "--life", "1s", "--key", key + "2"},
	} {
		if _, err := said(t, append([]string{"request"}, args...)...); cli.ExitCode(err) != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := os.Stat(key + "2"); err == nil {
		t.Error("a key was made for a request that cannot be")
	}
	if out := done(t, "table"); strings.Count(out, "\n") != len(pki.Identities())+1 ||
		!strings.Contains(out, "weir:hub:<pool>:<node>") {
		t.Error(out)
	}
}
