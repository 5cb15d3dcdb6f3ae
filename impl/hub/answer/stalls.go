package answer

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/limit"
)

// Stalls ends answers whose client takes nothing, whoever gives them: each holds a stream, buffers, and what waits for
// it at the cloud. A client has to take what one write or flush holds, 32 KiB at most, within limit.StallTimeout.
// Relays end their own sooner.
type Stalls struct {
	clock  clock.WithTicker
	count  func()
	served *Served
	logger *slog.Logger

	mu   sync.Mutex
	open map[*Recorder]struct{}
}

// NewStalls makes what run then looks after; count is told of each answer that it ended, and served of what clients
// got.
func NewStalls(clk clock.WithTicker, count func(), served *Served, logger *slog.Logger) *Stalls {
	return &Stalls{clock: clk, count: count, served: served, logger: logger, open: map[*Recorder]struct{}{}}
}

// Standing is how many answers wait for their client now.
func (s *Stalls) Standing() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.open {
		if r.writing.Load() != 0 {
			n++
		}
	}
	return n
}

// Record begins an answer; forget has to be called at its end.
func (s *Stalls) Record(w http.ResponseWriter) *Recorder {
	r := &Recorder{ResponseWriter: w, clock: s.clock, served: s.served}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[r] = struct{}{}
	return r
}

// Forget ends an answer.
func (s *Stalls) Forget(r *Recorder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, r)
}

// Run looks for answers that stand still until ctx ends.
func (s *Stalls) Run(ctx context.Context) error {
	tick := s.clock.NewTicker(limit.StallTimeout / 6)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
			s.sweep()
		}
	}
}

// sweep ends answers that stand still. It holds the lock meanwhile, so that none of them is over: a deadline of one
// that is would hit the next answer on its connection.
func (s *Stalls) sweep() {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.open {
		began := r.writing.Load()
		if began == 0 || now.Sub(time.Unix(0, began)) < limit.StallTimeout {
			continue
		}
		delete(s.open, r)
		s.count()
		s.logger.Info("ending an answer whose client takes nothing")
		_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(time.Unix(1, 0))
	}
}
