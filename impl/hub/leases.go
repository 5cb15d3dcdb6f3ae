package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

const (
	firstLeasesRetry = 200 * time.Millisecond
	maxLeasesRetry   = 5 * time.Second
	maxLeaseEvent    = 1 << 20 // of one event; a Lease is some hundred bytes
)

// leaseEvent is a Lease of the pool as a watch shows it.
type leaseEvent struct {
	name   string
	record role.Record
}

// leases watches the pool's Leases, so that a change of the leader is seen at once. The machine's own reads go on beside it, so
// nothing depends on it but speed.
type leases struct {
	coordinator *coordinator
	events      chan<- leaseEvent
	broke       func() // told when a watch broke: the coordinator may be away
	clock       clock.WithTicker
	logger      *slog.Logger
}

func (l *leases) run(ctx context.Context) error {
	for wait := firstLeasesRetry; ctx.Err() == nil; wait = min(max(2*wait, firstLeasesRetry), maxLeasesRetry) {
		began, used := l.clock.Now(), l.coordinator.inUse()
		err := l.coordinator.watchLeases(ctx, func(e leaseEvent) {
			select {
			case l.events <- e:
			case <-ctx.Done():
			}
		})
		if l.clock.Since(began) > maxLeasesRetry { // a coordinator ends watches after half an hour or more
			wait = firstLeasesRetry
		}
		l.logger.Debug("the watch of the pool's leases ended", "err", err)
		if used.left.Err() != nil { // left for another one
			wait = 0
			continue
		}
		l.broke()
		_, resting, cancel := l.coordinator.with(ctx)
		sleep(resting, l.clock, wait)
		cancel()
	}
	return nil
}

// watchLeases tells of the pool's two Leases as they are and as they change, until the watch ends.
func (c *coordinator) watchLeases(ctx context.Context, take func(leaseEvent)) error {
	r, ctx, cancel := c.with(ctx)
	defer cancel()
	return r.watchLeases(ctx, leasesPath, "", func(kind string, l *coordinationv1.Lease) {
		e := leaseEvent{name: l.Name}
		if kind != "DELETED" {
			e.record = fromLease(l)
		}
		if e.name == contract.ElectionLease || e.name == contract.InformerSync {
			take(e)
		}
	})
}

// isName tells whether a name can be that of a Lease, so that a path has one element for it.
func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// watchLeases tells of changes of Leases until the watch ends.
func (r *replica) watchLeases(ctx context.Context, path, query string, take func(kind string, l *coordinationv1.Lease)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.JoinPath(path).String()+"?watch=1&"+query, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "application/json")
	resp, err := r.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("watch leases: %s", resp.Status)
	}
	bounded := &io.LimitedReader{R: resp.Body}
	frames := json.NewDecoder(bounded)
	for {
		bounded.N = maxLeaseEvent
		var ev struct {
			Type   string
			Object coordinationv1.Lease
		}
		if err := frames.Decode(&ev); err != nil {
			return fmt.Errorf("watch leases: %w", err)
		}
		switch ev.Type {
		case "ADDED", "MODIFIED", "DELETED":
			if !isName(ev.Object.Name) {
				continue // requests would name something else by it
			}
			take(ev.Type, &ev.Object)
		default:
			return errors.New("watch leases: " + ev.Type)
		}
	}
}
