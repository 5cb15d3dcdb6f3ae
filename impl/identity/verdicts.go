package identity

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"maps"
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
	verdictMagic = "weirverd2"
	gatherTime   = 5 * time.Second // in which more may come, before they are written
)

// stamp is a decision and when the cloud said so, in seconds of the wall clock: good until 2088.
type stamp uint32

const stampEpoch = 1577836800 // 2020

func newStamp(at time.Time, denied bool) stamp {
	s := stamp(max(at.Unix()-stampEpoch, 0)) << 1
	if denied {
		s |= 1
	}
	return s
}

func (s stamp) denied() bool  { return s&1 != 0 }
func (s stamp) at() time.Time { return time.Unix(int64(s>>1)+stampEpoch, 0) }

// verdicts are what the cloud decided last, by caller and read.
type verdicts struct {
	own     digest // of the node
	changed chan struct{}
	path    string // "": they are not kept
	logger  *slog.Logger

	mu      sync.Mutex
	callers map[digest]map[digest]stamp
	order   list.List // of callers but the node, the one that was seen last in front
	places  map[digest]*list.Element
	unsaved int // changes that are not on the disk
}

func newVerdicts(own digest, path string, logger *slog.Logger) *verdicts {
	v := &verdicts{own: own, changed: make(chan struct{}, 1), path: path, logger: logger, callers: map[digest]map[digest]stamp{}, places: map[digest]*list.Element{}}
	v.load()
	return v
}

// last is what the cloud decided last, known false if it has not.
func (v *verdicts) last(p place, read digest) (s stamp, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, known = v.callers[p.caller][p.hash(read)]
	return s, known
}

// learn notes a decision. The same allowance is noted again after stampAge, since a flash should not be written without need. The same denial is noted each time: it
// takes back what was allowed before it. It is written where something was allowed since the last one.
func (v *verdicts) learn(p place, read digest, denied bool, now time.Time) {
	read = p.hash(read)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen(p.caller)
	of := v.callers[p.caller]
	old, again := of[read]
	again = again && old.denied() == denied && now.Sub(old.at()).Abs() < stampAge
	if again && !denied {
		return
	}
	of[read] = newStamp(now, denied)
	if again && !overtaken(of, old) {
		return
	}
	limit := maxEach
	if p.caller == v.own {
		limit = maxOwn
	}
	if len(of) > limit {
		delete(of, oldest(of, read))
	}
	v.unsaved++
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

// overtaken reports whether a caller was allowed something since a denial.
func overtaken(of map[digest]stamp, denial stamp) bool {
	for _, s := range of {
		if !s.denied() && !s.at().Before(denial.at()) {
			return true
		}
	}
	return false
}

// seen puts a caller in front of all others, of whom the last goes if there are too many.
func (v *verdicts) seen(caller digest) {
	if v.callers[caller] == nil {
		v.callers[caller] = map[digest]stamp{}
	}
	if caller == v.own {
		return
	}
	if e := v.places[caller]; e != nil {
		v.order.MoveToFront(e)
		return
	}
	v.places[caller] = v.order.PushFront(caller)
	if v.order.Len() > maxCallers {
		gone := v.order.Remove(v.order.Back()).(digest)
		delete(v.places, gone)
		delete(v.callers, gone)
	}
}

// oldest finds what was noted longest ago, but for what has just come.
func oldest(of map[digest]stamp, just digest) (found digest) {
	least := ^stamp(0)
	for read, s := range of {
		if read != just && s <= least {
			found, least = read, s
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
			byAge := sorted(callers)
			slices.SortStableFunc(byAge, func(x, y digest) int { return cmp.Compare(newest(callers[x]), newest(callers[y])) })
			for _, caller := range byAge {
				v.seen(caller)
			}
		}
	}
	if err != nil {
		v.logger.Error("remembered decisions cannot be used: while the cloud is away, reads are refused until it has been asked", "file", v.path, "err", err)
	}
}

func newest(of map[digest]stamp) (s stamp) {
	for _, other := range of {
		s = max(s, other)
	}
	return s
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
	return slices.SortedFunc(maps.Keys(m), func(x, y digest) int { return bytes.Compare(x[:], y[:]) })
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
