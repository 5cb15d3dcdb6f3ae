package bulletin

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// fixed is a Holder of one text.
type fixed struct{ text string }

func (f *fixed) Text() (text []byte, tag string)     { return []byte(f.text), TagOf([]byte(f.text)) }
func (*fixed) Take([]byte) (changed bool, err error) { return false, nil }
func (*fixed) TakeOfCloud([]byte) (bool, error)      { return false, nil }
func (*fixed) Changed() <-chan struct{}              { return nil }
func (*fixed) Lacks([]byte) []byte                   { return nil }

// streams is a cloud in which watches stay open until somebody leaves them.
type streams struct {
	mu   sync.Mutex
	open int
	all  int
}

func (w *streams) RoundTrip(req *http.Request) (*http.Response, error) {
	r, end := io.Pipe()
	w.count(1)
	context.AfterFunc(req.Context(), func() {
		w.count(-1)
		_ = end.CloseWithError(req.Context().Err())
	})
	return &http.Response{StatusCode: http.StatusOK, Body: r}, nil
}

func (w *streams) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open += n
	w.all += max(n, 0)
}

func (w *streams) now() (open, all int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, w.all
}

// TestConfirm: a follower watches no document while it is confirmed again and again that it holds the newest of all. It
// watches when the confirmations end, are of other texts or are old, and when it leads.
func TestConfirm(t *testing.T) {
	for name, test := range map[string]struct {
		sum   func(right string) string
		late  time.Duration // how old confirmations are
		leads bool
		want  int // watches that are open
	}{
		"confirmed":         {want: 0},
		"half a minute old": {late: 35 * time.Second, want: 0},
		"of other texts":    {sum: func(string) string { return Sum("a", "b", "c") }, want: 3},
		"too old":           {late: lasts, want: 3},
		"it leads":          {leads: true, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud, b := &streams{}, Board(nil)
				var briefs []string
				var follows atomic.Bool
				follows.Store(true)
				for i := range 3 {
					text := fmt.Sprint("text ", i, "\n")
					briefs = append(briefs, Brief([]byte(strings.TrimSpace(text))))
					b = append(b, New(&fixed{text}, &Document{
						Follows: follows.Load, About: text, Cloud: Place{Name: "x"}, Max: 100, Log: slog.New(slog.DiscardHandler),
					}))
				}
				sum := Sum(briefs...)
				if test.sum != nil {
					sum = test.sum(sum)
				}
				ctx, cancel := context.WithCancel(context.Background())
				var all sync.WaitGroup
				for _, d := range b {
					all.Go(func() { d.Follow(ctx, cloud, clock.RealClock{}) })
				}
				pass := func(d time.Duration, confirms bool) (open int) {
					for range d / (10 * time.Second) {
						time.Sleep(10 * time.Second)
						synctest.Wait()
						if confirms {
							b.Confirm(sum, time.Now().Add(-test.late), time.Now())
						}
						synctest.Wait()
					}
					open, _ = cloud.now()
					return open
				}
				if open := pass(restsAfter-10*time.Second, true); open != 3 {
					t.Errorf("%d watches are open at the begin", open)
				}
				follows.Store(!test.leads)
				if open := pass(10*time.Minute, true); open != test.want {
					t.Errorf("%d watches are open, want %d", open, test.want)
				}
				if _, all := cloud.now(); test.want == 0 && all != 3 {
					t.Errorf("%d watches were opened in ten minutes", all)
				}
				if rests := b.Rests(time.Now()); rests != (test.want == 0) {
					t.Errorf("rests: %v", rests)
				}
				if test.want == 0 && !b[0].Live(time.Now()) {
					t.Error("what is confirmed is not live")
				}
				if open := pass(2*lasts, false); open != 3 || b.Rests(time.Now()) {
					t.Errorf("%d watches are open when nothing is confirmed any more", open)
				}
				pass(10*time.Minute, true)
				follows.Store(false)
				if open := pass(20*time.Second, false); open != 3 {
					t.Errorf("%d watches are open of one that leads", open)
				}
				pass(10*time.Minute, true)
				follows.Store(true)
				for _, d := range b {
					d.Reset()
				}
				if open := pass(10*time.Second, false); open != 3 {
					t.Errorf("%d watches are open when the cloud is another one", open)
				}
				cancel()
				all.Wait()
			})
		})
	}
}
