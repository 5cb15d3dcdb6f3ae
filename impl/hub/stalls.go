package hub

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// stalls ends answers whose client takes nothing, whoever gives them: each holds a stream, buffers, and what waits for it at the cloud. A client has to take
// what one write or flush holds, 32 KiB at most, within stallTimeout. Relays end their own sooner.
type stalls struct {
	clock  clock.WithTicker
	count  func()
	logger *slog.Logger

	mu   sync.Mutex
	open map[*recorder]struct{}
}

// record begins an answer; forget has to be called at its end.
func (s *stalls) record(w http.ResponseWriter) *recorder {
	r := &recorder{ResponseWriter: w, clock: s.clock}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*recorder]struct{}{}
	}
	s.open[r] = struct{}{}
	return r
}

func (s *stalls) forget(r *recorder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, r)
}

// run looks for answers that stand still until ctx ends.
func (s *stalls) run(ctx context.Context) error {
	tick := s.clock.NewTicker(stallTimeout / 6)
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

// sweep ends answers that stand still. It holds the lock meanwhile, so that none of them is over: a deadline of one that is would hit the
// next answer on its connection.
func (s *stalls) sweep() {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.open {
		began := r.writing.Load()
		if began == 0 || now.Sub(time.Unix(0, began)) < stallTimeout {
			continue
		}
		delete(s.open, r)
		s.count()
		s.logger.Info("ending an answer whose client takes nothing")
		_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(time.Unix(1, 0))
	}
}
