package images

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/exchange"
)

// still is a pool whose desk knows what a node has.
type still struct{ Pool }

// Ask implements Pool.
func (still) Ask(context.Context, exchange.ImagesAsk) (exchange.ImagesAnswer, error) {
	return exchange.ImagesAnswer{Desk: "d", Known: true}, nil
}

// BenchmarkLook is what a mirror costs each two seconds while nothing happens. B/op is what becomes garbage.
func BenchmarkLook(b *testing.B) {
	s := &Store{Root: b.TempDir()}
	if err := os.MkdirAll(s.blobs(), 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range exchange.MaxHolds {
		if err := os.WriteFile(filepath.Join(s.blobs(), fmt.Sprintf("%064x", i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	m := New(Config{
		Node: "edge-1", Store: s, Pool: still{}, Metrics: NewMetrics(),
		Clock: clocktesting.NewFakeClock(time.Now().Add(time.Hour)), Logger: slog.New(slog.DiscardHandler),
	})
	m.account.look(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		m.account.look(b.Context())
	}
}
