package manifests

import (
	"context"
	"errors"
	"log/slog"
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
		looked, there := 0, false
		ended := make(chan bool, 1)
		begin := func() {
			go func() {
				ended <- g.Granted(ctx, "something", func(context.Context) error {
					if looked++; there {
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
		if most := 22; looked < int(time.Hour/Rarest) || looked > most {
			t.Errorf("looked %d times in a quiet hour, want each five minutes in the end, and %d times at most", looked, most)
		}
		there, looked = true, 0
		g.Wake()
		g.Wake()
		time.Sleep(Soonest)
		synctest.Wait()
		select {
		case ok := <-ended:
			if !ok || looked != 1 {
				t.Errorf("%v after %d looks", ok, looked)
			}
		default:
			t.Error("it is there, and who waits was not woken")
		}
		there, looked = false, 0
		begin()
		time.Sleep(time.Hour)
		g.Wake()
		time.Sleep(Soonest)
		synctest.Wait()
		there = true // a definition is served a moment after it was written
		time.Sleep(2 * Soonest)
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("who was woken a moment too early does not look again soon")
		}
		there = false
		begin()
		cancel()
		if <-ended {
			t.Error("granted at the end")
		}
	})
}
