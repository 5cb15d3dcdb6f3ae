package member

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/role"
)

// TestLeavesIdentity: a process that has held the Lease for as long as one lasts, or that is told to end while it holds it, leaves who it was. One that fails
// before, or that does not lead, leaves what is there: the one before may still hold the Lease.
func TestLeavesIdentity(t *testing.T) {
	type step struct {
		at          int // in seconds
		holds, told bool
	}
	for name, test := range map[string]struct {
		steps []step
		left  int
	}{
		"told to end as leader":                  {[]step{{0, false, false}, {1, true, false}, {2, true, true}, {3, true, true}}, 1},
		"told to end as follower":                {[]step{{0, false, false}, {40, false, true}}, 0},
		"fails soon":                             {[]step{{40, true, false}, {54, true, false}}, 0},
		"leads for a Lease's time":               {[]step{{40, true, false}, {55, true, false}, {90, true, false}}, 1},
		"leads twice, each time for a moment":    {[]step{{0, true, false}, {10, false, false}, {20, true, false}, {30, true, false}}, 0},
		"has told, and is told to end":           {[]step{{0, true, false}, {15, true, false}, {20, true, true}}, 1},
		"follows for longer than a Lease's time": {[]step{{0, false, false}, {16, false, false}, {60, false, false}}, 0},
	} {
		var h heritage
		left := 0
		for _, s := range test.steps {
			if h.due(time.Duration(s.at)*time.Second, 15*time.Second, s.holds, s.told) {
				left++
			}
		}
		if left != test.left {
			t.Errorf("%s: left %d times, want %d", name, left, test.left)
		}
	}
	c := &Config{Role: role.Config{Identity: "edge-1_a"}, IdentityFile: filepath.Join(t.TempDir(), "identity"), Logger: slog.New(slog.DiscardHandler)}
	c.leaveIdentity()
	if got := Former(c.IdentityFile, "edge-1", c.Logger); got != "edge-1_a" {
		t.Errorf("left %q", got)
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
