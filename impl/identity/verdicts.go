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
	verdictMagic = "weirverd3"
	formerMagic  = "weirverd2" // of one number in a row: when, and whether it was denied
	// ownSuffix ends the name of the file of this version. Beside it the same is kept as earlier versions read it: a hub
	// may go back to one while it is cut off.
	ownSuffix   = "3"
	maxVerdicts = 64 << 20        // bytes of a file
	gatherTime  = 5 * time.Second // in which more may come, before they are written
)

// verdicts are what the cloud decided last, by caller and read.
type verdicts struct {
	own     digest // of the node
	changed chan struct{}
	path    string // "": they are not kept
	logger  *slog.Logger

	mu      sync.Mutex
	callers map[digest]map[digest]word
	order   list.List // of callers but the node, the one that was seen last in front
	places  map[digest]*list.Element
	unsaved int    // changes that are not on the disk
	newest  second // of all allowances
}

func newVerdicts(own digest, path string, logger *slog.Logger) *verdicts {
	v := &verdicts{
		own: own, changed: make(chan struct{}, 1), path: path, logger: logger, callers: map[digest]map[digest]word{},
		places: map[digest]*list.Element{},
	}
	v.load()
	return v
}

// last is what the cloud said last; the zero word: nothing.
func (v *verdicts) last(p place, read digest) word {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.callers[p.caller][p.hash(read)]
}

// allow notes an allowance. The same one is noted again after stampAge, since a flash should not be written without
// need.
func (v *verdicts) allow(p place, read digest, now time.Time) {
	v.learn(p, read, func(w word) (_ word, worth bool) {
		if w.denied == 0 && w.allowed != 0 && now.Sub(w.allowed.time()).Abs() < stampAge {
			return w, true
		}
		at := secondOf(now)
		v.newest = max(v.newest, at)
		return word{allowed: at}, true
	})
}

// deny notes a denial. The cloud has been there without a break since whole. A denial that stands is noted with its
// last time, which counts against allowances that show more; but the disk need not know that before there is one.
func (v *verdicts) deny(p place, read digest, now, whole time.Time) {
	v.learn(p, read, func(w word) (_ word, worth bool) {
		worth = !w.stands() || w.denied <= v.newest
		return w.deny(now, whole), worth
	})
}

// learn changes a word. One that is not worth a write waits for the next that is.
func (v *verdicts) learn(p place, read digest, change func(word) (_ word, worth bool)) {
	read = p.hash(read)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen(p.caller)
	of := v.callers[p.caller]
	w, worth := change(of[read])
	if w == of[read] {
		return
	}
	of[read] = w
	limit := maxEach
	if p.caller == v.own {
		limit = maxOwn
	}
	if len(of) > limit {
		delete(of, oldest(of, read))
	}
	if !worth {
		return
	}
	v.unsaved++
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

// seen puts a caller in front of all others, of whom the last goes if there are too many.
func (v *verdicts) seen(caller digest) {
	if v.callers[caller] == nil {
		v.callers[caller] = map[digest]word{}
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
func oldest(of map[digest]word, just digest) (found digest) {
	least := ^second(0)
	for read, w := range of {
		if read != just && w.last() <= least {
			found, least = read, w.last()
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
	b, err := disk.ReadFile(v.path, maxVerdicts)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		var callers map[digest]map[digest]word
		if callers, err = v.decode(b); err == nil {
			v.callers = callers
			byAge := sorted(callers)
			slices.SortStableFunc(byAge, func(x, y digest) int { return cmp.Compare(newest(callers[x]), newest(callers[y])) })
			for _, caller := range byAge {
				v.seen(caller)
				for _, w := range callers[caller] {
					v.newest = max(v.newest, w.allowed)
				}
			}
		}
	}
	if err != nil {
		v.logger.Error("remembered decisions cannot be used: while the cloud is away, reads are refused until it "+
			"has been asked", "file", v.path, "err", err)
	}
}

// decode reads the decisions that were written together with the file of earlier versions, else that file: an earlier
// version has written it since, or it is all there is.
func (v *verdicts) decode(former []byte) (map[digest]map[digest]word, error) {
	b, err := disk.ReadFile(v.path+ownSuffix, maxVerdicts)
	if n := len(b) - 4; err == nil && n > 0 && bytes.HasSuffix(former, b[n:]) { // by its checksum
		if callers, err := decodeVerdicts(b[:n]); err == nil {
			return callers, nil
		}
	}
	return decodeVerdicts(former)
}

func newest(of map[digest]word) (s second) {
	for _, w := range of {
		s = max(s, w.last())
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
	former, b, n := encodeFormer(v.callers), encodeVerdicts(v.callers), v.unsaved
	v.mu.Unlock()
	err := disk.WriteFile(v.path, former)
	if err == nil {
		err = disk.WriteFile(v.path+ownSuffix, append(b, former[len(former)-4:]...))
	}
	if err != nil {
		v.logger.Warn("cannot remember on disk who may read", "file", v.path, "err", err)
		return
	}
	v.mu.Lock()
	v.unsaved -= n
	v.mu.Unlock()
}

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func encodeVerdicts(callers map[digest]map[digest]word) []byte {
	return encode(verdictMagic, callers, word.append)
}

func encodeFormer(callers map[digest]map[digest]word) []byte {
	return encode(formerMagic, callers, word.appendFormer)
}

func encode(magic string, callers map[digest]map[digest]word, row func(word, []byte) []byte) []byte {
	b := []byte(magic)
	for _, caller := range sorted(callers) {
		of := callers[caller]
		b = binary.LittleEndian.AppendUint32(append(b, caller[:]...), uint32(len(of)))
		for _, read := range sorted(of) {
			b = row(of[read], append(b, read[:]...))
		}
	}
	return binary.LittleEndian.AppendUint32(b, castagnoli(b))
}

func sorted[V any](m map[digest]V) []digest {
	return slices.SortedFunc(maps.Keys(m), func(x, y digest) int { return bytes.Compare(x[:], y[:]) })
}

func decodeVerdicts(b []byte) (map[digest]map[digest]word, error) {
	const name = len(digest{})
	n := len(b) - 4
	if n < len(verdictMagic) {
		return nil, fmt.Errorf("%d bytes that are no list of decisions", len(b))
	}
	row, read := name+wordBytes, wordOf
	switch magic := string(b[:len(verdictMagic)]); magic {
	case verdictMagic:
	case formerMagic:
		row, read = name+formerBytes, formerWord
	default:
		return nil, fmt.Errorf("%d bytes that are no list of decisions", len(b))
	}
	if castagnoli(b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, errors.New("its checksum is wrong")
	}
	callers := map[digest]map[digest]word{}
	for b = b[len(verdictMagic):n]; len(b) > 0; {
		if len(b) < name+4 {
			return nil, errors.New("it ends within a row")
		}
		caller, count := digest(b[:name]), int(binary.LittleEndian.Uint32(b[name:]))
		b = b[name+4:]
		if len(callers) > maxCallers || count > maxOwn || len(b) < count*row {
			return nil, fmt.Errorf("a caller with %d decisions", count)
		}
		of := make(map[digest]word, count)
		for range count {
			of[digest(b[:name])] = read(b[name:row])
			b = b[row:]
		}
		callers[caller] = of
	}
	return callers, nil
}
