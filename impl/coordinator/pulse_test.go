package coordinator_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// pulse opens a leader's pulse; beat sends one byte, stop breaks the connection.
func (c *caller) pulse(term contract.Term) (beat func(), stop context.CancelFunc) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	body, w := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String()+contract.PulsePath, body)
	check(c.t, err)
	req.Header.Set(contract.TermHeader, term.String())
	resp, err := c.http.Do(req)
	check(c.t, err)
	c.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		c.t.Fatal(resp.Status)
	}
	return func() {
			if _, err := w.Write([]byte{0}); err != nil {
				c.t.Error(err)
			}
		}, func() {
			cancel()
			resp.Body.Close() // the transport, which waits for the request's body, looks at no context meanwhile
		}
}

// holder is who holds the election Lease.
func (c *caller) holder() string {
	c.t.Helper()
	lease, err := c.leases(contract.LeaseNamespace).Get(c.t.Context(), contract.ElectionLease, metav1.GetOptions{})
	check(c.t, err)
	return *lease.Spec.HolderIdentity
}

func TestPulse(t *testing.T) {
	s := newPool(t).start()
	a, b, viewer := s.hub("a"), s.hub("b"), s.viewer()

	// Broken and opened again at once: nothing happens. Broken for good: the Lease is free.
	term := a.elect("a_1")
	_, stop := a.pulse(term)
	again, stopAgain := a.pulse(term)
	stop()
	again()
	if h := viewer.holder(); h != "a_1" {
		t.Errorf("the holder is %q", h)
	}
	stopAgain()
	eventually(t, "the Lease to be free", func() bool { return viewer.holder() == "" })

	// A pulse of a term that is over takes nothing from the next leader.
	term = a.elect("a_2")
	_, stop = a.pulse(term)
	s.clear()
	next := b.elect("b_1")
	_, stopNext := b.pulse(next)
	stop()

	// Silent.
	eventually(t, "a silent leader to lose the Lease", func() bool { return viewer.holder() == "" })
	stopNext()
	a.want(http.StatusConflict, http.MethodPost, contract.PulsePath, "", contract.TermHeader, next.String())
	viewer.want(http.StatusForbidden, http.MethodPost, contract.PulsePath, "", contract.TermHeader, next.String())
}

// TestPulseThatBeats: as long as bytes come, the Lease stays.
func TestPulseThatBeats(t *testing.T) {
	s := newPool(t).start()
	a := s.hub("a")
	beat, _ := a.pulse(a.elect("a_1"))
	tick := time.NewTicker(contract.PulsePeriod)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < 2*contract.PulseSilence; <-tick.C {
		beat()
	}
	if h := a.holder(); h != "a_1" {
		t.Errorf("the holder is %q", h)
	}
}

// TestLeaderOfBeforeARestart: a Lease that a disk held is free soon if its holder sends no pulse, long before it expires by the clock of a
// coordinator that has just started; and stays if it does, or if it has renewed the Lease and is about to send one.
func TestLeaderOfBeforeARestart(t *testing.T) {
	for _, what := range []string{"dead", "alive", "renewed"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newPool(t)
			s := p.start()
			term := s.hub("a").elect("a_1")
			s.stop()
			s = p.start()
			viewer, began, beat := s.viewer(), time.Now(), func() {}
			switch what {
			case "dead":
				eventually(t, "the Lease to be free", func() bool { return viewer.holder() == "" })
				s.hub("b").elect("b_1")
				return
			case "alive":
				beat, _ = s.hub("a").pulse(term)
			case "renewed":
				s.hub("a").elect("a_1")
			}
			tick := time.NewTicker(contract.PulsePeriod)
			defer tick.Stop()
			for ; time.Since(began) < 3*contract.PulseSilence; <-tick.C {
				beat()
			}
			if h := viewer.holder(); h != "a_1" {
				t.Errorf("the holder is %q", h)
			}
		})
	}
}
