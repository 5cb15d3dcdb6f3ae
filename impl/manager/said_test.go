package manager

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/manager/pools"
	"github.com/weir-edge/weir/impl/manager/verdict"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// TestWhenSilent: what is invalid keeps pods. A schema refuses it, but one may be older.
func TestWhenSilent(t *testing.T) {
	for name, c := range map[string]struct {
		says *poolv1.WhenSilent
		want verdict.Policy
		is   bool
		bad  bool
	}{
		"nothing": {nil, verdict.Policy{}, false, false},
		"keep":    {&poolv1.WhenSilent{Action: poolv1.Keep}, verdict.Policy{}, true, false},
		"evict": {
			&poolv1.WhenSilent{Action: poolv1.Evict, After: "1h30m"}, verdict.Policy{Evict: true, After: 90 * time.Minute}, true,
			false,
		},
		"evict at once":  {&poolv1.WhenSilent{Action: poolv1.Evict, After: "0s"}, verdict.Policy{Evict: true}, true, false},
		"never":          {&poolv1.WhenSilent{Action: poolv1.Evict}, verdict.Policy{}, true, true},
		"soon":           {&poolv1.WhenSilent{Action: poolv1.Evict, After: "soon"}, verdict.Policy{}, true, true},
		"in the past":    {&poolv1.WhenSilent{Action: poolv1.Evict, After: "-1h"}, verdict.Policy{}, true, true},
		"something else": {&poolv1.WhenSilent{Action: "Delete"}, verdict.Policy{}, true, true},
		"kept for 1h":    {&poolv1.WhenSilent{Action: poolv1.Keep, After: "1h"}, verdict.Policy{}, true, true},
	} {
		if got, is, err := policyOf(c.says); got != c.want || is != c.is || (err != nil) != c.bad {
			t.Errorf("%s: %+v, %v, %v", name, got, is, err)
		}
	}
}

// TestOneBadPool: a Pool that is invalid keeps its pods, is told of once, and keeps no other from being followed.
func TestOneBadPool(t *testing.T) {
	var log bytes.Buffer
	b := newBoard(clock.RealClock{}, verdict.Config{Grace: time.Minute})
	b.tell(func(now time.Time, m *verdict.Machine) {
		for _, name := range []string{"bad", "good"} {
			m.SetNode(now, "node-of-"+name, verdict.Facts{Pool: name})
		}
	})
	s := &said{
		board: b, hubs: pools.NewLedger(clock.RealClock{}), usual: verdict.Policy{Evict: true, After: time.Hour},
		log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	h := s.handler()
	pool := func(name, after string) *poolv1.Pool {
		return &poolv1.Pool{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: poolv1.Spec{
				WhenSilent: &poolv1.WhenSilent{Action: poolv1.Evict, After: after},
			},
		}
	}
	h.OnAdd(pool("bad", "soon"), true)
	h.OnAdd(pool("good", "2h"), true)
	for range 3 {
		h.OnUpdate(nil, pool("bad", "soon"))
	}
	b.decide()
	d, _ := b.read()
	if d.Pools["bad"].Policy != (verdict.Policy{}) ||
		d.Pools["good"].Policy != (verdict.Policy{Evict: true, After: 2 * time.Hour}) {
		t.Errorf("%+v", d.Pools)
	}
	if n := strings.Count(log.String(), "whenSilent of a Pool is invalid"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}
