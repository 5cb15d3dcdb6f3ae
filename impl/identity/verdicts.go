package identity

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/disk"
)

const (
	maxCallers   = 1024 // beside the node
	maxEach      = 1024 // decisions kept for one caller
	maxOwn       = 8192 // and for the node: 30 pods with 200 Secrets and config maps are about 1000
	stampAge     = 12 * time.Hour
	verdictMagic = "weirverd1"
	gatherTime   = 5 * time.Second // in which more may come, before they are written
)

// stamp is a decision and when the cloud said so, in minutes of the wall clock.
type stamp uint32

func newStamp(at time.Time, denied bool) stamp {
	s := stamp(max(at.Unix()/60, 0)) << 1
	if denied {
		s |= 1
	}
	return s
}

func (s stamp) denied() bool  { return s&1 != 0 }
func (s stamp) at() time.Time { return time.Unix(int64(s>>1)*60, 0) }

// verdicts are what the cloud decided last, by caller and read.
type verdicts struct {
	own     digest // of the node
	changed chan struct{}
	path    string // "": they are not kept
	logger  *slog.Logger

	mu      sync.Mutex
	callers map[digest]map[digest]stamp
	unsaved int // changes that are not on the disk
}

func newVerdicts(own digest, path string, logger *slog.Logger) *verdicts {
	v := &verdicts{own: own, changed: make(chan struct{}, 1), path: path, logger: logger, callers: map[digest]map[digest]stamp{}}
	v.load()
	return v
}

// last is what the cloud decided last, known false if it has not.
func (v *verdicts) last(caller, read digest) (s stamp, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, known = v.callers[caller][read]
	return s, known
}

// learn notes a decision. The same one is noted again after stampAge, since a flash should not be written without need.
func (v *verdicts) learn(caller, read digest, denied bool, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := v.callers[caller]
	if old, ok := of[read]; ok && old.denied() == denied && now.Sub(old.at()).Abs() < stampAge {
		return
	}
	if of == nil {
		of = map[digest]stamp{}
		v.callers[caller] = of
	}
	of[read] = newStamp(now, denied)
	limit := maxEach
	if caller == v.own {
		limit = maxOwn
	}
	if len(of) > limit {
		delete(of, oldest(of, read, func(s stamp) stamp { return s }))
	}
	if len(v.callers) > maxCallers+1 {
		delete(v.callers, oldest(v.callers, caller, func(of map[digest]stamp) (newest stamp) {
			for _, s := range of {
				newest = max(newest, s)
			}
			return newest
		}, v.own))
	}
	v.unsaved++
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

// oldest finds what was noted longest ago, but for what has just come and what must stay.
func oldest[V any](m map[digest]V, just digest, age func(V) stamp, stays ...digest) (found digest) {
	first := true
	var least stamp
	for k, e := range m {
		if a := age(e); k != just && !slices.Contains(stays, k) && (first || a < least) {
			first, found, least = false, k, a
		}
	}
	return found
}

func (v *verdicts) size() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, of := range v.callers {
		n += len(of)
	}
	return n
}

// load brings back what the file holds. One that cannot be used is as none.
func (v *verdicts) load() {
	if v.path == "" {
		return
	}
	b, err := os.ReadFile(v.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		var callers map[digest]map[digest]stamp
		if callers, err = decodeVerdicts(b); err == nil {
			v.callers = callers
		}
	}
	if err != nil {
		v.logger.Error("remembered decisions cannot be used: while the cloud is away, reads are refused until it has been asked", "file", v.path, "err", err)
	}
}

// run writes changes until ctx ends, and what is left then.
func (v *verdicts) run(ctx context.Context, c clock.Clock) error {
	for {
		select {
		case <-v.changed:
			gather := c.NewTimer(gatherTime)
			select {
			case <-gather.C():
			case <-ctx.Done():
			}
			gather.Stop()
			v.save()
		case <-ctx.Done():
			select {
			case <-v.changed:
				v.save()
			default:
			}
			return nil
		}
	}
}

func (v *verdicts) save() {
	if v.path == "" {
		return
	}
	v.mu.Lock()
	b, n := encodeVerdicts(v.callers), v.unsaved
	v.mu.Unlock()
	if err := disk.WriteFile(v.path, b); err != nil {
		v.logger.Warn("cannot remember on disk who may read", "file", v.path, "err", err)
		return
	}
	v.mu.Lock()
	v.unsaved -= n
	v.mu.Unlock()
}

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func encodeVerdicts(callers map[digest]map[digest]stamp) []byte {
	b := []byte(verdictMagic)
	for _, caller := range sorted(callers) {
		of := callers[caller]
		b = binary.LittleEndian.AppendUint32(append(b, caller[:]...), uint32(len(of)))
		for _, read := range sorted(of) {
			b = binary.LittleEndian.AppendUint32(append(b, read[:]...), uint32(of[read]))
		}
	}
	return binary.LittleEndian.AppendUint32(b, castagnoli(b))
}

func sorted[V any](m map[digest]V) []digest {
	keys := make([]digest, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y digest) int { return bytes.Compare(x[:], y[:]) })
	return keys
}

func decodeVerdicts(b []byte) (map[digest]map[digest]stamp, error) {
	const row = len(digest{}) + 4
	n := len(b) - 4
	if n < len(verdictMagic) || string(b[:len(verdictMagic)]) != verdictMagic {
		return nil, fmt.Errorf("%d bytes that are no list of decisions", len(b))
	}
	if castagnoli(b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, errors.New("its checksum is wrong")
	}
	callers := map[digest]map[digest]stamp{}
	for b = b[len(verdictMagic):n]; len(b) > 0; {
		if len(b) < row {
			return nil, errors.New("it ends within a row")
		}
		caller, count := digest(b[:len(digest{})]), int(binary.LittleEndian.Uint32(b[len(digest{}):]))
		b = b[row:]
		if len(callers) > maxCallers || count > maxOwn || len(b) < count*row {
			return nil, fmt.Errorf("a caller with %d decisions", count)
		}
		of := make(map[digest]stamp, count)
		for range count {
			of[digest(b[:len(digest{})])] = stamp(binary.LittleEndian.Uint32(b[len(digest{}):]))
			b = b[row:]
		}
		callers[caller] = of
	}
	return callers, nil
}
