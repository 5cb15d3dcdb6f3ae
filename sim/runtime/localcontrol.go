package runtime

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/testca"
)

// Ports of weir-manager at the address of the cloud.
const (
	managerMetricsPort = "8080"
	managerHealthPort  = "8081"
)

// addControllers prepares the stock controllers.
func (s *localSite) addControllers() error {
	manager, err := s.cloud.ControllerManager(s.topology.timers())
	if err != nil {
		return err
	}
	scheduler, err := s.cloud.Scheduler()
	if err != nil {
		return err
	}
	s.addCommand(ControllerManager, manager)
	s.addCommand(Scheduler, scheduler)
	return nil
}

// lifecycle are the controllers that look after nodes, and what Pods of them need.
const lifecycle = "node-lifecycle-controller,serviceaccount-controller,pod-garbage-collector-controller," +
	"garbage-collector-controller"

// endpoints are the controllers that write what a Service leads to.
const endpoints = "endpoints-controller,endpointslice-controller"

// some are the controllers that run if not all do.
func (t Topology) some() string {
	var all []string
	if t.Lifecycle {
		all = append(all, lifecycle)
	}
	if t.Endpoints {
		all = append(all, endpoints)
	}
	if t.Controllers {
		return ""
	}
	return strings.Join(all, ",")
}

// addSome prepares a kube-controller-manager with some controllers only. It asks for no Lease: on a busy machine it
// would lose that, and end.
func (s *localSite) addSome(controllers string) error {
	manager, err := s.cloud.ControllerManager(s.topology.timers())
	if err != nil {
		return err
	}
	for i, arg := range manager.Args {
		switch {
		case strings.HasPrefix(arg, "--controllers="):
			manager.Args[i] = "--controllers=" + controllers
		case strings.HasPrefix(arg, "--leader-elect="):
			manager.Args[i] = "--leader-elect=false"
		}
	}
	s.addCommand(ControllerManager, manager)
	return nil
}

// addManager installs what weir-manager needs in the cluster, and prepares it with the identity that it has there.
func (s *localSite) addManager(ctx context.Context) error {
	for _, manifest := range []string{manifests.Pools(), manifests.Policies(), manifests.RBAC()} {
		if err := s.cloud.Apply(ctx, []byte(manifest)); err != nil {
			return fmt.Errorf("install weir-manager: %w", err)
		}
	}
	dir, err := s.spawner.Scratch("cloud", parts.ManagerCommand)
	if err != nil {
		return err
	}
	token, err := s.cloud.ClientToken(ctx, parts.ManagerCommand)
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
	address, err := s.blocks[0].Addr(1) // on this machine, whatever the cloud runs on
	if err != nil {
		return err
	}
	health := net.JoinHostPort(address, managerHealthPort)
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--metrics-bind-address=" + net.JoinHostPort(address, managerMetricsPort), "--health-probe-bind-address=" + health,
		"--node-monitor-grace-period=" + s.topology.timers().MonitorGrace.String(),
	}
	has := func(which func(Pool) bool) bool { return slices.ContainsFunc(s.topology.Pools, which) }
	if has(func(p Pool) bool { return p.Lives != nil }) {
		args = append(args, "--certificates=approve")
	}
	s.addCommand(Manager, cloud.Command{
		Name: parts.ManagerCommand, Path: s.commands[parts.ManagerCommand], Dir: dir,
		LogFile: filepath.Join(s.logDir, parts.ManagerCommand+".log"),
		URL:     "http://" + health, Transport: http.DefaultTransport,
		Args: args,
	})
	return nil
}

func (s *localSite) addCommand(id PartID, c cloud.Command) {
	l := parts.Launch{Spawner: s.spawner, Name: c.Name, Path: c.Path, Dir: c.Dir, LogFile: c.LogFile}
	s.addPart(id, parts.NewCommand(l, c.Args, c.URL, c.Transport))
}
