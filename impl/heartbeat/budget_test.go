package heartbeat

import (
	"fmt"
	"testing"
	"time"
)

// TestBudget: the sums of the package comment.
func TestBudget(t *testing.T) {
	const (
		pool    = time.Second
		one     = time.Second           // a request to the only server
		three   = Stagger + time.Second // the first of three is dead
		pulse   = 6 * time.Second       // until another leads: the pulse ended
		expired = 17 * time.Second      // nothing was noticed but that the Lease ran out
		spare   = 9 * time.Second
	)
	for _, c := range []struct {
		name  string
		b     Budget
		want  time.Duration
		grace time.Duration
		spare time.Duration
	}{
		{"one server", Budget{Pool: pool, Request: one}, 19400 * time.Millisecond, GraceBefore, spare},
		{
			"one server, leader killed", Budget{Pool: pool, Request: one, LeaderChange: pulse}, 25400 * time.Millisecond,
			GraceBefore, spare,
		},
		{
			"one server, Lease runs out", Budget{Pool: pool, Request: one, LeaderChange: expired}, 36400 * time.Millisecond,
			GraceBefore, 3 * time.Second,
		},
		{"three servers", Budget{Pool: pool, Request: three}, 23900 * time.Millisecond, GraceBefore, spare},
		{
			"three servers, leader killed", Budget{Pool: pool, Request: three, LeaderChange: pulse}, 29900 * time.Millisecond,
			GraceBefore, spare,
		},
		{
			"three servers, Lease runs out", Budget{Pool: pool, Request: three, LeaderChange: expired}, 40900 * time.Millisecond,
			Grace, spare,
		},
		{
			"three servers, Lease of 12 s runs out", Budget{Pool: pool, Request: three, LeaderChange: 14 * time.Second},
			37900 * time.Millisecond, GraceBefore, 2 * time.Second,
		},
		{
			"a new leader that has just started", Budget{Pool: pool, Request: three, LeaderChange: pulse, Cold: true},
			45300 * time.Millisecond, Grace, 4 * time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.b.Worst(); got != c.want || got+c.spare > c.grace {
				t.Errorf("got %v, want %v, and %v to spare of %v", got, c.want, c.spare, c.grace)
			}
		})
	}
}

// TestMaxNodes: a coordinator that tells of more and more nodes fills no memory, and costs those that are known
// nothing.
func TestMaxNodes(t *testing.T) {
	f := NewForwarder(1)
	f.See(0, "first", Lease{Delegated: true}, true)
	for i := range 3 * MaxNodes {
		f.See(0, fmt.Sprint("node-", i), Lease{Delegated: true}, true)
	}
	if n := f.Delegated(); n != MaxNodes {
		t.Errorf("%d nodes", n)
	}
	f.See(0, "first", Lease{}, true)
	f.See(0, "late", Lease{Delegated: true}, true)
	if n := f.Delegated(); n != MaxNodes {
		t.Errorf("%d nodes after one has gone and another come", n)
	}
}
