// Package quiet limits log lines that clients cause: each message is logged once in a while, and the number of lines in
// that time is bounded, whatever clients write into their requests.
//
// A Log starts no goroutine.
package quiet

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// For is the while.
	For = 10 * time.Minute
	// lines is how many are said in it, ofKind how many of them of one kind.
	lines, ofKind = 64, 8
	// long is what is said of one value.
	long = 512
)

// Log says things once in a while. Make it with New.
type Log struct {
	clock  clock.PassiveClock
	logger *slog.Logger

	mu     sync.Mutex
	began  time.Time
	said   map[string]bool
	kinds  map[string]int
	untold int
}

// New returns a Log that writes to a logger.
func New(c clock.PassiveClock, logger *slog.Logger) *Log { return &Log{clock: c, logger: logger} }

// Say logs a message unless the same was said lately, or too much. The kind is what is wrong, or who is at fault; it
// must hold nothing that a client can choose. What was not said is counted in the next line: untold.
func (l *Log) Say(level slog.Level, kind, msg string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = s[:min(len(s), long)]
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

func (l *Log) take(kind, text string) (untold int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.clock.Now(); l.said == nil || now.Sub(l.began).Abs() >= For {
		l.began, l.said, l.kinds = now, map[string]bool{}, map[string]int{}
	}
	if l.said[text] || len(l.said) >= lines || l.kinds[kind] >= ofKind {
		l.untold++
		return 0, false
	}
	l.said[text] = true
	l.kinds[kind]++
	untold, l.untold = l.untold, 0
	return untold, true
}
