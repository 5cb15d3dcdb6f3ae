package operator

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
)

func poolList(fs *pflag.FlagSet) commands.Run {
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		v, err := readPools(ctx, flags)
		if err != nil {
			return err
		}
		for _, name := range v.PoolNames() {
			fmt.Fprintln(stdout, name)
		}
		return nil
	}
}

// readPools looks at the cluster. It is an error if what pools are made of cannot be read, or more of what is needed.
func readPools(ctx context.Context, flags commands.ClusterFlags, more ...string) (*commands.View, error) {
	cluster, err := flags.Cluster()
	if err != nil {
		return nil, err
	}
	return lookAtPools(ctx, cluster, more...)
}

// lookAtPools is readPools of a cluster that is known.
func lookAtPools(ctx context.Context, cluster *commands.Cluster, more ...string) (*commands.View, error) {
	v := cluster.Read(ctx)
	for _, kind := range append([]string{commands.Nodes, commands.NodePools, commands.Pools, commands.Leases}, more...) {
		if err := v.Failed[kind]; err != nil {
			return nil, fmt.Errorf("read %s: %s", kind, strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	return v, nil
}

func poolDescribe(fs *pflag.FlagSet) commands.Run {
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		v, err := readPools(ctx, flags)
		if err != nil {
			return err
		}
		name := args[0]
		page := pageOf(v, name)
		if len(page.Pools) == 0 {
			return cli.Usage("NAME", name, "the name of a pool: "+strings.Join(v.PoolNames(), ", "))
		}
		if err := page.Write(stdout, "wide", v.Now); err != nil {
			return err
		}
		if n := v.NodePool(name); n != nil {
			conditions(stdout, "NodePool", n.Status.Conditions)
		}
		if p := v.Pool(name); p != nil {
			conditions(stdout, "Pool", p.Status.Conditions)
		}
		return nil
	}
}

func conditions(w io.Writer, kind string, all []metav1.Condition) {
	fmt.Fprintf(w, "\n%s\n", kind)
	for _, c := range all {
		fmt.Fprintf(w, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, strings.Join(strings.Fields(c.Message), " "))
	}
}
