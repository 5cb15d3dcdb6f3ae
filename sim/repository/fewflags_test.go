package repository

import (
	"context"
	"io"
	"testing"

	"github.com/weir-edge/weir/impl/coordinator"
	"github.com/weir-edge/weir/impl/hub"
)

// TestFewFlags: a flag more is one that an operator has to read about. A limit is lowered when flags go, never raised.
func TestFewFlags(t *testing.T) {
	for _, p := range []struct {
		name  string
		run   func(context.Context, []string, io.Writer, io.Writer) error
		limit int
	}{{"weir-hub", hub.Run, 45}, {"weir-coordinator", coordinator.Run, 20}} {
		if n := len(flags(help(t, p.run))); n == 0 || n > p.limit {
			t.Errorf("%s has %d flags, want at most %d", p.name, n, p.limit)
		}
	}
}
