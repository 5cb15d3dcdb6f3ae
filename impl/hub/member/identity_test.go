package member

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/role"
)

// TestLeavesIdentity: a process that has run for as long as a Lease lasts, or that is told to end, leaves who it was; one that fails before does not.
func TestLeavesIdentity(t *testing.T) {
	for name, test := range map[string]struct {
		runs       time.Duration
		told, left bool
	}{
		"told to end":                {time.Second, true, true},
		"fails soon":                 {14 * time.Second, false, false},
		"fails after a Lease's time": {16 * time.Second, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Config{
				Role: role.Config{Identity: "edge-1_a", LeaseDuration: 15 * time.Second}, IdentityFile: filepath.Join(t.TempDir(), "identity"), Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithTimeout(t.Context(), test.runs)
				defer end()
				p.leaveIdentity(ctx, func() bool { return test.told })
			})
			want := ""
			if test.left {
				want = "edge-1_a"
			}
			if got := Former(p.IdentityFile, "edge-1", p.Logger); got != want {
				t.Errorf("left %q, want %q", got, want)
			}
		})
	}
}

// TestFormer: who the last process was is not taken from what cannot be that.
func TestFormer(t *testing.T) {
	for text, said := range map[string]string{
		"edge-1_a":                           "",
		"edge-2_a":                           "of another node",
		"":                                   "of another node",
		"edge-1_" + strings.Repeat("a", 300): "more than 300 bytes",
	} {
		var log strings.Builder
		logger, path := slog.New(slog.NewTextHandler(&log, nil)), filepath.Join(t.TempDir(), "identity")
		if got := Former(path, "edge-1", logger); got != "" || log.String() != "" {
			t.Errorf("of no file it is %q, said %s", got, log.String())
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want := text
		if said != "" {
			want = ""
		}
		if got := Former(path, "edge-1", logger); got != want || !strings.Contains(log.String(), said) || said == "" && log.String() != "" {
			t.Errorf("%.20q: is %q, said %s", text, got, log.String())
		}
	}
}
