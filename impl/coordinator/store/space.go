package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/process"
)

const (
	spaceLook    = 5 * time.Second // between two looks at it
	reclaimAgain = time.Minute     // between two reclaims, while etcd takes writes
	reclaimGrace = 2 * time.Minute // for one
)

// anyKey is one that is read for the revision that comes with the answer.
const anyKey = "/"

// room is an etcd with a quota, and what makes room in it.
type room struct {
	etcd     *embed.Etcd
	client   *clientv3.Client
	quota    int64 // bytes
	reclaims atomic.Int64
}

// Space is how full the database of this etcd is.
type Space struct {
	Bytes    int64 `json:"bytes"`          // of the file
	Used     int64 `json:"used"`           // of it, by what is not yet thrown away
	Quota    int64 `json:"quota"`          // from which on etcd takes no writes
	Full     bool  `json:"full,omitempty"` // it takes none, here or at another replica
	Reclaims int   `json:"reclaims"`       // how often history was thrown away since the start
}

// Space is how it is now.
func (s *room) Space() Space {
	b := s.etcd.Server.Backend()
	return Space{
		Bytes: b.Size(), Used: b.SizeInUse(), Quota: s.quota, Full: len(s.alarms()) > 0, Reclaims: int(s.reclaims.Load()),
	}
}

// alarms are those by which etcd takes no writes, of all members.
func (s *room) alarms() (full []*etcdserverpb.AlarmMember) {
	for _, a := range s.etcd.Server.Alarms() {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			full = append(full, a)
		}
	}
	return full
}

// Tend keeps room for writes until ctx ends: when half of the quota is in use it throws the history away, which nobody
// reads who is not minutes behind, and gives its space back. At the quota etcd takes no writes by itself until somebody
// says that there is room again: Tend does. told hears of each time; full: no writes were taken.
func (s *room) Tend(ctx context.Context, l *slog.Logger, told func(full bool)) error {
	var last time.Time
	for ctx.Err() == nil {
		before := s.Space()
		if before.Full || before.Bytes > s.quota/limit.ReclaimAt && time.Since(last) > reclaimAgain {
			last = time.Now()
			err := s.reclaim(ctx)
			after := s.Space()
			switch {
			case err != nil && ctx.Err() != nil: // it ends, and nothing is wrong
			case err != nil:
				l.Error("etcd has little room or none, and history cannot be thrown away; trying again", "bytes", before.Bytes,
					"quota", s.quota, "full", before.Full, "err", err)
			default:
				l.Warn("etcd had little room or none: its history is thrown away", "bytes", before.Bytes, "now", after.Bytes,
					"quota", s.quota, "full", before.Full)
				told(before.Full)
			}
		}
		process.Pause(ctx, clock.RealClock{}, spaceLook)
	}
	return nil
}

// reclaim throws away all that is not the state of now, gives its space back, and lets writes in again, those that
// another replica stopped, too: that one stops them again if it still has no room.
func (s *room) reclaim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reclaimGrace)
	defer cancel()
	now, err := s.client.Get(ctx, anyKey, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("read etcd's revision: %w", err)
	}
	if _, err := s.client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil &&
		!errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact etcd at revision %d: %w", now.Header.Revision, err)
	}
	if err := s.etcd.Server.Backend().Defrag(); err != nil {
		return fmt.Errorf("defragment etcd: %w", err)
	}
	s.reclaims.Add(1)
	if n := s.etcd.Server.Backend().Size(); n >= s.quota {
		return fmt.Errorf("etcd has %d bytes without its history, its quota is %d", n, s.quota)
	}
	for _, a := range s.alarms() {
		if _, err := s.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
			return fmt.Errorf("disarm etcd's alarm of member %x: %w", a.MemberID, err)
		}
	}
	return nil
}
