package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc/loopback"
)

// Commands whose processes are looked for in a machine.
const (
	kubeletCommand = "kubelet"
	initCommand    = "systemd"
)

// kubeletTimers are lines for the configuration of all kubelets; none for stock timers.
func kubeletTimers(t cloud.Timers) string {
	if t == cloud.StockTimers() {
		return ""
	}
	// A period that is given makes the one of reports the same, unless that is given too; this one is stock.
	return fmt.Sprintf("nodeLeaseDurationSeconds: %d\nnodeStatusUpdateFrequency: %s\nnodeStatusReportFrequency: 5m0s\n",
		int(t.Lease/time.Second), t.StatusPeriod)
}

// kubeadmFlags give the control plane the timers of a scenario; none for stock timers.
func kubeadmFlags(t cloud.Timers) []v1alpha4.PatchJSON6902 {
	var patch strings.Builder
	for part, flags := range map[string][]string{
		"apiServer": t.APIServerFlags(), "controllerManager": t.ControllerManagerFlags(),
	} {
		for _, f := range flags {
			name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
			fmt.Fprintf(&patch, "- {op: add, path: /%s/extraArgs/-, value: {name: %s, value: %q}}\n", part, name, value)
		}
	}
	if patch.Len() == 0 {
		return nil
	}
	return []v1alpha4.PatchJSON6902{
		{Group: "kubeadm.k8s.io", Version: "v1beta4", Kind: "ClusterConfiguration", Patch: patch.String()},
	}
}

// machine implements ground: the kubelet of a worker, and the worker itself, which has the containers.
func (s *kindSite) machine(_ context.Context, _ *localPool, _ int, name, _ string) error {
	m := s.byNode[name]
	if m == nil {
		return fmt.Errorf("there is no machine for node %q", name)
	}
	s.addPart(ContainersOf(name), &kindPart{
		prober: inside{m, "systemctl is-active --quiet containerd"}, life: machineLife{m}, machine: m,
		name: "machine of " + name, command: initCommand,
	})
	s.addPart(KubeletOf(name), &kindPart{
		prober: inside{m, "curl -sf -m 1 http://127.0.0.1:10248/healthz"}, life: kubeletLife{m}, machine: m,
		name: "kubelet of " + name, command: kubeletCommand,
	})
	return nil
}

// goesWithCluster reports whether a part is no more than a piece of the cluster, which ends it.
func (p *kindPart) goesWithCluster() bool {
	return p.command == kubeletCommand || p.command == initCommand
}

// atCloud reports whether a machine has no link before it: the control plane's, and those of pools without one.
func (m *machine) atCloud() bool { return m.pool.Name == "" || m.pool.Unlinked }

// addKindManager runs weir-manager on this machine: it needs nothing of the cluster but the API.
func (s *kindSite) addKindManager(ctx context.Context) error {
	block, err := loopback.Reserve(ctx)
	if err != nil {
		return err
	}
	s.blocks = append(s.blocks, block)
	return s.addManager(ctx)
}

// machineLife is a whole worker. It runs from the start.
type machineLife struct{ *machine }

func (l machineLife) begin(ctx context.Context) error {
	on, err := l.Running(ctx)
	if err != nil || on {
		return err
	}
	return l.Container.Start(ctx)
}

func (l machineLife) end(ctx context.Context) error { return l.Container.Stop(ctx) }

func (machineLife) wipe(context.Context) error {
	return errors.New("a node of kind without its disk would have to join again")
}

// kubeletLife is the unit of a kubelet, which runs from the start, and starts with its machine.
type kubeletLife struct{ *machine }

func (l kubeletLife) begin(ctx context.Context) error {
	_, err := l.Exec(ctx, "systemctl", "start", kubeletCommand)
	return err
}

func (l kubeletLife) end(ctx context.Context) error {
	_, err := l.Exec(ctx, "systemctl", "stop", kubeletCommand)
	return err
}

func (l kubeletLife) wipe(ctx context.Context) error { return machineLife(l).wipe(ctx) }

// crash also keeps systemd from starting it again, which would be a second later.
func (l kubeletLife) crash(ctx context.Context) error {
	on, err := l.Running(ctx)
	if err != nil || !on {
		return err
	}
	_, err = l.Exec(ctx, "sh", "-c", "systemctl kill --signal=KILL kubelet; systemctl stop kubelet")
	return err
}

// inside asks a part by a command in its machine.
type inside struct {
	*machine
	command string
}

// insideTries are how often the command is tried by one call from here, which costs more than the command.
const insideTries = 50

func (i inside) Healthy(ctx context.Context) error {
	_, err := i.Exec(ctx, "sh", "-c", fmt.Sprintf("for i in $(seq %d); do %s && exit; sleep 0.1; done; %[2]s", insideTries,
		i.command))
	return err
}

func (i inside) Status(context.Context, any) error {
	return fmt.Errorf("status on %s: it has none", i.node)
}

func (i inside) Metrics(context.Context) (parts.Metrics, error) {
	return nil, fmt.Errorf("metrics on %s: they are not read", i.node)
}
