package runtime

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/testca"
)

// gate is weir-gate beside the kube-apiserver.
type gate struct {
	number    uint64 // of what pools are told
	address   string
	authority *testca.Authority // of its certificate
	ways      int               // that hubs which lead keep to it
}

// addGate installs what weir-gate needs in the cluster, and prepares it with the identity that it has there. hosts are
// the addresses by which nodes find it.
func (s *localSite) addGate(ctx context.Context, hosts []string) error {
	if err := s.cloud.Apply(ctx, []byte(manifests.GateAccess())); err != nil {
		return fmt.Errorf("install weir-gate: %w", err)
	}
	dir, err := s.spawner.Scratch("cloud", parts.GateCommand)
	if err != nil {
		return err
	}
	token, err := s.cloud.ClientToken(ctx, parts.GateCommand)
	if err != nil {
		return err
	}
	data, err := testca.Kubeconfig(s.cloud.URL(), s.cloud.CA().CertPEM(), nil, token)
	if err != nil {
		return err
	}
	kubeconfig, err := testca.WriteFile(dir, "kubeconfig", data)
	if err != nil {
		return err
	}
	host, err := s.blocks[0].Addr(1)
	if err != nil {
		return err
	}
	g := &gate{number: bulletin.Next(0, time.Now()), address: net.JoinHostPort(host, strconv.Itoa(contract.GatePort))}
	if g.authority, err = testca.NewAuthority("weir-gate"); err != nil {
		return err
	}
	pair, err := g.authority.Issue(testca.Request{CommonName: parts.GateCommand, Hosts: append(hosts, host)})
	if err != nil {
		return err
	}
	file, err := testca.WriteBoth(dir, "serving.pem", pair)
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig, "--secure-port=" + g.address, "--tls-cert-file=" + file,
		"--tls-private-key-file=" + file,
	}
	for name, value := range s.topology.GateFlags {
		all, several := value.([]string)
		if !several {
			all = []string{fmt.Sprint(value)}
		}
		for _, one := range all {
			args = append(args, "--"+name+"="+one)
		}
	}
	if s.topology.GateFlags["way-in"] == true {
		g.ways = 1
	}
	s.gate = g
	s.addCommand(Gate, cloud.Command{
		Name: parts.GateCommand, Path: s.commands[parts.GateCommand], Dir: dir,
		LogFile:   filepath.Join(s.logDir, parts.GateCommand+".log"),
		URL:       "https://" + g.address,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: g.authority.Pool(), MinVersion: tls.VersionTLS13}},
		Args:      args,
	})
	return nil
}

// GateAddress implements Gated.
func (s *localSite) GateAddress() string {
	if s.gate == nil {
		return ""
	}
	return s.gate.address
}

// tellGate tells a hub of the gate, as if weir-manager had before it started: what it keeps is signed by the pool's
// authority. Its way there is its node's, as that to the cloud.
func (x *localPool) tellGate(c *parts.HubConfig, name, address string) error {
	server := x.site.gate.address
	if !x.Unlinked {
		p, err := x.uplink.Proxy(name, ClassPool, x.site.ground.near(address), server)
		if err != nil {
			return err
		}
		server = p.Addr()
	}
	line, err := directory.Entry{
		Pool: x.Name, Version: x.site.gate.number, Mode: contract.ModeCoordinator,
		Coordinators: c.CoordinatorServers,
		Gate: directory.Gate{
			Server: "https://" + server, Authorities: string(x.site.gate.authority.CertPEM()), Ways: x.site.gate.ways,
		},
	}.Sign(x.authority.Signer())
	if err != nil {
		return err
	}
	_, err = testca.WriteFile(c.DataDir, "directory", line)
	return err
}
