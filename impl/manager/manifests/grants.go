package manifests

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LookEvery is how often it is looked whether something may be read now.
const LookEvery = 10 * time.Second

// Granted waits until check finds nothing that lacks. It tells once what waits and for what. False: the context ended
// before.
func Granted(ctx context.Context, c clock.WithTicker, log *slog.Logger, what string,
	check func(context.Context) error) bool {
	tick := c.NewTicker(LookEvery)
	defer tick.Stop()
	for told := false; ; told = true {
		err := check(ctx)
		if err == nil {
			return true
		}
		if !told && ctx.Err() == nil {
			log.Error("something waits for its grants: apply the output of weir-manager --print-manifests", "what", what,
				"err", err)
		}
		select {
		case <-tick.C():
		case <-ctx.Done():
			return false
		}
	}
}

// Listed is a check that a kind may be listed.
func Listed(r client.Reader, all client.ObjectList, options ...client.ListOption) func(context.Context) error {
	return func(ctx context.Context) error { return r.List(ctx, all, append(options, client.Limit(1))...) }
}
