package uplink

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// hole is a network on which nobody answers, until an attempt is given up.
type hole struct {
	dials  atomic.Int32
	giveUp chan struct{}
}

func (h *hole) DialContext(context.Context, string, string) (net.Conn, error) {
	h.dials.Add(1)
	<-h.giveUp
	return nil, syscall.ETIMEDOUT
}

// TestDialsFailTogether: where nobody answers, those that wait for a connection do not each wait for an attempt of
// their own: twenty of them would be minutes.
func TestDialsFailTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hole{giveUp: make(chan struct{})}
		d := &Dialer{Net: h, Meter: &Meter{}, TLS: &tls.Config{MinVersion: tls.VersionTLS13}, turns: newTurns()}
		var all sync.WaitGroup
		var failed atomic.Int32
		dial := func() {
			all.Go(func() {
				if _, err := d.dial(t.Context(), "tcp", "cloud:443"); err != nil {
					failed.Add(1)
				}
			})
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		for range 20 {
			dial()
		}
		h.giveUp <- struct{}{} // the others asked while it was under way: the next one tries
		synctest.Wait()
		if n, f := h.dials.Load(), failed.Load(); n != 2 || f != 1 {
			t.Errorf("%d attempts and %d failures, want 2 and 1", n, f)
		}
		time.Sleep(time.Second)
		dial()
		h.giveUp <- struct{}{}
		synctest.Wait()
		if n, f := h.dials.Load(), failed.Load(); n != 3 || f != 20 {
			t.Errorf("%d attempts and %d failures, want 3 and 20: the last asked later", n, f)
		}
		h.giveUp <- struct{}{}
		all.Wait()
	})
}
