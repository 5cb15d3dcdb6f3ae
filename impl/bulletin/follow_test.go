package bulletin

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// refusing is a cloud that shows nothing, and notes when it was asked.
type refusing struct {
	mu    sync.Mutex
	gone  bool // nobody answers
	asked []time.Time
}

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, time.Now())
	if r.gone {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: http.StatusForbidden, Status: "403 Forbidden", Body: http.NoBody}, nil
}

// pauses are those between the questions.
func (r *refusing) pauses() (all []time.Duration) {
	for i := 1; i < len(r.asked); i++ {
		all = append(all, r.asked[i].Sub(r.asked[i-1]))
	}
	return all
}

func follow(t *testing.T, r *refusing, d time.Duration, retry chan struct{}, during func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d := New(nil, &Document{
			About: "text", Cloud: Place{Name: "text-harbour"}, Max: 1, Log: slog.New(slog.DiscardHandler),
		})
		if retry != nil {
			d.retry = retry
		}
		d.Follow(ctx, r, clock.RealClock{})
	}()
	time.Sleep(d)
	synctest.Wait()
	if during != nil {
		during()
		time.Sleep(10 * time.Second)
		synctest.Wait()
	}
	cancel()
	<-done
}

// TestRefusedPauses: a cloud that refuses is asked soon, and more and more rarely; who says that it may show the text
// is heard at once, and it is asked soon again.
func TestRefusedPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, retry, before := &refusing{}, make(chan struct{}, 1), 0
		follow(t, r, 3*time.Hour, retry, func() {
			before = len(r.asked)
			retry <- struct{}{}
		})
		all := r.pauses()
		if n := before; n < 15 || n > 45 {
			t.Errorf("asked %d times in three hours", n)
		}
		if all[0] > 2*time.Second || all[before-2] < 5*time.Minute || slices.Max(all) > 15*time.Minute {
			t.Errorf("pauses %v", all)
		}
		if n := len(r.asked) - before; n < 3 {
			t.Errorf("asked %d times in the ten seconds after a grant", n)
		}
	})
}

// TestBrokenPauses: hubs that lose the cloud at once do not come back at once.
func TestBrokenPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refusing{gone: true}
		follow(t, r, 5*time.Minute, nil, nil)
		all := r.pauses()
		slices.Sort(all)
		if least, most := all[0], all[len(all)-1]; most-least < time.Second || least < watchAgain/2 || most > 2*watchAgain {
			t.Errorf("pauses from %v to %v", least, most)
		}
	})
}
