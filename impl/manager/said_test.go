package manager

import (
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/manager/verdict"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// TestWhenSilent: what cannot be meant so keeps pods. A schema refuses it, but one may be older.
func TestWhenSilent(t *testing.T) {
	for name, c := range map[string]struct {
		says *poolv1.WhenSilent
		want verdict.Policy
		is   bool
		bad  bool
	}{
		"nothing":        {nil, verdict.Policy{}, false, false},
		"keep":           {&poolv1.WhenSilent{Action: poolv1.Keep}, verdict.Policy{}, true, false},
		"evict":          {&poolv1.WhenSilent{Action: poolv1.Evict, After: "1h30m"}, verdict.Policy{Evict: true, After: 90 * time.Minute}, true, false},
		"evict at once":  {&poolv1.WhenSilent{Action: poolv1.Evict, After: "0s"}, verdict.Policy{Evict: true}, true, false},
		"never":          {&poolv1.WhenSilent{Action: poolv1.Evict}, verdict.Policy{}, true, true},
		"soon":           {&poolv1.WhenSilent{Action: poolv1.Evict, After: "soon"}, verdict.Policy{}, true, true},
		"in the past":    {&poolv1.WhenSilent{Action: poolv1.Evict, After: "-1h"}, verdict.Policy{}, true, true},
		"something else": {&poolv1.WhenSilent{Action: "Delete"}, verdict.Policy{}, true, true},
		"kept for 1h":    {&poolv1.WhenSilent{Action: poolv1.Keep, After: "1h"}, verdict.Policy{}, true, true},
	} {
		if got, is, err := policyOf(c.says); got != c.want || is != c.is || (err != nil) != c.bad {
			t.Errorf("%s: %+v, %v, %v", name, got, is, err)
		}
	}
}
