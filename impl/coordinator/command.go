package coordinator

import (
	"context"
	"io"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/memory"
)

// Run is the command weir-coordinator, for cli.Main.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c Config
	flags := cli.NewFlags("weir-coordinator", "the Kubernetes API of an edge pool")
	c.bind(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	logger, err := flags.Logger(stderr)
	if err != nil {
		return err
	}
	c.Logger = logger
	klog.SetSlogLogger(slog.New(quieter{logger.Handler()}).With("component", "apiserver"))
	co, err := New(c)
	if err != nil {
		return err
	}
	logger.Info("starting", "version", cli.Version(), "pool", c.NodePoolName, "address", co.Addr().String(), "dataDir", c.DataDir)
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	g.Go(func() error { return memory.Headroom{}.Keep(ctx) })
	g.Go(func() error {
		defer stop()
		return co.Run(ctx)
	})
	return g.Wait()
}

// quieter turns what libraries call information into detail.
type quieter struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h quieter) Enabled(ctx context.Context, l slog.Level) bool {
	return h.Handler.Enabled(ctx, lower(l))
}

// Handle implements slog.Handler.
func (h quieter) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h quieter) WithAttrs(a []slog.Attr) slog.Handler { return quieter{h.Handler.WithAttrs(a)} }

// WithGroup implements slog.Handler.
func (h quieter) WithGroup(name string) slog.Handler { return quieter{h.Handler.WithGroup(name)} }

func lower(l slog.Level) slog.Level {
	if l < slog.LevelWarn {
		return min(l, slog.LevelDebug)
	}
	return l
}
