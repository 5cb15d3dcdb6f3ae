package testkit

import (
	"testing"
	"time"
)

const look = 5 * time.Millisecond

// Until waits for a condition of the outside world, where there is nothing to wait on but itself. The test fails if it
// does not hold within patience, which should be many times what is usual: these machines are shared.
func Until(t testing.TB, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(look)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// Value waits for a value of a channel, or for its end. The test fails if neither comes within patience, and says what
// it has waited for: a test that hangs until its binary is ended says nothing.
func Value[T any](t testing.TB, patience time.Duration, what string, from <-chan T) (v T) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case v = <-from:
	case <-limit.C:
		t.Fatalf("waited %v in vain: %s", patience, what)
	}
	return v
}
