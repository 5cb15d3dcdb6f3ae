package virtual

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// Loop is virtual time: what is to happen, in order. Two things due at the same time happen in the order in which they were
// asked for. All chance of a schedule comes from its one source.
type Loop struct {
	rng   *rand.Rand
	now   time.Duration
	seq   int
	queue queue
}

func newLoop(seed uint64) *Loop { return &Loop{rng: rand.New(rand.NewPCG(seed, 0))} }

// after asks for something to happen.
func (l *Loop) after(d time.Duration, do func()) {
	l.seq++
	heap.Push(&l.queue, event{l.now + d, l.seq, do})
}

// run lets happen all that is due up to a time, as long as fine says so.
func (l *Loop) run(until time.Duration, fine func() bool) {
	for len(l.queue) > 0 && l.queue[0].at <= until && fine() {
		e := heap.Pop(&l.queue).(event)
		l.now = e.at
		e.do()
	}
	l.now = max(l.now, until)
}

// upTo is a random time.
func (l *Loop) upTo(d time.Duration) time.Duration { return time.Duration(l.rng.Int64N(int64(d) + 1)) }

// jitter is between half of a time and all of it, as the product's waits are.
func (l *Loop) jitter(d time.Duration) time.Duration { return d/2 + l.upTo(d/2) }

// one tells in one of n cases.
func (l *Loop) one(n int) bool { return l.rng.IntN(n) == 0 }

type event struct {
	at  time.Duration
	seq int
	do  func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return last
}
