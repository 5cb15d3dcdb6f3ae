package limit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// QuietFor is the while.
	QuietFor = 10 * time.Minute
	// quietLines is how many are said in it, quietOfKind how many of them of one kind.
	quietLines, quietOfKind = 64, 8
	// quietLong is what is said of one value.
	quietLong = 512
)

// Quiet says things once in a while. Make it with New.
type Quiet struct {
	clock  clock.PassiveClock
	logger *slog.Logger

	mu     sync.Mutex
	began  time.Time
	said   map[string]bool
	kinds  map[string]int
	untold int
}

// NewQuiet returns a Quiet that writes to a logger.
func NewQuiet(c clock.PassiveClock, logger *slog.Logger) *Quiet {
	return &Quiet{clock: c, logger: logger}
}

// Say logs a message unless the same was said lately, or too much. The kind is what is wrong, or who is at fault; it
// must hold nothing that a client can choose. What was not said is counted in the next line: untold.
func (l *Quiet) Say(level slog.Level, kind, msg string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = s[:min(len(s), quietLong)]
		}
	}
	untold, ok := l.take(kind, fmt.Sprint(msg, args))
	if !ok {
		return
	}
	if untold > 0 {
		args = append(args, "untold", untold)
	}
	l.logger.Log(context.Background(), level, msg, args...)
}

func (l *Quiet) take(kind, text string) (untold int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.clock.Now(); l.said == nil || now.Sub(l.began).Abs() >= QuietFor {
		l.began, l.said, l.kinds = now, map[string]bool{}, map[string]int{}
	}
	if l.said[text] || len(l.said) >= quietLines || l.kinds[kind] >= quietOfKind {
		l.untold++
		return 0, false
	}
	l.said[text] = true
	l.kinds[kind]++
	untold, l.untold = l.untold, 0
	return untold, true
}
