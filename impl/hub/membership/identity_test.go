package membership

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/role"
)

// TestLeaveIdentity: what a process leaves is what the next one takes.
func TestLeaveIdentity(t *testing.T) {
	c := &Config{
		Role: role.Config{Identity: "edge-1_a"}, IdentityFile: filepath.Join(t.TempDir(), "identity"),
		Logger: slog.New(slog.DiscardHandler),
	}
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
		if got := Former(path, "edge-1", logger); got != want || !strings.Contains(log.String(), said) ||
			said == "" && log.String() != "" {
			t.Errorf("%.20q: is %q, said %s", text, got, log.String())
		}
	}
}
