package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// gets is how many passed gets one round times at each target.
const gets = 1000

// latencies times gets of a small object at some targets, in turn, so that noise meets all of them.
func latencies(ctx context.Context, path string, targets ...target) ([][]time.Duration, error) {
	took := make([][]time.Duration, len(targets))
	asks := make([]func() (time.Duration, error), len(targets))
	for k, t := range targets {
		ask, done := t.asking(ctx, path)
		defer done()
		asks[k] = ask
	}
	for i := range gets + warm {
		for k, ask := range asks {
			d, err := ask()
			if err != nil {
				return nil, err
			}
			if i >= warm {
				took[k] = append(took[k], d)
			}
		}
	}
	return took, nil
}

// warm is how many gets a connection has carried before it is measured.
const warm = 20

// asking is a get over a connection of its own, which tells how long it took. done closes the connection.
func (t target) asking(ctx context.Context, path string) (ask func() (time.Duration, error), done func()) {
	c := t.client()
	return func() (time.Duration, error) {
		began := time.Now()
		_, err := t.discard(ctx, c, path)
		return time.Since(began), err
	}, c.CloseIdleConnections
}

// getCPU is the CPU time of a target's process for a get, in ms. All that the process does meanwhile counts.
func getCPU(ctx context.Context, t target, path string) (float64, error) {
	ask, done := t.asking(ctx, path)
	defer done()
	repeat := func(n int) error {
		for range n {
			if _, err := ask(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := repeat(warm); err != nil {
		return 0, err
	}
	used, err := t.cpu(func() error { return repeat(gets) })
	return used.Seconds() * 1e3 / gets, err
}

// passed measures what a hub takes of a get that it passes to the cloud, beside a process that does nothing but pass.
func (r *run) passed(ctx context.Context) (err error) {
	bare, stop, err := r.bareProxy(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	got, err := r.compare(ctx, "CPU of a passed get", func(ctx context.Context, t target) (float64, error) {
		return getCPU(ctx, t, r.nodePath)
	}, r.hub, bare)
	if err != nil {
		return err
	}
	detail := fmt.Sprintf("%d gets a round, one after the other", gets)
	r.add(Figure{
		Name: "CPU of a hub for a get that it passes", Unit: "ms", Samples: got[0], Limit: passedCPU, Detail: detail,
	})
	r.add(Figure{Name: "CPU of a bare httputil.ReverseProxy for the same", Unit: "ms", Samples: got[1], Detail: detail})
	detail = fmt.Sprintf("%d gets a round, in turn with the others", gets)
	added := map[string][]float64{}
	for i := range r.Rounds {
		r.Progress(fmt.Sprintf("latency: round %d of %d", i+1, r.Rounds))
		took, err := latencies(ctx, r.nodePath, r.cloud, r.hub, bare)
		if err != nil {
			return err
		}
		for _, q := range quantiles {
			of := func(k int) float64 { return quantile(took[k], q.q).Seconds() * 1e3 }
			added["hub"+q.name] = append(added["hub"+q.name], of(1)-of(0))
			added["bare"+q.name] = append(added["bare"+q.name], of(2)-of(0))
			added["beyond"+q.name] = append(added["beyond"+q.name], of(1)-of(2))
		}
	}
	for _, q := range quantiles {
		r.add(Figure{Name: "latency a hub adds to a get, " + q.name, Unit: "ms", Samples: added["hub"+q.name],
			Limit: q.limit, Detail: detail})
		r.add(Figure{Name: "latency a bare httputil.ReverseProxy adds to it, " + q.name, Unit: "ms",
			Samples: added["bare"+q.name], Detail: detail})
		r.add(Figure{Name: "latency a hub adds beyond a bare httputil.ReverseProxy, " + q.name, Unit: "ms",
			Samples: added["beyond"+q.name], Limit: q.limit, Detail: detail})
	}
	return nil
}

var quantiles = []struct {
	name  string
	q     float64
	limit *Limit
}{{"p50", 0.5, latencyP50}, {"p99", 0.99, latencyP99}}

// quantile of durations; it sorts them.
func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}

func median(v []float64) float64 { return Figure{Samples: v}.Got() }
