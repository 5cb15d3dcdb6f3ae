package member

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestProof(t *testing.T) {
	began := time.Unix(1e9, 0)
	heard, asked := began, 0
	p := &proof{rng: rand.New(rand.NewPCG(1, 1))}
	holds := func(after time.Duration, atCloud, want bool) {
		t.Helper()
		got, ask := p.holds(began.Add(after), heard, atCloud)
		if ask {
			asked++
		}
		if got != want {
			t.Errorf("after %v: %t", after, got)
		}
	}
	holds(time.Hour, false, true) // somebody holds the Lease

	p.noticed(began.Add(proofAge), true) // the cloud was heard just before
	holds(proofAge, true, true)          // the hub that led is first
	holds(proofAge, false, false)
	holds(proofAge+proofPause, false, true)
	p.noticed(began, false)

	p.noticed(began.Add(time.Minute), true)
	holds(time.Minute+proofPause/2, false, false)
	if asked != 0 {
		t.Error("asked before the hub that led had a chance")
	}
	holds(time.Minute+proofPause+proofSpread, false, false)
	holds(time.Minute+proofPause+proofSpread, false, false)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	heard = began.Add(time.Minute + proofAge/2)
	holds(time.Minute+proofAge/2, false, true)

	p.noticed(began, false)
	heard = began.Add(90 * time.Second)
	p.answers(began.Add(80*time.Second), 3*time.Second)
	p.answers(began.Add(83*time.Second), 3*time.Second)
	p.noticed(began.Add(83*time.Second), true) // the leader died
	holds(83*time.Second+proofPause, false, true)
	p.noticed(began, false)
	p.answers(began.Add(88*time.Second), 3*time.Second)
	p.answers(began.Add(88*time.Second+proofReturn/2), 3*time.Second)
	p.noticed(began.Add(88*time.Second+proofReturn/2), true) // all had lost the coordinator
	holds(88*time.Second+proofReturn/2, true, true)
	holds(88*time.Second+proofReturn, false, false)
	holds(88*time.Second+proofReturn/2+proofReturn, false, true)

	p.noticed(began, false)
	p.noticed(began.Add(2*time.Minute), true) // all are cut off, and the hub that led hears first
	heard = began.Add(3 * time.Minute)
	holds(3*time.Minute, true, true)
	holds(3*time.Minute, false, false)
	holds(3*time.Minute+proofYield, false, true)
}
