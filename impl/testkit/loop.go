package testkit

import (
	"container/heap"
	"time"
)

// Loop is what is to happen. Two things due at the same time happen in the order in which they were asked for. The zero
// value is ready.
type Loop struct {
	now    time.Duration
	serial int
	queue  queue
}

// Now is the time since the beginning.
func (l *Loop) Now() time.Duration { return l.now }

// After asks for something to happen; the serial number grows with each.
func (l *Loop) After(d time.Duration, do func()) (serial int) {
	l.serial++
	heap.Push(&l.queue, event{l.now + d, l.serial, do})
	return l.serial
}

// Run lets happen all that is due up to a time.
func (l *Loop) Run(until time.Duration) { l.RunWhile(until, func() bool { return true }) }

// RunWhile is Run as long as fine says so.
func (l *Loop) RunWhile(until time.Duration, fine func() bool) {
	for len(l.queue) > 0 && l.queue[0].at <= until && fine() {
		e := heap.Pop(&l.queue).(event)
		l.now = e.at
		e.do()
	}
	l.now = max(l.now, until)
}

type event struct {
	at     time.Duration
	serial int
	do     func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
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
