package gate

import (
	"context"
	"io"
	"log/slog"

	"k8s.io/klog/v2"

	"github.com/weir-edge/weir/impl/cli"
)

// Run is the command weir-gate, for cli.Main.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c Config
	flags := cli.NewFlags("weir-gate", "the relay beside kube-apiserver: pools read there as differences what they share")
	c.bind(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	logger, err := flags.Logger(stderr)
	if err != nil {
		return err
	}
	c.Logger = logger
	klog.SetSlogLogger(slog.New(cli.Quieter(logger.Handler())).With("component", "apiserver"))
	g, err := New(c)
	if err != nil {
		return err
	}
	logger.Info("starting", "version", cli.Version(), "address", g.Addr().String(), "server", g.set.rest.Host)
	return g.Run(ctx)
}
