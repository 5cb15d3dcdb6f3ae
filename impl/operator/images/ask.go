package images

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/images"
)

// names reads the arguments of a command.
func names(args []string) (all []images.Name, err error) {
	for _, text := range args {
		n, err := images.ParseName(text)
		if err != nil {
			return nil, cli.Usage("IMAGE", text, "[HOST[:PORT]/]NAME[:TAG][@sha256:…]; "+err.Error())
		}
		all = append(all, n)
	}
	return all, nil
}

// read looks at the Nodes and Pools of a cluster.
func read(ctx context.Context, flags commands.ClusterFlags, pool string) (*commands.Cluster, *commands.View, error) {
	c, err := flags.Cluster()
	if err != nil {
		return nil, nil, err
	}
	v := c.Read(ctx)
	for _, kind := range []string{commands.Nodes, commands.NodePools, commands.Pools} {
		if err := v.Failed[kind]; err != nil {
			return nil, nil, fmt.Errorf("read %s: %s", kind, strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	return c, v, known(v, pool)
}

// known reports that there is no such pool.
func known(v *commands.View, pool string) error {
	if all := v.PoolNames(); pool != "" && !slices.Contains(all, pool) {
		return cli.Usage("--pool", pool, "the name of a pool: "+strings.Join(all, ", "))
	}
	return nil
}
