package limit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestSay: the same once, of one kind a few, in all some, and how much was left out.
func TestSay(t *testing.T) {
	var out bytes.Buffer
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	l := NewQuiet(clock, slog.New(slog.NewTextHandler(&out, nil)))
	said := func() int {
		n := strings.Count(out.String(), "\n")
		out.Reset()
		return n
	}
	for range 100 {
		l.Say(slog.LevelWarn, "a", "the same", "x", 1)
	}
	if n := said(); n != 1 {
		t.Errorf("the same, %d times", n)
	}
	for i := range 100 {
		l.Say(slog.LevelWarn, "a", "another", "x", i)
	}
	if n := said(); n != quietOfKind-1 {
		t.Errorf("%d of one kind", n)
	}
	for i := range 10_000 {
		l.Say(slog.LevelWarn, fmt.Sprint("kind", i), "another", "x", i, "y", strings.Repeat("z", 10_000))
	}
	if size := out.Len(); size > quietLines*(quietLong+200) {
		t.Errorf("%d bytes", size)
	}
	if n := said(); n != quietLines-quietOfKind {
		t.Errorf("%d lines of all kinds", n)
	}
	clock.Step(QuietFor)
	l.Say(slog.LevelWarn, "a", "the same", "x", 1)
	left := 10_000 - (quietLines - quietOfKind)
	if line := out.String(); !strings.Contains(line, fmt.Sprint("untold=", left)) {
		t.Errorf("later: %s, want %d untold", line, left)
	}
}
