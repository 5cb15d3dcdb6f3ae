package gate

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
)

// good is a configuration in which nothing is wrong.
func good() Config {
	return Config{
		BindAddress: "127.0.0.1", TLSCertFile: "/no/such/cert", TLSPrivateKeyFile: "/no/such/key",
		PoolScopeResources: []string{"services.v1.", "+widgets.v1.example.com=Widget"}, FreshWithin: leastFresh,
	}
}

// TestConfig: each value that is invalid is named with its flag.
func TestConfig(t *testing.T) {
	check(t, good().Validate())
	scope := func(all ...string) func(*Config) { return func(c *Config) { c.PoolScopeResources = all } }
	for about, test := range map[string]struct {
		change       func(*Config)
		field, value string
	}{
		"no address":         {func(c *Config) { c.BindAddress = "" }, "--secure-port", ""},
		"a name":             {func(c *Config) { c.BindAddress = "gate.example" }, "--secure-port", "gate.example"},
		"a port before 0":    {func(c *Config) { c.SecurePort = -1 }, "--secure-port", "-1"},
		"a port beyond all":  {func(c *Config) { c.SecurePort = 65536 }, "--secure-port", "65536"},
		"no certificate":     {func(c *Config) { c.TLSCertFile = "" }, "--tls-cert-file", ""},
		"no key":             {func(c *Config) { c.TLSPrivateKeyFile = "" }, "--tls-private-key-file", ""},
		"never fresh":        {func(c *Config) { c.FreshWithin = 0 }, "--fresh-within", "0s"},
		"hardly ever":        {func(c *Config) { c.FreshWithin = leastFresh - 1 }, "--fresh-within", "19.999999999s"},
		"before that":        {func(c *Config) { c.FreshWithin = -time.Hour }, "--fresh-within", "-1h0m0s"},
		"a time before":      {func(c *Config) { c.Linger = -1 }, "linger", "-1ns"},
		"Secrets":            {scope("secrets.v1."), "--pool-scope-resources", "secrets.v1."},
		"Secrets, always":    {scope("+secrets.v1."), "--pool-scope-resources", "+secrets.v1."},
		"no version":         {scope("pods"), "--pool-scope-resources", "pods"},
		"nothing":            {scope(""), "--pool-scope-resources", ""},
		"no kind":            {scope("widgets.v1.example.com"), "--pool-scope-resources", "widgets.v1.example.com"},
		"twice":              {scope("services.v1.", "services.v1."), "--pool-scope-resources", "services.v1."},
		"twice, once always": {scope("services.v1.", "+services.v1."), "--pool-scope-resources", "+services.v1."},
		"in two versions": {
			scope("services.v1.", "services.v2.=Service"), "--pool-scope-resources", "services.v2.=Service",
		},
		"a small ring":        {func(c *Config) { c.RingBytes = 1 }, "--ring-bytes", "1"},
		"a negative one":      {func(c *Config) { c.RingBytes = -1 << 20 }, "--ring-bytes", "-1048576"},
		"a ring for a moment": {func(c *Config) { c.RingAge = 1 }, "--ring-bytes", "0"},
	} {
		c := good()
		test.change(&c)
		err := c.Validate()
		var usage *cli.UsageError
		if !errors.As(err, &usage) || usage.Field != test.field || usage.Value != test.value || usage.Allowed == "" ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s: %q", about, err, test.field, test.value)
		}
		if g, err := New(c); err == nil {
			g.Close()
			t.Errorf("%s: a gate is made of it", about)
		}
	}
}

// kubeconfig is one of a cluster that nobody calls.
func kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	check(t, os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"a",`+
		`"clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}],`+
		`"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],`+
		`"users":[{"name":"a","user":{"token":"t"}}]}`), 0o600))
	return file
}

// TestNew: what is wrong beyond the values is told before anything runs, and what was opened is closed again.
func TestNew(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for about, test := range map[string]struct{ kubeconfig, field string }{
		"no pod of a cluster": {"", "--kubeconfig"}, "no file": {"/no/such/file", "--kubeconfig"},
	} {
		c := good()
		c.Kubeconfig = test.kubeconfig
		_, err := New(c)
		if usage := (*cli.UsageError)(nil); !errors.As(err, &usage) || usage.Field != test.field ||
			usage.Value != test.kubeconfig {
			t.Errorf("%s: %v", about, err)
		}
	}
	c := good()
	c.Kubeconfig, c.BindAddress = kubeconfig(t), "192.0.2.1"
	_, err := New(c)
	if usage := (*cli.UsageError)(nil); !errors.As(err, &usage) || usage.Field != "--secure-port" ||
		usage.Value != "192.0.2.1:0" {
		t.Errorf("an address of another machine: %v", err)
	}
	c.BindAddress = "127.0.0.1"
	first, err := New(c)
	check(t, err)
	c.SecurePort = first.Addr().(*net.TCPAddr).Port
	if _, err := New(c); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "--secure-port") {
		t.Errorf("a port that is taken: %v", err)
	}
	first.Close()
	second, err := New(c)
	check(t, err)
	err = second.Run(t.Context())
	if usage := (*cli.UsageError)(nil); !errors.As(err, &usage) || !strings.Contains(usage.Field, "--tls-cert-file") ||
		usage.Value != "/no/such/cert" {
		t.Errorf("a certificate that is not there: %v", err)
	}
	third, err := New(c)
	if err != nil {
		t.Fatalf("the port is not given back: %v", err)
	}
	third.Close()
}

// TestAlways: what nobody has to read is relayed before anybody does, and all is if nothing lingers.
func TestAlways(t *testing.T) {
	for linger, want := range map[time.Duration]string{
		time.Minute: "widgets.v1.example.com", 0: "services.v1.,widgets.v1.example.com",
	} {
		c := good()
		c.Kubeconfig, c.Linger = kubeconfig(t), linger
		g, err := New(c)
		check(t, err)
		var got []string
		for _, r := range g.relays.All() {
			got = append(got, r.Resource().String())
		}
		if strings.Join(got, ",") != want || len(g.feeders.all()) != len(got) {
			t.Errorf("%v: relays of %v, and %d feeders", linger, got, len(g.feeders.all()))
		}
		g.Close()
	}
}

// TestFlags: the flags have the defaults that documents name.
func TestFlags(t *testing.T) {
	var c Config
	f := cli.NewFlags("weir-gate", "")
	c.bind(f)
	check(t, f.Parse(nil, &bytes.Buffer{}))
	if c.BindAddress != "0.0.0.0" || c.SecurePort != contract.GatePort || c.FreshWithin != 30*time.Second ||
		c.RingBytes != 16<<20 || c.Linger == 0 || strings.Join(c.PoolScopeResources, ",") != strings.Join(
		directory.DefaultScope(), ",") {
		t.Errorf("%+v", c)
	}
	c.TLSCertFile, c.TLSPrivateKeyFile = "a", "b"
	check(t, c.Validate())
}
