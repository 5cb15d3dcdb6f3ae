package manager

import (
	"context"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/manager/manifests"
)

// Run is the command weir-manager, for cli.Main.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c Config
	var printManifests bool
	flags := cli.NewFlags("weir-manager", "tells nodes that are cut off from the cloud from nodes that are dead")
	c.bind(flags)
	flags.BoolVar(&printManifests, "print-manifests", false, "print what the cluster needs, for kubectl apply --server-side -f -, and exit")
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	if printManifests {
		_, err := io.WriteString(stdout, manifests.All())
		return err
	}
	logger, err := flags.Logger(stderr)
	if err != nil {
		return err
	}
	c.Logger = logger
	library := slog.New(cli.Quieter(logger.Handler()))
	klog.SetSlogLogger(library.With("component", "client-go"))
	ctrllog.SetLogger(logr.FromSlogHandler(library.With("component", "controller-runtime").Handler()))
	m, err := New(c)
	if err != nil {
		return err
	}
	logger.Info("starting", "version", cli.Version(), "server", m.set.rest.Host, "grace", c.NodeMonitorGracePeriod, "whenSilent", c.WhenSilent)
	return m.Run(ctx)
}
