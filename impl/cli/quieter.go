package cli

import (
	"context"
	"log/slog"
)

// Quieter turns what a library calls information into detail.
func Quieter(h slog.Handler) slog.Handler { return quieter{h} }

type quieter struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h quieter) Enabled(ctx context.Context, l slog.Level) bool {
	return h.Handler.Enabled(ctx, lower(l))
}

// Handle implements slog.Handler.
func (h quieter) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h quieter) WithAttrs(a []slog.Attr) slog.Handler { return quieter{h.Handler.WithAttrs(a)} }

// WithGroup implements slog.Handler.
func (h quieter) WithGroup(name string) slog.Handler { return quieter{h.Handler.WithGroup(name)} }

func lower(l slog.Level) slog.Level {
	if l < slog.LevelWarn {
		return min(l, slog.LevelDebug)
	}
	return l
}
