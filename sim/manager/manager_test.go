package manager

import "testing"

// TestManager starts one real control plane and looks at weir-manager from all sides.
func TestManager(t *testing.T) {
	w := newWorld(t)
	t.Run("policies", func(t *testing.T) { testPolicies(t, w) })
}
