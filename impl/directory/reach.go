package directory

import (
	"fmt"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/reverse"
)

// MaxReach bounds Entry.Reach: the Pool has 128 ports and ranges of ports.
const MaxReach = 128

// Reach is what the cloud may reach in a pool, sorted. No port of a network is in it twice.
type Reach []reverse.Span

func (all Reach) check() error {
	if n := len(all); n > MaxReach {
		return fmt.Errorf("%s has %d networks and ports, want %d at most", contract.LeaderHubReach, n, MaxReach)
	}
	for i, s := range all {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("%s: %w", contract.LeaderHubReach, err)
		}
		if i == 0 {
			continue
		}
		switch before := all[i-1]; {
		case s.Compare(before) < 0:
			return fmt.Errorf("%s has %s behind %s, want them in order", contract.LeaderHubReach, s, before)
		case s.Prefix == before.Prefix && s.First <= before.Last:
			return fmt.Errorf("%s has %s and %s, want each port of a network once", contract.LeaderHubReach, before, s)
		}
	}
	return nil
}
