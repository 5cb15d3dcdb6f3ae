package hub

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/pki"
)

// TestForCoordinator: the hub gets the certificates of the coordinator on its node, renews them, and keeps each with
// its key in one file, for nobody else to read.
func TestForCoordinator(t *testing.T) {
	p := enrolling(t, "edge-1")
	signer, h := p.clouds[0].signer, p.hubs["edge-1"]
	dir := filepath.Join(h.dir, "coordinator")
	h.config.EnrolCoordinatorDir, h.config.CoordinatorReplica = dir, "1"
	signer.life = map[pki.Kind]time.Duration{pki.Coordinator: 4 * time.Second, pki.Replica: 4 * time.Second}
	signer.signs(p.ca, p.local)
	p.start("edge-1")
	load := func(k pki.Kind) (serial string) {
		file := credential.KeptFile(dir, k)
		pair, err := tls.LoadX509KeyPair(file, file)
		if err != nil {
			return ""
		}
		if f, err := os.Stat(file); err != nil || f.Mode() != 0o600 {
			t.Errorf("%v, %v", f, err)
		}
		subject := pki.Subject{Pool: "pool-a", Name: "1", Hosts: []string{"127.0.0.1"}}
		if err := pki.Must(k).CheckCertificate(pair.Leaf, subject); err != nil || len(pair.Leaf.IPAddresses) != 1 {
			t.Errorf("%s: %v, addresses %v", k, err, pair.Leaf.IPAddresses)
		}
		return pair.Leaf.SerialNumber.String()
	}
	for _, k := range []pki.Kind{pki.Coordinator, pki.Replica} {
		eventually(t, "the first "+string(k), func() bool { return load(k) != "" })
		first := load(k)
		eventually(t, "the next "+string(k), func() bool { return load(k) != first })
		_, metrics := get(t, p.client(nil), "http://"+h.hub.HealthAddr().String()+"/metrics")
		if !strings.Contains(metrics, `weir_certificate_expiry_timestamp_seconds{kind="`+string(k)+`"}`) {
			t.Errorf("no metric of %s", k)
		}
		if !slices.Contains(signer.requests(), "system:node:edge-1 "+string(k)+" ") {
			t.Errorf("asked for %q", signer.requests())
		}
	}
}

// TestForCoordinatorUsage: what is invalid.
func TestForCoordinatorUsage(t *testing.T) {
	h := enrolling(t, "edge-1").hubs["edge-1"]
	for want, change := range map[string]func(c *Config){
		"none without --enrol-coordinator-dir": func(c *Config) { c.CoordinatorReplica = "1" },
		"--enrol-coordinator-host":             func(c *Config) { c.EnrolCoordinatorHosts = []string{"10.0.0.1"} },
		"none without --enable-coordinator":    func(c *Config) { c.EnrolCoordinatorDir, c.EnableCoordinator = "/a", false },
		"1 to 32 IP addresses": func(c *Config) {
			c.EnrolCoordinatorDir, c.CoordinatorServers = "/a", append(c.CoordinatorServers, "https://10.0.0.2:1")
		},
		"letters, digits": func(c *Config) { c.EnrolCoordinatorDir, c.CoordinatorReplica = "/a", "-" },
	} {
		c := h.config
		change(&c)
		if err := c.Validate(); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
