package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
)

// Position is where an attacker stands.
type Position string

// The positions, as in SECURITY.md.
const (
	Pod         Position = "P1" // an unprivileged pod that reaches the hub of its node
	Member      Position = "P2" // root on a node of the pool
	Foreigner   Position = "P3" // root on a node of another pool
	Holder      Position = "P4" // has a token that is stolen, expired or revoked
	Neighbour   Position = "P5" // on the network of the pool, without credentials
	Leader      Position = "P6" // leads the pool, and lies
	Thief       Position = "P7" // has a node's disk
	Coordinator Position = "P8" // is the coordinator, and lies
	Gatekeeper  Position = "P9" // has the key of weir-gate's certificate, and lies
)

// Attack is one attempt.
type Attack struct {
	Number   string // in the table; letters are variants
	Position Position
	Goal     string // what the attacker wants
	Sent     string // what he does
	Expected string // what has to come of it
	Control  string // who succeeds with what beside it
	Slow     bool   // left out of the quick set

	place *place
	away  bool // asks, controls and play come while the uplink of the place is cut
	// What comes before, with the cloud; it is no part of the attempt.
	before  []ask
	prepare func(context.Context, *scene) error
	// The attempt, as requests or as a play, and what the right identity asks.
	asks     []ask
	play     func(context.Context, *scene) error
	controls []ask
	// What is looked at when the cloud is back.
	after func(context.Context, *scene) error
}

// All are the attacks, in the order of their numbers.
func All() []Attack {
	all := slices.Concat(
		identityAttacks(), awayAttacks(), exhaustionAttacks(), coordinatorAttacks(), liarAttacks(), cloudAttacks(),
		diskAttacks(), stolenAttacks(), poolWriteAttacks(), irrevocableAttacks(), sundryAttacks(),
		policyAttacks(), directoryAttacks(), signedAttacks(),
		standAttacks(), gateAttacks(),
	)
	slices.SortStableFunc(all, func(a, b Attack) int { return compareNumbers(a.Number, b.Number) })
	return all
}

// compareNumbers orders "9" before "9b" before "10".
func compareNumbers(a, b string) int {
	split := func(s string) (n int, letters string) {
		digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz")
		_, _ = fmt.Sscanf(digits, "%d", &n)
		return n, s[len(digits):]
	}
	m, x := split(a)
	n, y := split(b)
	if m != n {
		return m - n
	}
	return strings.Compare(x, y)
}

// Select returns those of some numbers, all when there are none, without the slow ones if it has to be quick. A number
// without a letter names its variants too, one with a letter that variant alone.
func Select(all []Attack, only []string, quick bool) ([]Attack, error) {
	var chosen []Attack
	named := map[string]bool{}
	for _, a := range all {
		for _, n := range only {
			if a.Number == n || strings.TrimRight(a.Number, "abcdefghijklmnopqrstuvwxyz") == n {
				named[n] = true
				chosen = append(chosen, a)
				break
			}
		}
		if len(only) == 0 && (!quick || !a.Slow) {
			chosen = append(chosen, a)
		}
	}
	for _, n := range only {
		if !named[n] {
			return nil,
				cli.Usage("--only", n, "numbers of attacks, as --list shows them: 9 for 9 and its variants, 9b for that alone")
		}
	}
	return chosen, nil
}
