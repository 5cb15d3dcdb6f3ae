package manager

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/manager/manifests"
)

// Run is the command weir-manager, for cli.Main.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c Config
	var printManifests, mayGo, goes bool
	flags := cli.NewFlags("weir-manager", "tells nodes that are cut off from the cloud from nodes that are dead")
	c.bind(flags)
	flags.BoolVar(&printManifests, "print-manifests", false,
		"print what the cluster needs, for kubectl apply --server-side -f -, and exit")
	flags.BoolVar(&mayGo, "may-be-uninstalled", false,
		"report whether Weir may be removed: not while nodes are in pools; and exit")
	flags.BoolVar(&goes, "remove-what-it-made", false,
		"remove what weir-manager made in the cluster while it ran, after it was taken off; and exit")
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
	if mayGo || goes {
		return c.remove(ctx, mayGo, goes)
	}
	m, err := New(c)
	if err != nil {
		return err
	}
	logger.Info("starting", "version", cli.Version(), "server", m.set.rest.Host, "grace", c.NodeMonitorGracePeriod,
		"whenSilent", c.WhenSilent)
	return m.Run(ctx)
}

// remove checks or removes, see removal.go, with the identity of anyone who takes Weir off.
func (c Config) remove(ctx context.Context, mayGo, goes bool) error {
	if mayGo && goes {
		return cli.Usage("--remove-what-it-made", true,
			"not with --may-be-uninstalled: the one is asked before, the other after")
	}
	set, err := c.check()
	if err != nil {
		return err
	}
	if err := set.connect(); err != nil {
		return err
	}
	api, err := client.New(set.rest, client.Options{})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", set.rest.Host, err)
	}
	if goes {
		return removeMade(ctx, api)
	}
	return checkRemovable(ctx, api)
}
