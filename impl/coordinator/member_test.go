package coordinator_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator"
	"github.com/weir-edge/weir/impl/pki"
)

// oneOfThree is what the replica a of three is told.
func oneOfThree() coordinator.Config {
	return coordinator.Config{
		NodePoolName: "p", BindAddress: "0.0.0.0", DataDir: "d", CertificatesDir: "c",
		FreshWithin:    30e9,
		Name:           "a",
		InitialCluster: []string{"a=https://10.0.0.1:2380", "b=https://10.0.0.2:2380", "c=https://10.0.0.3:2380"},
		ReplicaServers: []string{"c=https://10.0.0.3:10270/", "b=https://10.0.0.2:10270", "a=https://10.0.0.1:10270"},
	}
}

// wantUsage wants the error of a user's mistake, with the flag and some words.
func wantUsage(t *testing.T, err error, flag, words string) {
	t.Helper()
	var usage *cli.UsageError
	if !errors.As(err, &usage) || usage.Field != flag || !strings.Contains(err.Error(), words) ||
		strings.Contains(err.Error(), "\n") || cli.ExitCode(err) != 2 {
		t.Errorf("got %v\nwant one line about %s with %q, and exit code 2", err, flag, words)
	}
}

func TestReplicaFlags(t *testing.T) {
	if err := oneOfThree().Validate(); err != nil {
		t.Fatal(err)
	}
	named := oneOfThree()
	named.InitialCluster = []string{
		"a=https://one.example:2380", "b=https://two.example:2380", "c=https://three.example:2380",
	}
	if err := named.Validate(); err != nil {
		t.Errorf("with names of hosts: %v", err)
	}
	for name, test := range map[string]struct {
		change      func(c *coordinator.Config)
		flag, words string
	}{
		"a name alone": {
			func(c *coordinator.Config) {
				c.InitialCluster, c.ReplicaServers = nil, nil
			}, "--initial-cluster", "or no flag of replicas at all",
		},
		"a state alone": {
			func(c *coordinator.Config) {
				c.InitialCluster, c.ReplicaServers, c.Name, c.ClusterState = nil, nil, "", coordinator.ClusterExisting
			}, "--initial-cluster", "or no flag of replicas at all",
		},
		"no name":            {func(c *coordinator.Config) { c.Name = "" }, "--name", "a, b, c"},
		"the name of nobody": {func(c *coordinator.Config) { c.Name = "d" }, "--name", "a, b, c"},
		"two": {
			func(c *coordinator.Config) { c.InitialCluster = c.InitialCluster[:2] }, "--initial-cluster", "3 replicas, or none",
		},
		"a name twice": {
			func(c *coordinator.Config) { c.InitialCluster[1] = "a=https://10.0.0.2:2380" }, "--initial-cluster",
			"each name once",
		},
		"an address twice": {
			func(c *coordinator.Config) { c.InitialCluster[1] = "b=https://10.0.0.1:2380" }, "--initial-cluster",
			"it is that of a",
		},
		"an API twice": {
			func(c *coordinator.Config) { c.ReplicaServers[1] = "b=https://10.0.0.3:10270" }, "--replica-server",
			"it is that of c",
		},
		"no name before the URL": {
			func(c *coordinator.Config) {
				c.InitialCluster[0] = "https://10.0.0.1:2380"
			}, "--initial-cluster", "name=https://host:port",
		},
		"http": {
			func(c *coordinator.Config) { c.InitialCluster[0] = "a=http://10.0.0.1:2380" }, "--initial-cluster",
			"name=https://host:port",
		},
		"no port": {
			func(c *coordinator.Config) {
				c.InitialCluster[0] = "a=https://10.0.0.1"
			}, "--initial-cluster", "name=https://host:port",
		},
		"a port that is none": {
			func(c *coordinator.Config) { c.InitialCluster[0] = "a=https://10.0.0.1:99999" }, "--initial-cluster",
			"name=https://host:port",
		},
		"port 0": {
			func(c *coordinator.Config) {
				c.InitialCluster[0] = "a=https://10.0.0.1:0"
			}, "--initial-cluster", "name=https://host:port",
		},
		"no host": {
			func(c *coordinator.Config) {
				c.InitialCluster[0] = "a=https://:2380"
			}, "--initial-cluster", "name=https://host:port",
		},
		"a user": {
			func(c *coordinator.Config) { c.InitialCluster[0] = "a=https://u:p@10.0.0.1:2380" }, "--initial-cluster",
			"name=https://host:port",
		},
		"all three in one": {
			func(c *coordinator.Config) {
				c.InitialCluster = []string{strings.Join(c.InitialCluster, ",")}
			}, "--initial-cluster", "name=https://host:port",
		},
		"no APIs": {
			func(c *coordinator.Config) { c.ReplicaServers = nil }, "--replica-server", "there is none for a",
		},
		"the API of somebody else": {
			func(c *coordinator.Config) { c.ReplicaServers[2] = "d=https://10.0.0.1:10270" }, "--replica-server",
			"there is none for a",
		},
		"four APIs": {
			func(c *coordinator.Config) { c.ReplicaServers = append(c.ReplicaServers, "d=https://10.0.0.4:10270") },
			"--replica-server", "and no more",
		},
		"one port for both": {
			func(c *coordinator.Config) { c.ReplicaServers[2] = "a=https://10.0.0.1:2380" }, "--replica-server",
			"their own port",
		},
		"no certificates": {
			func(c *coordinator.Config) { c.CertificatesDir = "" }, "--certificates-dir", "it is required",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := oneOfThree()
			test.change(&c)
			wantUsage(t, c.Validate(), test.flag, test.words)
		})
	}
}

