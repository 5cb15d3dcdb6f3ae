package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/proc"
)

func assets(fs *pflag.FlagSet) commands.Run {
	all := fs.Bool("all", false,
		"also what scenarios about lost nodes need: kube-controller-manager, kube-scheduler and, where the version has "+
			"them, kubelet and hollow-node")
	version := fs.String("kubernetes", "", kubernetesHelp())
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) (err error) {
		k, err := cloud.Choose(*version)
		if err != nil {
			return err
		}
		s, err := proc.New()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		names := []string{cloud.KubeAPIServer, cloud.Kubectl}
		if *all {
			names = append(names, cloud.KubeControllerManager, cloud.KubeScheduler, cloud.Kubelet, cloud.HollowNode)
			names = slices.DeleteFunc(names, k.Lacks)
		}
		found, err := k.Find(ctx, s, func(m string) { fmt.Fprintln(stderr, m) }, names...)
		if err != nil {
			return err
		}
		for _, name := range names {
			fmt.Fprintln(stdout, name, found[name])
		}
		return nil
	}
}

// kubernetesHelp is of the flag that chooses the version of the control plane.
func kubernetesHelp() string {
	return fmt.Sprintf("version of Kubernetes: %s; default: that of %s, else %s", strings.Join(cloud.Versions(), " or "),
		cloud.VersionEnv, cloud.Version)
}
