package uplink

import (
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestLeft: whether the cloud is away is known as soon as it gives a sign of life, or is judged to be away. A caller
// waits no longer than a bound.
func TestLeft(t *testing.T) {
	gone := errors.New("no answer")
	for name, c := range map[string]struct {
		before, then func(s *server)
		want         bool
		after        time.Duration
	}{
		"it answers":           {nil, func(s *server) { s.heard() }, false, time.Second},
		"it is judged":         {nil, func(s *server) { s.observe(gone) }, true, time.Second},
		"it was judged before": {func(s *server) { s.observe(gone) }, nil, true, 0},
		"it was heard before":  {func(s *server) { s.heard() }, nil, false, leftWithin},
		"one probe failed":     {func(s *server) { s.observe(nil) }, func(s *server) { s.observe(gone) }, false, leftWithin},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers := map[Class][]*url.URL{}
				for _, class := range Classes {
					servers[class] = []*url.URL{{Scheme: "https", Host: "a.example"}}
				}
				k := NewCloud(CloudConfig{
					Servers: servers, Policy: testPolicy, Roots: &Bundle{}, Node: &Pair{}, Hub: &Pair{},
					Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
				})
				if c.before != nil {
					c.before(k.servers[0])
				}
				if c.then != nil {
					time.AfterFunc(time.Second, func() { c.then(k.servers[0]) })
				}
				began := time.Now()
				got := k.Left(t.Context())
				if took := time.Since(began); got != c.want || took < c.after || took > c.after+2*leftPoll {
					t.Errorf("%v after %v, want %v after %v", got, took, c.want, c.after)
				}
				if asked := len(k.servers[0].kicks) == 1; asked == (c.after == 0) {
					t.Errorf("it was asked: %v", asked)
				}
			})
		})
	}
}
