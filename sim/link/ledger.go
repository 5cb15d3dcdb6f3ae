package link

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// slot is the finest grain of Series.
const slot = 100 * time.Millisecond

// Counter is a number of bytes of one connection in one phase and direction.
type Counter struct {
	Node  string    `json:"node"`
	Class string    `json:"class"`
	Phase string    `json:"phase"`
	Conn  int64     `json:"conn"`
	Dir   Direction `json:"dir"`
	Bytes int64     `json:"bytes"`
}

// Connection is one TCP connection that crossed the link.
type Connection struct {
	ID     int64     `json:"id"`
	Node   string    `json:"node"`
	Class  string    `json:"class"`
	To     string    `json:"to"`    // where it ends, as the proxy was told
	Phase  string    `json:"phase"` // in which it was opened
	Opened time.Time `json:"opened"`
	Closed time.Time `json:"closed"` // zero while it is open
}

// Sample is a number of bytes that crossed in one stretch of time.
type Sample struct {
	At    time.Time `json:"at"` // its beginning
	Node  string    `json:"node"`
	Class string    `json:"class"`
	Dir   Direction `json:"dir"`
	Bytes int64     `json:"bytes"`
}

// Sum adds up the bytes of the counters that match.
func Sum(counters []Counter, match func(Counter) bool) int64 {
	var n int64
	for _, c := range counters {
		if match(c) {
			n += c.Bytes
		}
	}
	return n
}

type counterKey struct {
	conn  int64
	phase string
	dir   Direction
}

type seriesKey struct {
	node, class string
	dir         Direction
}

// ledger keeps the books of a pool.
type ledger struct {
	begin time.Time

	mu       sync.Mutex
	phase    string
	conns    []Connection // by id, which counts from 1
	counters map[counterKey]int64
	series   map[seriesKey][]int64 // bytes by slot since begin
}

func newLedger(now time.Time, phase string) *ledger {
	return &ledger{begin: now, phase: phase, counters: map[counterKey]int64{}, series: map[seriesKey][]int64{}}
}

func (l *ledger) setPhase(phase string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = phase
}

func (l *ledger) open(now time.Time, node, class, to string) (id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id = int64(len(l.conns)) + 1
	l.conns = append(l.conns, Connection{ID: id, Node: node, Class: class, To: to, Phase: l.phase, Opened: now})
	return id
}

func (l *ledger) close(now time.Time, id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[id-1].Closed = now
}

func (l *ledger) count(now time.Time, id int64, dir Direction, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.conns[id-1]
	l.counters[counterKey{id, l.phase, dir}] += int64(n)
	key, i := seriesKey{c.Node, c.Class, dir}, int(now.Sub(l.begin)/slot)
	s := l.series[key]
	if more := i + 1 - len(s); more > 0 {
		s = append(s, make([]int64, more)...)
		l.series[key] = s
	}
	s[i] += int64(n)
}

func (l *ledger) list() []Counter {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Counter, 0, len(l.counters))
	for k, n := range l.counters {
		c := &l.conns[k.conn-1]
		out = append(out, Counter{Node: c.Node, Class: c.Class, Phase: k.phase, Conn: k.conn, Dir: k.dir, Bytes: n})
	}
	slices.SortFunc(out, func(a, b Counter) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Conn, b.Conn),
			cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Dir, b.Dir))
	})
	return out
}

func (l *ledger) connections() []Connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.conns)
}

func (l *ledger) samples(bucket time.Duration) []Sample {
	bucket = max(bucket.Round(slot), slot)
	perBucket := int(bucket / slot)
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Sample
	for k, slots := range l.series {
		for i := 0; i < len(slots); i += perBucket {
			var n int64
			for _, b := range slots[i:min(i+perBucket, len(slots))] {
				n += b
			}
			if n > 0 {
				at := l.begin.Add(time.Duration(i) * slot)
				out = append(out, Sample{At: at, Node: k.node, Class: k.class, Dir: k.dir, Bytes: n})
			}
		}
	}
	slices.SortFunc(out, func(a, b Sample) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Class, b.Class),
			cmp.Compare(a.Dir, b.Dir))
	})
	return out
}
