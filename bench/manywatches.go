package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/runtime"
)

const (
	manyWatches  = 400 // of one account, half of them of what a relay holds
	othersAsk    = 1000
	watchesEvery = time.Second // a change, while they are open
)

// ManyWatches measures what 400 watches of one account cost a hub, and everybody else on its node.
func ManyWatches(ctx context.Context, rounds int, progress func(string)) (_ []Figure, err error) {
	r := &run{Config: Config{Rounds: rounds, Progress: progress}.withDefaults(), fillHub: 100, fillAll: 100}
	// with the limits that hubs have.
	topology := runtime.Topology{Pools: []runtime.Pool{{
		Name: pool, Nodes: 1, Mode: runtime.Weir, Unlinked: true, Unread: true,
	}}}
	if r.site, err = (&runtime.Local{}).Up(ctx, topology, r.Progress); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.site.Down(context.WithoutCancel(ctx))) }()
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	if err := fill(ctx, r.client, 0, r.fillHub, r.Progress); err != nil {
		return nil, err
	}
	if err := r.synced(ctx); err != nil {
		return nil, err
	}
	other := r.hub
	if other.token, err = r.site.Token(ctx, "coredns"); err != nil {
		return nil, err
	}
	before, _, err := memory(ctx, r.hubPart, 5*time.Second)
	if err != nil {
		return nil, err
	}
	var ratios, quietTimes, busyTimes, held []float64
	for i := range r.Rounds {
		r.Progress(fmt.Sprintf("%d watches of one account: round %d of %d", manyWatches, i+1, r.Rounds))
		quiet, err := asked(ctx, other)
		if err != nil {
			return nil, err
		}
		var busy []time.Duration
		if err := r.beside(ctx, func() (err error) {
			anon, _, err := memory(ctx, r.hubPart, 3*time.Second)
			if err != nil {
				return err
			}
			held = append(held, anon/mb)
			busy, err = asked(ctx, other)
			return err
		}); err != nil {
			return nil, err
		}
		q, b := quantile(quiet, 0.99).Seconds()*1e3, quantile(busy, 0.99).Seconds()*1e3
		ratios, quietTimes, busyTimes = append(ratios, b/q), append(quietTimes, q), append(busyTimes, b)
	}
	kinds := fmt.Sprintf("%d of a relay, %d of the cloud, one account, a change a second", manyWatches/2, manyWatches/2)
	r.add(Figure{
		Name: fmt.Sprintf("p99 of another account's reads beside %d watches ÷ the same without", manyWatches), Unit: "ratio",
		Samples: ratios, Limit: besideWatches,
		Detail: fmt.Sprintf("%.3g ÷ %.3g ms, %d reads a round; %s", median(busyTimes), median(quietTimes), othersAsk, kinds),
	})
	r.add(Figure{
		Name: fmt.Sprintf("hub memory with %d watches, RssAnon", manyWatches), Unit: "MB", Samples: held, Limit: hubWatched,
		Detail: fmt.Sprintf("%.1f MB before; %s", before/mb, kinds),
	})
	return r.figures, nil
}

// beside does something while all watches are open and something changes.
func (r *run) beside(ctx context.Context, do func() error) (err error) {
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	ended := make(chan error, manyWatches+1)
	c := r.hub.client() // as a controller: it opens connections as it needs them
	defer c.CloseIdleConnections()
	for i := range manyWatches {
		path := []string{slicesPath, "/api/v1/services"}[i%2] + "?watch=1&resourceVersion=0"
		body, err := r.opened(watching, c, path)
		if err != nil {
			return fmt.Errorf("watch %d of %d: %w", i+1, manyWatches, err)
		}
		wg.Go(func() {
			_, err := io.Copy(io.Discard, body)
			if err = errors.Join(err, body.Close()); watching.Err() == nil {
				ended <- fmt.Errorf("a watch ended: %w", err)
			}
		})
	}
	change := changer(r.client, r.fillHub)
	wg.Go(func() {
		for watching.Err() == nil {
			if err := change(watching, 1, watchesEvery); watching.Err() == nil && err != nil {
				ended <- err
			}
		}
	})
	if err := do(); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	default:
		return nil
	}
}

// opened opens a watch. A hub that is asked too often says when to come again, and controllers do.
func (r *run) opened(ctx context.Context, c *http.Client, path string) (io.ReadCloser, error) {
	for {
		body, err := r.hub.get(ctx, c, path)
		var refused *statusError
		if !errors.As(err, &refused) || refused.code != http.StatusTooManyRequests || refused.again <= 0 {
			return body, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(refused.again):
		}
	}
}

// asked times reads of what the hub's relay holds.
func asked(ctx context.Context, t target) (took []time.Duration, err error) {
	c := t.client()
	defer c.CloseIdleConnections()
	for i := range othersAsk + 20 {
		began := time.Now()
		if _, err := t.discard(ctx, c, slicesPath+"?limit=1"); err != nil {
			return nil, err
		}
		if i >= 20 { // connections are warm
			took = append(took, time.Since(began))
		}
	}
	return took, nil
}
