package manifests

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestGate: what lacks is looked for soon after something has changed, and ever more rarely while nothing does.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := NewGate(clock.RealClock{}, slog.New(slog.DiscardHandler))
		var looked atomic.Int64
		var there atomic.Bool
		ended := make(chan bool, 1)
		begin := func() {
			go func() {
				ended <- g.Granted(ctx, "something", func(context.Context) error {
					if looked.Add(1); there.Load() {
						return nil
					}
					return errors.New("it is not there")
				})
			}()
			synctest.Wait()
		}
		begin()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n, most := looked.Load(), int64(22); n < int64(time.Hour/Rarest) || n > most {
			t.Errorf("looked %d times in a quiet hour, want each five minutes in the end, and %d times at most", n, most)
		}
		there.Store(true)
		looked.Store(0)
		g.Wake()
		g.Wake()
		time.Sleep(Soonest)
		synctest.Wait()
		select {
		case ok := <-ended:
			if n := looked.Load(); !ok || n != 1 {
				t.Errorf("%v after %d looks", ok, n)
			}
		default:
			t.Error("it is there, and who waits was not woken")
		}
		there.Store(false)
		begin()
		time.Sleep(time.Hour)
		g.Wake()
		time.Sleep(Soonest)
		synctest.Wait()
		there.Store(true) // a definition is served a moment after it was written
		time.Sleep(2 * Soonest)
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("who was woken a moment too early does not look again soon")
		}
		there.Store(false)
		begin()
		cancel()
		if <-ended {
			t.Error("granted at the end")
		}
	})
}
