package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// failure is the first thing that etcd could not survive. etcd says so by logging at level fatal or panic, after which
// its logger is expected to end the process; here only the goroutine ends, and the owner of the store hears of it.
type failure struct {
	once sync.Once
	c    chan error
}

func newFailure() *failure { return &failure{c: make(chan error, 1)} }

// OnWrite implements zapcore.CheckWriteHook.
func (f *failure) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	f.once.Do(func() { f.c <- fmt.Errorf("etcd: %s", message(e.Message, fields)) })
	runtime.Goexit()
}

// message joins an entry and its error, if it has one.
func message(msg string, fields []zapcore.Field) string {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			return msg + ": " + err.Error()
		}
	}
	return msg
}

var errStopped = errors.New("etcd stopped by itself")

// newLogger returns what etcd logs to: slog, at levels that fit an operator of Weir. What etcd calls information is
// detail here, and so are its warnings but for those about slow disks.
func newLogger(l *slog.Logger, f *failure) *zap.Logger {
	return zap.New(&core{logger: l.With("component", "etcd")}, zap.WithFatalHook(f), zap.WithPanicHook(f))
}

type core struct {
	logger *slog.Logger
	fields []zapcore.Field
}

func level(e zapcore.Entry) slog.Level {
	switch {
	case e.Message == "failed to update storage version", // of a database without a snapshot; the next try succeeds
		e.Message == "setting up serving from embedded etcd failed.": // every stop says so
		return slog.LevelDebug
	case e.Level >= zapcore.DPanicLevel:
		return slog.LevelDebug // the owner of the store reports it
	case e.Level == zapcore.ErrorLevel, e.Level == zapcore.WarnLevel && strings.Contains(e.Message, "slow"):
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Enabled implements zapcore.Core. Entries that end the process must always pass.
func (c *core) Enabled(l zapcore.Level) bool {
	return l >= zapcore.WarnLevel || c.logger.Enabled(context.Background(), slog.LevelDebug)
}

// With implements zapcore.Core.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.logger, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

// Check implements zapcore.Core.
func (c *core) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements zapcore.Core.
func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(enc)
	}
	attrs := make([]slog.Attr, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		attrs = append(attrs, slog.Any(k, v))
	}
	c.logger.LogAttrs(context.Background(), level(e), e.Message, attrs...)
	return nil
}

// Sync implements zapcore.Core.
func (*core) Sync() error { return nil }
