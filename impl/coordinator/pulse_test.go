package coordinator_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// holder is who holds the election Lease.
func (c *caller) holder() string {
	c.t.Helper()
	lease, err := c.leases(contract.LeaseNamespace).Get(c.t.Context(), contract.ElectionLease, metav1.GetOptions{})
	check(c.t, err)
	return *lease.Spec.HolderIdentity
}

// readAgain breaks the connections to a leader's hub once: it is read again, and keeps the Lease.
func (e *edge) readAgain(viewer *caller, holder string) {
	t := viewer.t
	t.Helper()
	_, since := e.Read()
	e.http.CloseClientConnections()
	eventually(t, "the connection to break", func() bool {
		_, now := e.Read()
		return now != since
	})
	eventually(t, "the leader to be read again", e.read)
	if h := viewer.holder(); h != holder {
		t.Errorf("the holder is %q", h)
	}
}

// TestPulse: the connection to the leader is its pulse.
func TestPulse(t *testing.T) {
	s := newPool(t).start()
	a, b, viewer := s.hub("a"), s.hub("b"), s.viewer()

	// Broken and accepted again at once: nothing happens. Broken for good: the Lease is free.
	x := a.show()
	a.elect("a_1")
	eventually(t, "the leader to be read", x.read)
	x.readAgain(viewer, "a_1")
	x.die()
	eventually(t, "the Lease to be free", func() bool { return viewer.holder() == "" })

	// The death of a leader that was takes nothing from the next one; and it may lead again.
	x = a.show()
	a.elect("a_2")
	s.clear()
	b.elect("b_1")
	x.die()

	// Silent.
	silent := b.shows
	b.shows = nil
	if h := viewer.holder(); h != "b_1" {
		t.Errorf("the holder is %q", h)
	}
	silent.freeze()
	eventually(t, "a silent leader to lose the Lease", func() bool { return viewer.holder() == "" })
}

// TestLeaderOfBeforeARestart: a Lease that a disk held is free soon if its holder cannot be read, long before it
// expires by the clock of a coordinator that has just started; and stays if it can.
func TestLeaderOfBeforeARestart(t *testing.T) {
	for _, what := range []string{"dead", "alive"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newPool(t)
			s := p.start()
			a := s.hub("a")
			leader := a.show(leaderRelay(t, 100))
			a.elect("a_1")
			s.stop()
			s = p.start()
			viewer, began := s.viewer(), time.Now()
			if what == "dead" {
				leader.die()
				eventually(t, "the Lease to be free", func() bool { return viewer.holder() == "" })
				s.hub("b").elect("b_1")
				return
			}
			eventually(t, "it to be read", func() bool { return viewer.reached() == 100 })
			eventually(t, "time to pass", func() bool { return time.Since(began) > 3*contract.PulseSilence })
			if h := viewer.holder(); h != "a_1" {
				t.Errorf("the holder is %q", h)
			}
		})
	}
}
