package bench

import (
	"context"
	"fmt"
)

// listBytes is how many bytes one round of lists reads from one server.
const listBytes = 600e6

// listCPU is the server's CPU seconds per GB of complete protobuf lists, until so many bytes were read.
func listCPU(ctx context.Context, t target, perRound int64) (float64, error) {
	c := t.client()
	defer c.CloseIdleConnections()
	if _, err := t.discard(ctx, c, slicesPath+"?resourceVersion=0"); err != nil {
		return 0, err
	}
	var total int64
	used, err := t.cpu(func() error {
		for total < perRound {
			n, err := t.discard(ctx, c, slicesPath+"?resourceVersion=0")
			if err != nil {
				return err
			}
			if n == 0 {
				return fmt.Errorf("%s: an empty list", t.name)
			}
			total += n
		}
		return nil
	})
	return used.Seconds() / (float64(total) / 1e9), err
}

func listing(perRound int64) func(context.Context, target) (float64, error) {
	return func(ctx context.Context, t target) (float64, error) { return listCPU(ctx, t, perRound) }
}
