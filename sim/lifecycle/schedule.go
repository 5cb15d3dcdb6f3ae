package lifecycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Times of a schedule. Stock Kubernetes evicts 350 s after it heard a node last.
const (
	warmUp    = 90 * time.Second // before the first fault
	stormy    = 14 * time.Minute // in which faults begin
	aftermath = 9 * time.Minute  // in which what is dead stays so, and nothing else happens
	recovery  = 3 * time.Minute  // after all is healed
)

// Schedule is what happens.
type Schedule struct {
	Seed      uint64
	Pools     []int // how many nodes each has
	Beside    int   // nodes without a pool, which are always well
	Managers  int   // replicas of weir-manager; more than one elect a leader
	Zoneless  bool
	OneUser   bool          // all controllers act as one user
	PolicyLag time.Duration // until admission policies see what weir-manager wrote
	Faults    []Fault       // in order of time
}

// Fault is one thing that happens.
type Fault struct {
	At     time.Duration
	For    time.Duration // 0: until all is healed, or it has no end
	What   string
	Target string // a node or a pool; "": there is but one
	Value  string
}

// String is how a fault is printed.
func (f Fault) String() string {
	s := fmt.Sprintf("%.1fs %s %s %s", f.At.Seconds(), f.What, f.Target, f.Value)
	if f.For > 0 {
		s += fmt.Sprintf(" for %.1fs", f.For.Seconds())
	}
	return strings.Join(strings.Fields(s), " ")
}

// String is a schedule in lines.
func (s Schedule) String() string {
	lines := []string{
		fmt.Sprintf("seed %d: pools of %v nodes, %d beside, %d managers, zoneless %t, one user %t, policies lag %s",
			s.Seed, s.Pools, s.Beside, s.Managers, s.Zoneless, s.OneUser, s.PolicyLag),
	}
	for _, f := range s.Faults {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// Draw makes a schedule of a seed.
func Draw(seed uint64) Schedule {
	rng := rand.New(rand.NewPCG(seed, 1))
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d) + 1)) }
	s := Schedule{
		Seed: seed, Beside: 3 + rng.IntN(2), OneUser: rng.IntN(2) == 0, Zoneless: rng.IntN(8) == 0,
		PolicyLag: upTo(2 * time.Second),
	}
	s.Managers = 1 + rng.IntN(2)
	for range 1 + rng.IntN(2) {
		s.Pools = append(s.Pools, 3+rng.IntN(2))
	}
	if s.Zoneless {
		s.Beside = 8 // else most of the one zone is lost, and stock Kubernetes stops
	}
	long := func() time.Duration { // shorter and longer than the grace period, and than what pods tolerate
		switch rng.IntN(4) {
		case 0:
			return time.Second + upTo(40*time.Second)
		case 1:
			return 40*time.Second + upTo(3*time.Minute)
		}
		return 6*time.Minute + upTo(3*time.Minute)
	}
	// What happens, as often as it stands here.
	usual := []string{
		cut, cut, cut, cut, lan, isolate, power, power, power, kubelet, hubDown, leader, leader, coordinator, coordinator,
		poolCut, poolCut, poolCut, poolCut, away, clock, controllers, weirManager, weirManager, policy, policy,
	}
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	for range 4 + rng.IntN(7) {
		pool := rng.IntN(len(s.Pools))
		f := Fault{
			At: warmUp + upTo(stormy), What: one(usual...),
			Target: fmt.Sprintf("%s-%d", PoolName(pool), 1+rng.IntN(s.Pools[pool])), For: long(),
		}
		switch f.What {
		case power:
			f.For *= time.Duration(rng.IntN(2))
		case hubDown:
			f.For = time.Second + upTo(10*time.Second)
		case leader:
			f.Target, f.For = PoolName(pool), 3*time.Second
		case coordinator:
			f.Target, f.For, f.Value = PoolName(pool), time.Second+upTo(15*time.Second), one("", empty)
		case poolCut:
			f.Target = PoolName(pool)
		case away:
			f.Target, f.For = "", time.Second+upTo(40*time.Second)
		case clock:
			f.For, f.Value = 0, one("1m", "-1m", "-5s")
		case controllers:
			f.Target, f.For = "", time.Second+upTo(10*time.Second)
		case weirManager:
			f.Target, f.For, f.Value = "", time.Second+upTo(2*time.Minute), one("", first)
		case policy:
			f.Target, f.For, f.Value = PoolName(pool), 0, one("keep", "evict:0s", "evict:1m", "evict:5m")
		}
		s.Faults = append(s.Faults, f)
	}
	if rng.IntN(3) == 0 {
		s.Faults = append(s.Faults, Fault{
			At: warmUp + upTo(stormy), For: time.Minute + upTo(10*time.Minute), What: liar,
			Target: PoolName(rng.IntN(len(s.Pools))),
		})
	}
	slices.SortStableFunc(s.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	return s
}

// Calm is when the last fault is over that ends by itself.
func (s Schedule) Calm() time.Duration {
	end := warmUp
	for _, f := range s.Faults {
		end = max(end, f.At+f.For)
	}
	return end
}
