package card

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/runtime"
)

// kills kills the leaders of all pools at once, again and again, and counts what follows.
func (b *bench) kills(ctx context.Context) error {
	for n := range b.Kills {
		if err := b.settled(ctx); err != nil {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		from, err := b.logged()
		if err != nil {
			return err
		}
		err = b.together(ctx, func(ctx context.Context, i int, s *side) error { return b.kill(ctx, i, n, s) })
		if err != nil {
			return err
		}
		if err := b.settled(ctx); err != nil {
			return err
		}
		did, err := b.did(from)
		if err != nil {
			return err
		}
		for i, s := range b.sides {
			for _, what := range []string{lists + " of endpointslices", lists + " of endpoints", others, watches, reviews} {
				b.book.add(meaning{"leader change", what + " by hubs at kube-apiserver", "", change.Count}, i, 0, did[s.name][what])
			}
		}
		b.Progress(fmt.Sprintf("card: leader change %d of %d", n+1, b.Kills))
	}
	return nil
}

// kill is the n-th of a side.
func (b *bench) kill(ctx context.Context, i, n int, s *side) error {
	st, err := b.status(ctx, runtime.CoordinatorOf(s.name))
	if err != nil {
		return err
	}
	part, err := b.site.Part(runtime.HubOf(st.Leader))
	if err != nil {
		return err
	}
	before, err := b.coordinatorLists(ctx, s)
	if err != nil {
		return err
	}
	up := b.site.Link(s.name)
	bytes, began := crossed(up, runtime.ClassPool, ""), time.Now()
	if err := part.Kill(); err != nil {
		return err
	}
	if err := b.until(ctx, func() (bool, string) {
		now, err := b.status(ctx, runtime.CoordinatorOf(s.name))
		return err == nil && now.Ready && now.Leader != "" && now.Leader != st.Leader, "waiting for another leader of " +
			s.name
	}); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	if err := part.Start(ctx); err != nil {
		return err
	}
	if err := b.until(ctx, func() (bool, string) { return b.ready(ctx, s, st.Leader, 0) }); err != nil {
		return err
	}
	after, err := b.coordinatorLists(ctx, s)
	if err != nil {
		return err
	}
	b.book.mu.Lock()
	defer b.book.mu.Unlock()
	b.book.add(meaning{"leader change", "until another hub leads", "s", change.Time}, i, roundOf(n), took)
	b.book.add(meaning{"leader change", "lists at the coordinator", "", change.Count}, i, 0, after-before)
	b.book.add(meaning{"leader change", "bytes of class pool", "B", change.Bytes}, i, 0,
		crossed(up, runtime.ClassPool, "")-bytes)
	return nil
}

// coordinatorLists counts lists of pool-scope resources that were asked of a coordinator.
func (b *bench) coordinatorLists(ctx context.Context, s *side) (float64, error) {
	m, err := scrape(ctx, s.coord)
	if err != nil {
		return 0, err
	}
	return m.Sum("apiserver_request_total", `verb="LIST"`), nil
}

// grace kills the coordinators of all pools at once, for less than the grace period.
func (b *bench) grace(ctx context.Context) error {
	for n := range b.Graces {
		if err := b.settled(ctx); err != nil {
			return err
		}
		err := b.together(ctx, func(ctx context.Context, i int, s *side) error {
			began := time.Now()
			if err := s.coord.Kill(); err != nil {
				return err
			}
			if err := pause(ctx, 6*time.Second); err != nil {
				return err
			}
			if err := s.coord.Start(ctx); err != nil {
				return err
			}
			if err := b.until(ctx, func() (bool, string) { return b.ready(ctx, s, "", 0) }); err != nil {
				return err
			}
			b.book.mu.Lock()
			defer b.book.mu.Unlock()
			b.book.add(meaning{"grace", "new connections of class pool while the coordinator is away for 6 s", "", change.Count},
				i, 0, connections(b.site.Link(s.name), began))
			b.book.add(meaning{"grace", "from its loss until all caches are fresh", "s", change.Time}, i, roundOf(n),
				time.Since(began).Seconds())
			return nil
		})
		if err != nil {
			return err
		}
		b.Progress(fmt.Sprintf("card: loss of the coordinator %d of %d", n+1, b.Graces))
	}
	return nil
}
