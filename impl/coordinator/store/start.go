package store

import (
	"context"
	"net/http"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
)

// start starts etcd in a goroutine of its own, because a failure ends the goroutine that meets it.
func start(ctx context.Context, c *embed.Config, f *failure, serve func(http.Handler)) (*embed.Etcd, error) {
	type result struct {
		etcd *embed.Etcd
		err  error
	}
	started := make(chan result, 1)
	go func() {
		e, err := embed.StartEtcd(c)
		started <- result{e, err}
	}()
	var r result
	select {
	case r = <-started:
	case err := <-f.c:
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	if serve != nil { // a majority needs it to be ready
		serve(etcdhttp.NewPeerHandler(r.etcd.GetLogger(), r.etcd.Server))
	}
	select {
	case <-r.etcd.Server.ReadyNotify():
		return r.etcd, nil
	case err := <-f.c:
		return nil, err
	case <-r.etcd.Server.StopNotify():
		return nil, errStopped
	case <-ctx.Done():
		r.etcd.Server.Stop() // Close waits for servers that wait for etcd to be ready, or stopped
		r.etcd.Close()
		return nil, context.Cause(ctx)
	}
}