// TestReplicaCertificate: a replica that the others would not know says so when it starts; they could only complain of
// somebody unknown.
func TestReplicaCertificate(t *testing.T) {
	p := newPool(t)
	name := pkix.Name{
		CommonName: contract.ReplicaUser("p", "a"), Organization: []string{
			contract.ReplicaGroup, contract.PoolGroupPrefix + "p",
		},
	}
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	here := []net.IP{net.IPv4(127, 0, 0, 1)}
	for what, test := range map[string]struct {
		cert  *x509.Certificate
		words string
	}{
		"of another replica": {
			&x509.Certificate{
				Subject: pkix.Name{CommonName: contract.ReplicaUser("p", "b"), Organization: name.Organization}, IPAddresses: here,
				ExtKeyUsage: both,
			}, `want "weir:coordinator:p:a"`,
		},
		"of another pool": {
			&x509.Certificate{
				Subject: pkix.Name{
					CommonName: name.CommonName, Organization: []string{contract.ReplicaGroup, contract.PoolGroupPrefix + "q"},
				}, IPAddresses: here, ExtKeyUsage: both,
			},
			`want "weir:pool:p"`,
		},
		"for a server only": {&x509.Certificate{Subject: name, IPAddresses: here, ExtKeyUsage: both[:1]}, "as a client"},
		"for a client only": {
			&x509.Certificate{Subject: name, IPAddresses: here, ExtKeyUsage: both[1:]}, "as the server at https://127.0.0.1:1",
		},
		"for another machine": {
			&x509.Certificate{Subject: name, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 9)}, ExtKeyUsage: both},
			"as the server at https://127.0.0.1:1",
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			_, _, cert, key := p.ca.sign(test.cert)
			own := *p
			own.moveCertificates(filepath.Join(dir, "certificates"))
			keep(t, own.of(pki.Replica), cert, key)
			c := own.config
			c.Name, c.DataDir, c.SecurePort = "a", filepath.Join(dir, "data"), 0
			c.InitialCluster = []string{"a=https://127.0.0.1:1", "b=https://127.0.0.2:1", "c=https://127.0.0.3:1"}
			c.ReplicaServers = []string{"a=https://127.0.0.1:2", "b=https://127.0.0.2:2", "c=https://127.0.0.3:2"}
			co, err := coordinator.New(c)
			if err == nil {
				co.Close()
			}
			wantUsage(t, err, "--certificates-dir", test.words)
		})
	}
}

// TestExpiredPeer: a replica whose own certificate has ended, as after months without the cloud, starts, and says so.
// Others judge it.
func TestExpiredPeer(t *testing.T) {
	r := trio(t)[0]
	_, _, cert, key := r.pool.ca.sign(&x509.Certificate{
		Subject: pkix.Name{
			CommonName: contract.ReplicaUser("p", "1"), Organization: []string{
				contract.ReplicaGroup, contract.PoolGroupPrefix + "p",
			},
		},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth,
		},
		NotAfter: time.Now().Add(-time.Minute),
	})
	keep(t, r.cert, cert, key)
	r.run()
	eventually(t, "it says what is wrong, and waits for the others", func() bool {
		said := r.stderr.String()
		return strings.Contains(said, "is not valid by this machine's clock") && strings.Contains(said, "msg=starting")
	})
	select {
	case <-r.done:
		t.Error("it ended")
	default:
	}
}

// TestPeerPort: a port for the others that cannot be had is told at once.
func TestPeerPort(t *testing.T) {
	all := trio(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	for address, want := range map[string]string{
		l.Addr().String(): "choose another address in --initial-cluster", "192.0.2.1:2380": "an address of this machine",
	} {
		_, _, cert, key := all[0].pool.ca.sign(&x509.Certificate{
			Subject: pkix.Name{
				CommonName:   contract.ReplicaUser("p", "1"),
				Organization: []string{contract.ReplicaGroup, contract.PoolGroupPrefix + "p"},
			},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(192, 0, 2, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		})
		keep(t, all[0].cert, cert, key)
		flags := slices.Clone(all[0].flags)
		for i, f := range flags {
			flags[i] = strings.ReplaceAll(f, "https://"+all[0].peer, "https://"+address)
		}
		r := all[0].pool.spawnAt("0", flags...)
		<-r.done
		if code := r.cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(r.stderr.String(), want) {
			t.Errorf("on %s: exit code %d, and %s", address, code, r.stderr)
		}
	}
}
