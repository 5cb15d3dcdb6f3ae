package coordinator

import (
	"context"
	"io"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/process"
)

// Run is the command weir-coordinator, for cli.Main.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c Config
	flags := cli.NewFlags("weir-coordinator", "the Kubernetes API of an edge pool")
	c.bind(flags)
	former(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	logger, err := flags.Logger(stderr)
	if err != nil {
		return err
	}
	c.Logger = logger
	klog.SetSlogLogger(slog.New(cli.Quieter(logger.Handler())).With("component", "apiserver"))
	if err := c.awaitCertificates(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	co, err := New(c)
	if err != nil {
		return err
	}
	logger.Info("starting", "version", cli.Version(), "pool", c.NodePoolName, "address", co.Addr().String(),
		"dataDir", c.DataDir)
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	g.Go(func() error { return process.Headroom{Min: 2 << 20}.Keep(ctx) }) // a coordinator that holds little has little
	g.Go(func() error {
		defer stop()
		return co.Run(ctx)
	})
	return g.Wait()
}
