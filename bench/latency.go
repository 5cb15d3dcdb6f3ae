package bench

import (
	"context"
	"slices"
	"time"
)

// gets is how many proxied gets one round times on each side.
const gets = 1000

// latencies times gets of a small object through a hub and straight, alternately, so that noise meets both.
func latencies(ctx context.Context, hub, cloud target, path string) (viaHub, straight []time.Duration, err error) {
	h, c := hub.client(), cloud.client()
	defer h.CloseIdleConnections()
	defer c.CloseIdleConnections()
	for i := range gets + 20 {
		for side, t := range []target{hub, cloud} {
			client := h
			if side == 1 {
				client = c
			}
			began := time.Now()
			if _, err := t.discard(ctx, client, path); err != nil {
				return nil, nil, err
			}
			if took := time.Since(began); i >= 20 { // connections are warm
				if side == 0 {
					viaHub = append(viaHub, took)
				} else {
					straight = append(straight, took)
				}
			}
		}
	}
	return viaHub, straight, nil
}

// quantile of durations; it sorts them.
func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}

func median(v []float64) float64 { return Figure{Samples: v}.Got() }
