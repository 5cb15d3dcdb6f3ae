package card

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
)

// tick is how often is looked whether something has happened.
const tick = 20 * time.Millisecond

func (b *bench) until(ctx context.Context, ok func() (bool, string)) error {
	return runner.Until(ctx, tick, patience, b.Progress, ok)
}

// together does something to all sides at once.
func (b *bench) together(ctx context.Context, do func(context.Context, int, *side) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, s := range b.sides {
		g.Go(func() error {
			if err := do(ctx, i, s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// poolStatus is what coordinators and hubs say of themselves, as far as it is read here.
type poolStatus struct {
	Leader    string `json:"leader"`
	Ready     bool   `json:"ready"`
	Resources []struct {
		Synced  bool   `json:"synced"`
		Ready   bool   `json:"ready"`
		Version uint64 `json:"version"`
	} `json:"resources"`
}

func (b *bench) status(ctx context.Context, id runtime.PartID) (s poolStatus, err error) {
	part, err := b.site.Part(id)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return s, part.Status(ctx, &s)
}

// ready reports whether all caches of a pool hold everything up to a version, fresh, under a leader that is not the one
// given.
func (b *bench) ready(ctx context.Context, s *side, not string, version uint64) (bool, string) {
	for _, id := range append([]runtime.PartID{runtime.CoordinatorOf(s.name)}, s.hubs...) {
		st, err := b.status(ctx, id)
		if err != nil || len(st.Resources) == 0 {
			return false, fmt.Sprintf("waiting for %s: %v", id, err)
		}
		coordinator := id.Kind() == "coordinator"
		if coordinator && (!st.Ready || st.Leader == "" || st.Leader == not) {
			return false, fmt.Sprintf("waiting for a leader of %s", s.name)
		}
		newest := uint64(0)
		for _, r := range st.Resources {
			if !r.Synced || coordinator && !r.Ready {
				return false, fmt.Sprintf("waiting for the cache of %s", id)
			}
			newest = max(newest, r.Version)
		}
		if newest < version {
			return false, fmt.Sprintf("waiting for version %d at %s", version, id)
		}
	}
	return true, ""
}

// change writes the next change of an object and returns its version.
func (b *bench) change(ctx context.Context) (version uint64, err error) {
	b.next++
	o, err := b.admin.DiscoveryV1().EndpointSlices(namespace).Update(ctx, slice(b.next%services, b.next),
		metav1.UpdateOptions{})
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(o.ResourceVersion, &version)
	return version, err
}

// settled writes a change and waits until all pools hold it.
func (b *bench) settled(ctx context.Context) error {
	version, err := b.change(ctx)
	if err != nil {
		return err
	}
	return b.together(ctx, func(ctx context.Context, _ int, s *side) error {
		return b.until(ctx, func() (bool, string) { return b.ready(ctx, s, "", version) })
	})
}

func (b *bench) parts(s *side) []runtime.PartID {
	return append([]runtime.PartID{runtime.CoordinatorOf(s.name)}, s.hubs...)
}

func (b *bench) each(ids []runtime.PartID, do func(runtime.Part) error) error {
	var g errgroup.Group
	for _, id := range ids {
		part, err := b.site.Part(id)
		if err != nil {
			return err
		}
		g.Go(func() error { return do(part) })
	}
	return g.Wait()
}

// start starts all pools at once, with empty disks.
func (b *bench) start(ctx context.Context) error {
	for n := range b.Starts {
		began := time.Now()
		err := b.together(ctx, func(ctx context.Context, i int, s *side) error {
			ids := b.parts(s)
			if n > 0 {
				if err := b.each(ids, func(p runtime.Part) error { return p.Stop(ctx) }); err != nil {
					return err
				}
				if err := b.each(ids, runtime.Part.LoseDisk); err != nil {
					return err
				}
			}
			up := b.site.Link(s.name)
			before := crossed(up, runtime.ClassPool, "")
			began := time.Now()
			if err := runtime.Start(ctx, b.site, ids...); err != nil {
				return err
			}
			if err := b.until(ctx, func() (bool, string) { return b.ready(ctx, s, "", 0) }); err != nil {
				return err
			}
			b.book.mu.Lock()
			defer b.book.mu.Unlock()
			b.book.add(meaning{"start", "until all caches are ready, empty disks", "s", change.Time}, i, roundOf(n),
				time.Since(began).Seconds())
			b.book.add(meaning{"start", "bytes of class pool until then", "B", change.Bytes}, i, 0,
				crossed(up, runtime.ClassPool, "")-before)
			return nil
		})
		if err != nil {
			return err
		}
		b.Progress(fmt.Sprintf("card: start %d of %d in %v", n+1, b.Starts, time.Since(began).Round(time.Millisecond)))
	}
	return b.connect(ctx)
}

// memory reads what hubs and coordinators have when their garbage has settled.
func (b *bench) memory(ctx context.Context) error {
	least := map[runtime.PartID]float64{}
	for range 10 {
		for _, s := range b.sides {
			for _, id := range b.parts(s) {
				part, err := b.site.Part(id)
				if err != nil {
					return err
				}
				u, err := part.Usage()
				if err != nil {
					return err
				}
				if v := float64(u.RSSAnon); least[id] == 0 || v < least[id] {
					least[id] = v
				}
			}
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	for i, s := range b.sides {
		for _, id := range b.parts(s) {
			b.book.add(meaning{"memory", "RssAnon of a " + id.Kind(), "B", change.Memory}, i, 0, least[id])
		}
	}
	return nil
}

// changes counts what a series of changes costs.
func (b *bench) changes(ctx context.Context) error {
	for range 3 {
		if err := b.settled(ctx); err != nil {
			return err
		}
		var before [3]float64
		for i, s := range b.sides {
			before[i] = crossed(b.site.Link(s.name), runtime.ClassPool, "")
		}
		for range b.Changes / 3 {
			if _, err := b.change(ctx); err != nil {
				return err
			}
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
		if err := b.settled(ctx); err != nil {
			return err
		}
		for i, s := range b.sides {
			name := fmt.Sprintf("bytes of class pool for %d changes", b.Changes/3)
			b.book.add(meaning{
				"changes", name, "B", change.Bytes,
			}, i, 0, crossed(b.site.Link(s.name), runtime.ClassPool, "")-before[i])
		}
	}
	return nil
}

// scrape reads a part's metrics.
func scrape(ctx context.Context, p runtime.Part) (parts.Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return p.Metrics(ctx)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
