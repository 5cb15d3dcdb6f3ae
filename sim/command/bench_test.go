package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/bench"
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/sim/testca"
)

// peerProfile is one that can be read.
const peerProfile = "name: other\nbinary: sh\nserve: https://{{.Address}}:{{.Port}}\nhealth: " +
	"https://{{.Address}}:{{.Port}}/healthz\n"

// TestBenchUsage: what cannot be measured is refused before anything starts, in one line that names the flag.
func TestBenchUsage(t *testing.T) {
	dir := t.TempDir()
	profile := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := profile("peer.yaml", peerProfile)
	huge := profile("huge.yaml", "")
	if err := os.Truncate(huge, 1<<30); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--only", "weather"}, "--only"},
		{[]string{"--only", "hub,weather"}, "--only"},
		{[]string{"--only", ","}, "--only"},
		{[]string{"--only", ""}, "--only"},
		{[]string{"--peer", ""}, "--peer"},
		{[]string{"--rounds", "0"}, "--rounds"},
		{[]string{"--rounds", "many"}, "--rounds"},
		{[]string{"--objects", "0"}, "--objects"},
		{[]string{"--large", "10"}, "--large"},
		{[]string{"--manager-nodes", "-1"}, "--manager-nodes"},
		{[]string{"--manager-nodes", "5"}, "100 to 50000"},
		{[]string{"--manager-pools", "0"}, "--manager-pools"},
		{[]string{"--manager-steady", "0s"}, "--manager-steady"},
		{[]string{"--manager-before", dir}, "--manager-before"},
		{[]string{"--pool-rounds", "0"}, "--pool-rounds"},
		{[]string{"--parallel", "9"}, "--parallel"},
		{[]string{"--scenarios", dir}, "--scenarios"},
		{[]string{"--out", good}, "--out"},
		{[]string{"--no-such-flag"}, "no-such-flag"},
		{[]string{"left over"}, "left over"},
		{[]string{"--peer"}, "--peer"},
		{[]string{"--peer", filepath.Join(dir, "none.yaml")}, "no such file"},
		{[]string{"--peer", dir}, "--peer"},
		{[]string{"--peer", huge}, "65536 bytes"},
		{[]string{"--peer", profile("empty.yaml", "")}, "name"},
		{[]string{"--peer", profile("text.yaml", "not: [yaml")}, "YAML"},
		{[]string{"--peer", profile("field.yaml", peerProfile+"port: 1\n")}, "port"},
		{
			[]string{"--peer", profile("binary.yaml", strings.Replace(peerProfile, "sh", "no-such-program", 1))},
			"no-such-program",
		},
		{[]string{"--peer", good, "--only", "hub"}, "nothing beside --peer"},
	} {
		args := append([]string{bench.Command, "--scenarios", "../../scenarios", "--out", filepath.Join(dir, "out")},
			c.args...)
		err := Run(t.Context(), args, io.Discard, io.Discard)
		if cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: exit code %d: %v; want 2 and one line with %q", c.args, cli.ExitCode(err), err, c.says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("what was refused has a report")
	}
}

// TestBenchHelp: it names the list of the parts, and not the processes that a benchmark starts of itself.
func TestBenchHelp(t *testing.T) {
	var help, list bytes.Buffer
	if err := Run(t.Context(), []string{bench.Command, "--help"}, &help, io.Discard); cli.ExitCode(err) != 0 {
		t.Fatal(err)
	}
	if err := Run(t.Context(), []string{bench.Command, "--list"}, &list, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, part := range bench.Parts() {
		if !strings.Contains(list.String(), "\n"+part+" ") && !strings.HasPrefix(list.String(), part+" ") {
			t.Errorf("%s is not in\n%s", part, &list)
		}
	}
	if strings.Contains(help.String(), bench.ServeBareFlag) || strings.Contains(help.String(), bench.OpenStoreFlag) ||
		!strings.Contains(help.String(), "--peer profile") || !strings.Contains(help.String(), "names of --list") {
		t.Errorf("%s", &help)
	}
	for line := range strings.Lines(help.String()) {
		if len(line) > 150 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// TestServeBare: the command that a benchmark calls of itself serves what it is given, as HTTP/2.
func TestServeBare(t *testing.T) {
	dir := t.TempDir()
	authority, err := testca.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(testca.Request{CommonName: "bare", Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := pair.Write(dir, "serving"); err != nil {
		t.Fatal(err)
	}
	if _, err := testca.WriteFile(dir, "list", []byte("all of it")); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, []string{bench.Command, "--" + bench.ServeBareFlag, dir}, io.Discard, io.Discard)
	}()
	var address []byte
	for len(address) == 0 {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
		address, _ = os.ReadFile(filepath.Join(dir, "address"))
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CertPEM())
	client := &http.Client{
		Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	resp, err := client.Get("https://" + string(address))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "all of it" || resp.ProtoMajor != 2 {
		t.Errorf("%q by %s: %v", body, resp.Proto, err)
	}
	resp.Body.Close()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestGiven: a report says by which flags it is repeated.
func TestGiven(t *testing.T) {
	fs := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	fs.StringSlice("only", nil, "")
	fs.Int("rounds", 6, "")
	fs.SortFlags = true
	fs.String("out", "", "")
	fs.Bool("resume", false, "")
	if err := fs.Parse([]string{"--rounds", "9", "--only", "a", "--only=b", "--resume", "--out", "x"}); err != nil {
		t.Fatal(err)
	}
	if got, want := given(fs, "out", "resume"), " --only a,b --rounds 9"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
