package connectivity

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/digest"
)

// bed steps a plan each second.
type bed struct {
	t     *testing.T
	plan  *Plan
	now   time.Duration
	alone bool
	fails map[Edge]string
	tried map[Edge][]time.Duration
}

func newBed(t *testing.T, edges ...Edge) *bed {
	b := &bed{t: t, plan: &Plan{Node: "edge-1"}, fails: map[Edge]string{}, tried: map[Edge][]time.Duration{}}
	b.plan.Follow(0, edges)
	return b
}

func (b *bed) run(d time.Duration) {
	for end := b.now + d; b.now < end; b.now += time.Second {
		for _, e := range b.plan.Due(b.now, b.alone) {
			b.tried[e] = append(b.tried[e], b.now)
			b.plan.Saw(b.now, e, b.fails[e])
		}
	}
}

func (b *bed) failing(want ...string) {
	b.t.Helper()
	var got []string
	for _, e := range b.plan.Failing() {
		got = append(got, fmt.Sprintf("%s %s %d %s", string(e.Way), e.Peer, e.Port, e.Cause))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		b.t.Errorf("after %v %q fail, want %q", b.now, got, want)
	}
}

var (
	toCoordinator = Edge{digest.ToCoordinator, "10.0.0.1", "10.0.0.1:10270"}
	toHub         = Edge{digest.ToHub, "edge-2", "[fd00::2]:10269"}
)

// TestQuiet: edges that work are tried some twelve times an hour, at moments of their own, and are never told.
func TestQuiet(t *testing.T) {
	b := newBed(t, toCoordinator, toHub)
	b.run(24 * time.Hour)
	b.failing()
	for e, at := range b.tried {
		if len(at) < 24*12 || len(at) > 24*15 || at[0] < Settle || at[0] > 2*Settle {
			t.Errorf("%v is tried %d times in a day, first after %v", e, len(at), at[0])
		}
	}
	if b.tried[toCoordinator][0] == b.tried[toHub][0] {
		t.Error("both at once")
	}
}

// TestFails: one attempt that fails is none. Two in a row are told, within 6 minutes, and one that works ends that.
func TestFails(t *testing.T) {
	b := newBed(t, toCoordinator, toHub)
	b.run(2 * Settle)
	b.failing()
	b.fails[toHub] = digest.Refused
	before := len(b.tried[toHub])
	for len(b.tried[toHub]) == before {
		b.run(time.Second)
	}
	b.failing()
	delete(b.fails, toHub)
	b.run(Usual)
	b.failing()
	b.fails[toHub] = digest.Timeout
	b.run(Usual + Again + time.Second)
	b.failing("h edge-2 10269 timeout")
	b.fails[toCoordinator] = digest.Mute
	b.run(Usual + Again + time.Second)
	b.failing("c 10.0.0.1 10270 mute", "h edge-2 10269 timeout")
	before = len(b.tried[toHub])
	b.run(time.Hour)
	if n := len(b.tried[toHub]) - before; n < 59 || n > 61 {
		t.Errorf("while it fails it is tried %d times an hour", n)
	}
	b.fails = map[Edge]string{}
	b.run(Failing)
	b.failing()
}

// TestAlone: a hub without its pool knows why within two minutes.
func TestAlone(t *testing.T) {
	b := newBed(t, toCoordinator)
	b.run(Usual)
	b.fails[toCoordinator], b.alone = digest.Timeout, true
	b.run(Failing + Again + time.Second)
	b.failing("c 10.0.0.1 10270 timeout")
}

// TestFollow: what is of the hub no more is not told, not even by an attempt that was under way, and there is a bound.
func TestFollow(t *testing.T) {
	b := newBed(t, toCoordinator, toHub)
	b.fails[toHub] = digest.Refused
	b.run(Usual)
	b.failing("h edge-2 10269 refused")
	b.plan.Follow(b.now, []Edge{toCoordinator})
	b.plan.Saw(b.now, toHub, digest.Refused)
	b.failing()
	var many []Edge
	for i := range 2 * MaxEdges {
		many = append(many, Edge{digest.ToHub, fmt.Sprint("edge-", i), "10.0.0.1:1"})
	}
	b = newBed(t, many...)
	b.run(2*Settle + time.Second)
	if len(b.tried) != MaxEdges {
		t.Errorf("%d are tried, want %d", len(b.tried), MaxEdges)
	}
}
