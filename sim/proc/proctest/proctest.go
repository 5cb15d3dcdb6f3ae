// Package proctest gives a test processes that end with the test.
package proctest

import (
	"testing"

	"github.com/weir-edge/weir/sim/proc"
)

// Spawner returns a spawner whose processes end with the test.
func Spawner(t testing.TB) *proc.Spawner {
	t.Helper()
	s, err := proc.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
