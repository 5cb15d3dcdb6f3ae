package lead

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// says is what a hub says, and whether it is heard.
type says struct {
	node    string
	confirm bool
	refused string // part of why it is not heard
}

// TestState: who is believed. a leads in all cases.
func TestState(t *testing.T) {
	for name, c := range map[string]struct {
		says   []says
		at     time.Duration // when the jury looks
		open   bool          // it cannot decide yet
		lied   bool
		marked string // nodes that are, in order
	}{
		"two confirm": {
			says: []says{{node: "b", confirm: true}, {node: "c", confirm: true}}, lied: true, marked: "a!",
		},
		"one, too soon": {says: []says{{node: "b", confirm: true}}, at: JuryPatience - 1, open: true},
		"one, nobody else can tell": {
			says: []says{{node: "b", confirm: true}}, at: JuryPatience, lied: true, marked: "a! b",
		},
		"one, and one denies": {says: []says{{node: "b", confirm: true}, {node: "c"}}, at: JuryPatience, marked: "b"},
		"who speaks twice counts once": {
			says: []says{{node: "b", confirm: true}, {node: "b", confirm: true}}, at: JuryPatience - 1, open: true,
		},
		"two, and one denies: not yet": {
			says: []says{{node: "b", confirm: true}, {node: "c"}, {node: "d", confirm: true}}, at: JuryPatience - 1, open: true,
		},
		"two, and one denies": {
			says: []says{{node: "b", confirm: true}, {node: "c"}, {node: "d", confirm: true}}, at: JuryPatience, lied: true,
			marked: "a! c",
		},
		"the leader is no witness": {
			says: []says{{node: "b", confirm: true}, {node: "a", refused: "is the leader"}}, at: JuryPatience, lied: true,
			marked: "a! b",
		},
		"a denial of what nobody said": {says: []says{{node: "b", refused: "nobody doubts"}}, at: JuryPatience, open: true},
		"a liar changes its word in vain": {
			says: []says{{node: "b", confirm: true}, {node: "b"}}, at: JuryPatience, lied: true, marked: "a! b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{t: t, leads: "a", seen: map[int64]time.Duration{}}
			w.hear(c.says)
			w.now = c.at
			lied, decided := w.decide()
			if decided == c.open || lied != c.lied || w.marks() != c.marked {
				t.Errorf("decided %t, lied %t, marked %q; want %t, %t, %q", decided, lied, w.marks(), !c.open, c.lied, c.marked)
			}
		})
	}
}

// TestLyingFollower: what one liar without a witness against it gains: one leader at a time, ever more rarely.
func TestLyingFollower(t *testing.T) {
	w := world{t: t, leads: "a", seen: map[int64]time.Duration{}}
	depose := func(leader string) bool {
		w.leads = leader
		n := w.now
		next, err := w.JuryState.hear("liar", contract.Doubt{Leader: leader, Resource: "r", Confirmed: true}, leader, w.ages)
		if err != nil {
			return false
		}
		w.take(next)
		w.now = n + JuryPatience
		lied, _ := w.decide()
		return lied
	}
	times := 0
	for w.now < 10*24*time.Hour {
		if depose([]string{"a", "b", "c"}[times%3]) {
			times++
			lies := 0
			for _, m := range w.Marks {
				if w.ages(m.Serial) < m.lasts() && m.Lied {
					lies++
				}
			}
			if lies > 1 {
				t.Errorf("at %v %d honest nodes are marked", w.now, lies)
			}
		}
		w.now += time.Minute
	}
	if times > 20 {
		t.Errorf("one liar deposed %d leaders in ten days", times)
	}
}

// TestMarksGrow: who lies again is marked for longer, a day at most; after a good time all is forgotten.
func TestMarksGrow(t *testing.T) {
	w := world{t: t, leads: "a", seen: map[int64]time.Duration{}}
	lie := func() time.Duration {
		w.hear([]says{{node: "b", confirm: true}, {node: "c", confirm: true}})
		w.decide()
		m, ok := w.JuryState.marked("a", w.ages)
		if !ok || !m.Lied {
			t.Fatalf("a is not marked: %+v", w.JuryState)
		}
		w.now += m.lasts()
		if _, still := w.JuryState.marked("a", w.ages); still {
			t.Fatal("the mark does not end")
		}
		return m.lasts()
	}
	want := markFirst
	for range 12 {
		if got := lie(); got != want {
			t.Fatalf("marked for %v, want %v", got, want)
		}
		want = min(2*want, markMost)
	}
	w.now += 2 * markMost
	if got := lie(); got != markFirst {
		t.Errorf("after a good time: %v, want %v", got, markFirst)
	}
}

// world is a state and its time.
type world struct {
	JuryState
	t     *testing.T
	leads string
	now   time.Duration
	seen  map[int64]time.Duration
}

func (w *world) ages(serial int64) time.Duration { return w.now - w.seen[serial] }

func (w *world) take(s JuryState) {
	for serial := range s.serials() {
		if _, ok := w.seen[serial]; !ok {
			w.seen[serial] = w.now
		}
	}
	w.JuryState = s
}

func (w *world) hear(all []says) {
	w.t.Helper()
	for _, s := range all {
		next, err := w.JuryState.hear(s.node, contract.Doubt{Leader: w.leads, Resource: "r", Confirmed: s.confirm}, w.leads,
			w.ages)
		if (err != nil) != (s.refused != "") || err != nil && !strings.Contains(err.Error(), s.refused) {
			w.t.Errorf("%+v: %v", s, err)
		}
		w.take(next)
	}
}

func (w *world) decide() (lied, decided bool) {
	next, lied, decided := w.JuryState.decide("term", w.ages, nil)
	w.take(next)
	return lied, decided
}

func (w *world) marks() string {
	var all []string
	for _, m := range w.Marks {
		name := m.Node
		if m.Lied {
			name += "!"
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}
