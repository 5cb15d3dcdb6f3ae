package hub

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/memory"
	"github.com/weir-edge/weir/impl/sdnotify"
)

// Run is the command weir-hub, for cli.Main.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c Config
	flags := cli.NewFlags("weir-hub", "the one door of an edge node to the Kubernetes API")
	c.bind(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	logger, err := flags.Logger(stderr)
	if err != nil {
		return err
	}
	c.Logger, c.Credentials = logger, os.Getenv("CREDENTIALS_DIRECTORY")
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
	g.Go(func() error { return tellSystemd(ctx, h.HealthAddr(), logger) })
	g.Go(func() error { return memory.Headroom{Min: 3 << 20}.Keep(serving) }) // a hub that serves little has little
	return g.Wait()
}

// tellSystemd says that the hub is ready as soon as it answers, with or without a cloud: the kubelet of the node waits for it. It says so again when the hub stops.
func tellSystemd(ctx context.Context, health net.Addr, logger *slog.Logger) error {
	if !sdnotify.Wanted() {
		return nil
	}
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	try := time.NewTicker(20 * time.Millisecond)
	defer try.Stop()
	for !answers(ctx, client, "http://"+health.String()+"/healthz") {
		select {
		case <-try.C:
		case <-ctx.Done():
			return nil
		}
	}
	if err := sdnotify.Tell(sdnotify.Ready); err != nil {
		logger.Warn("systemd does not hear that the hub is ready", "err", err)
	}
	<-ctx.Done()
	_ = sdnotify.Tell(sdnotify.Stopping)
	return nil
}

func answers(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	answer, err := client.Do(req)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
