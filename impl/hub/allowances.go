package hub

import (
	"cmp"
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
	// offlineTTL is how long an allowance counts while the cloud cannot be asked: a pool that is cut off over a long weekend, and
	// loses its power then, still resolves its Services. What it risks is that somebody whose rights were taken away in the cloud
	// meanwhile reads what the pool has, on this node, if it still has the very credentials.
	offlineTTL = 7 * 24 * time.Hour
	// allowanceAge is how old what is on the disk may be: an allowance is renewed each 5 minutes, and a flash should not be.
	allowanceAge   = 12 * time.Hour
	maxAllowances  = 1024
	allowanceMagic = "weirallow1"
	allowanceSize  = len(verdictKey{}) + 8
	gatherTime     = time.Second // in which more may come, before they are written
)

// allowances are what the cloud allowed last, for the time when it cannot be asked. A node has few: its agents, each with what
// they list and watch.
type allowances struct {
	changed chan struct{}
	path    string // "": they are not kept
	logger  *slog.Logger

	mu    sync.Mutex
	times map[verdictKey]time.Time // when the cloud said so; renewed each allowanceAge
}

func newAllowances() *allowances {
	return &allowances{changed: make(chan struct{}, 1), times: map[verdictKey]time.Time{}}
}

// has tells whether the cloud allowed it not too long ago. A time in the future is one of a clock that was set back.
func (a *allowances) has(key verdictKey, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.times[key]
	return ok && now.Sub(at) < offlineTTL
}

func (a *allowances) add(key verdictKey, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, ok := a.times[key]; ok && now.Sub(at).Abs() < allowanceAge {
		return
	}
	a.times[key] = now.Round(0) // by the wall clock: it counts across a restart
	if len(a.times) > maxAllowances {
		oldest := key
		for k, at := range a.times {
			if at.Before(a.times[oldest]) {
				oldest = k
			}
		}
		delete(a.times, oldest)
	}
	a.dirty()
}

func (a *allowances) remove(key verdictKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.times[key]; ok {
		delete(a.times, key)
		a.dirty()
	}
}

func (a *allowances) dirty() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// load brings back what the file at path holds, and keeps them there from now on. A file that cannot be used is as none.
func (a *allowances) load(path string, logger *slog.Logger) {
	a.path, a.logger = path, logger
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		a.times, err = decodeAllowances(b)
	}
	if err != nil {
		a.times = map[verdictKey]time.Time{}
		logger.Error("remembered allowances cannot be used: while the cloud is away, reads are refused until it has been asked", "file", path, "err", err)
	}
}

// run writes changes until ctx ends, and what is left then.
func (a *allowances) run(ctx context.Context, c clock.Clock) error {
	for ctx.Err() == nil {
		select {
		case <-a.changed:
			sleep(ctx, c, gatherTime)
			a.save()
		case <-ctx.Done():
			select {
			case <-a.changed:
				a.save()
			default:
			}
		}
	}
	return nil
}

func (a *allowances) save() {
	a.mu.Lock()
	b := encodeAllowances(a.times)
	a.mu.Unlock()
	if err := disk.WriteFile(a.path, b); err != nil {
		a.logger.Warn("cannot remember on disk who may read", "file", a.path, "err", err)
	}
}

func encodeAllowances(times map[verdictKey]time.Time) []byte {
	b := append(make([]byte, 0, len(allowanceMagic)+len(times)*allowanceSize+4), allowanceMagic...)
	keys := make([]verdictKey, 0, len(times))
	for k := range times {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y verdictKey) int { return cmp.Compare(string(x[:]), string(y[:])) })
	for _, k := range keys {
		b = binary.LittleEndian.AppendUint64(append(b, k[:]...), uint64(times[k].Unix()))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func decodeAllowances(b []byte) (map[verdictKey]time.Time, error) {
	n := len(b) - len(allowanceMagic) - 4
	if n < 0 || n%allowanceSize != 0 || string(b[:len(allowanceMagic)]) != allowanceMagic {
		return nil, fmt.Errorf("%d bytes that are no list of allowances", len(b))
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != sum {
		return nil, errors.New("its checksum is wrong")
	}
	times := make(map[verdictKey]time.Time, n/allowanceSize)
	for body = body[len(allowanceMagic):]; len(body) > 0; body = body[allowanceSize:] {
		key := verdictKey(body[:len(verdictKey{})])
		times[key] = time.Unix(int64(binary.LittleEndian.Uint64(body[len(key):])), 0)
	}
	return times, nil
}
