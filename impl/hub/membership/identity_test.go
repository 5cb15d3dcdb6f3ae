package membership

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

// TestLeaveIdentity: what a process leaves is what the next one takes.
func TestLeaveIdentity(t *testing.T) {
	file, logger := filepath.Join(t.TempDir(), "identity"), slog.New(slog.DiscardHandler)
	first, err := Named(role.Config{}, "edge-1", file, logger)
	check(t, err)
	if first.Former != "" || contract.NodeOfIdentity(first.Identity) != "edge-1" {
		t.Errorf("the first process is %q behind %q, want one of edge-1 behind none", first.Identity, first.Former)
	}
	p := &Pool{Config: &Config{IdentityFile: file, Logger: logger}, Member: &Member{identity: first.Identity}}
	p.leaveIdentity()
	next, err := Named(role.Config{}, "edge-1", file, logger)
	check(t, err)
	if next.Former != first.Identity || next.Identity == first.Identity || next.Seed == first.Seed {
		t.Errorf("behind %+v comes %+v, want another one that knows it", first, next)
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
		if got := former(path, "edge-1", logger); got != "" || log.String() != "" {
			t.Errorf("of no file it is %q, said %s", got, log.String())
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want := text
		if said != "" {
			want = ""
		}
		if got := former(path, "edge-1", logger); got != want || !strings.Contains(log.String(), said) ||
			said == "" && log.String() != "" {
			t.Errorf("%.20q: is %q, said %s", text, got, log.String())
		}
	}
}
