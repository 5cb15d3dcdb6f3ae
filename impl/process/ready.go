package process

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// ServeReady says that a server is ready as soon as it answers 200 at a URL, and that it stops when ctx ends, for which
// it waits. Services that come after it wait for the first. Just before it keep is called, which may tell systemd more.
func ServeReady(ctx context.Context, url string, keep func() error, logger *slog.Logger) error {
	if !Wanted() {
		return nil
	}
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	try := time.NewTicker(20 * time.Millisecond)
	defer try.Stop()
	for !answers(ctx, client, url) {
		select {
		case <-try.C:
		case <-ctx.Done():
			return nil
		}
	}
	if err := keep(); err != nil {
		logger.Warn("systemd does not keep the sockets of this service: calls are refused when it restarts", "err", err)
	}
	if err := Tell(Ready); err != nil {
		logger.Warn("systemd does not hear that this service is ready", "err", err)
	}
	<-ctx.Done()
	_ = Tell(Stopping)
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
