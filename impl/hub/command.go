package hub

import (
	"context"
	"io"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/process"
)

// Run is the command weir-hub, for cli.Main.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	kept, untaken := process.TakeSockets()
	c := Default()
	flags := cli.NewFlags("weir-hub", "the one door of an edge node to the Kubernetes API")
	c.bind(flags)
	named := former(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	if err := named.check(c); err != nil {
		return err
	}
	logger, err := flags.Logger(stderr)
	if err != nil {
		return err
	}
	if untaken != nil {
		logger.Warn("not all is taken over from the hub before", "err", untaken)
	}
	c.Logger, c.Credentials, c.Net = logger, os.Getenv("CREDENTIALS_DIRECTORY"), door.System{Kept: kept}
	h, err := New(c)
	if err != nil {
		return err
	}
	logger.Info("starting", "version", cli.Version(), "node", c.NodeName, "pool", c.NodePoolName,
		"address", h.Addr().String(), "health", h.HealthAddr().String())
	g, ctx := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error {
		defer stop()
		return h.Run(ctx)
	})
	g.Go(func() error {
		return process.ServeReady(ctx, "http://"+h.HealthAddr().String()+"/healthz", kept.Keep, logger)
	})
	// a hub that serves little has little.
	g.Go(func() error { return process.Headroom{Min: 3 << 20, Scanned: 100}.Keep(serving) })
	return g.Wait()
}
