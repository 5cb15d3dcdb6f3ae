package lead

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	// JuryPatience is how long a case waits for other hubs: they read the coordinator's status every 30 s, and ask the
	// cloud twice, 10 s apart.
	JuryPatience = time.Minute
	// Deference is how long a marked node leaves a free election Lease to others. It is less than the 40 s after which a
	// cluster takes nodes for dead whose heartbeats nobody forwards.
	Deference = 30 * time.Second

	markFirst = 10 * time.Minute
	markMost  = 24 * time.Hour
	markKept  = 24 * time.Hour // after its end a mark is remembered, so that the next one lasts longer
	maxMarks  = 1000
	maxVoices = 1000
)

// JuryState is what is known of lies in a pool.
type JuryState struct {
	Serial int64  `json:"serial"` // of the last entry
	Case   *Case  `json:"case,omitempty"`
	Marks  []Mark `json:"marks,omitempty"`
	// resource: the first history of the cloud that does not come from a leader that lied.
	Floors map[string]uint64 `json:"floors,omitempty"`
}

// Case is a doubt that is not decided yet.
type Case struct {
	contract.Doubt
	Serial  int64    `json:"serial"`
	Confirm []string `json:"confirm"` // nodes
	Deny    []string `json:"deny,omitempty"`
}

// Mark is of a node that lied, or was not borne out.
type Mark struct {
	Node   string `json:"node"`
	Lied   bool   `json:"lied"`           // as leader
	Term   string `json:"term,omitempty"` // which it led when that was found; it does not renew its Lease in it
	Count  int    `json:"count"`
	Serial int64  `json:"serial"`
}

// lasts is for how long a mark counts.
func (m Mark) lasts() time.Duration {
	d := markFirst
	for range m.Count - 1 {
		if d *= 2; d >= markMost {
			return markMost
		}
	}
	return d
}

// CaseAges tells how long ago an entry was first seen.
type CaseAges func(serial int64) time.Duration

// marked is the mark of a node that counts now.
func (s JuryState) marked(node string, ages CaseAges) (Mark, bool) {
	i := slices.IndexFunc(s.Marks, func(m Mark) bool { return m.Node == node && ages(m.Serial) < m.lasts() })
	if i < 0 {
		return Mark{}, false
	}
	return s.Marks[i], true
}

// hear takes what the hub of a node says. leader is who leads now.
func (s JuryState) hear(node string, d contract.Doubt, leader string, ages CaseAges) (JuryState, error) {
	c := s.Case
	switch _, mute := s.marked(node, ages); {
	case mute:
		return s, fmt.Errorf("node %s is not heard for a while: the others did not bear it out, or it lied as leader", node)
	case node == d.Leader:
		return s, fmt.Errorf("node %s is the leader that is doubted", node)
	case c == nil && !d.Confirmed:
		return s, fmt.Errorf("nobody doubts node %s", d.Leader)
	case c == nil && d.Leader != leader:
		return s, fmt.Errorf("node %s does not lead: %q does", d.Leader, leader)
	case c != nil && c.Leader != d.Leader:
		return s, fmt.Errorf("node %s is doubted, not %s", c.Leader, d.Leader)
	case c != nil && (slices.Contains(c.Confirm, node) || slices.Contains(c.Deny, node)):
		return s, nil
	case c != nil && len(c.Confirm)+len(c.Deny) >= maxVoices:
		return s, fmt.Errorf("%d hubs have spoken", maxVoices)
	}
	if c == nil {
		s.Serial++
		c = &Case{Doubt: d, Serial: s.Serial}
		c.Doubt.Confirmed = false
	} else {
		c = &Case{c.Doubt, c.Serial, slices.Clone(c.Confirm), slices.Clone(c.Deny)}
	}
	if d.Confirmed {
		c.Confirm = append(c.Confirm, node)
	} else {
		c.Deny = append(c.Deny, node)
	}
	s.Case = c
	return s, nil
}

// decide closes a case if that can be done. term is what the doubted node leads now, "" if it does not.
func (s JuryState) decide(term string, ages CaseAges, floors map[string]uint64) (next JuryState, lied, decided bool) {
	c := s.Case
	if c == nil || (len(c.Confirm) < 2 || len(c.Deny) > 0) && ages(c.Serial) < JuryPatience {
		return s, false, false
	}
	s.Case, s.Marks = nil, slices.Clone(s.Marks)
	lied = len(c.Confirm) > len(c.Deny)
	var wrong []string
	if lied {
		s.mark(Mark{Node: c.Leader, Lied: true, Term: term}, ages)
		s.Floors = floors
		wrong = c.Deny
		if len(c.Confirm) == 1 {
			wrong = append(slices.Clone(wrong), c.Confirm[0])
		}
	} else {
		wrong = c.Confirm
	}
	for _, node := range wrong {
		s.mark(Mark{Node: node}, ages)
	}
	return s, lied, true
}

// mark adds a mark, in place of the node's earlier one, and forgets old ones.
func (s *JuryState) mark(m Mark, ages CaseAges) {
	s.Serial++
	m.Serial, m.Count = s.Serial, 1
	s.Marks = slices.DeleteFunc(s.Marks, func(old Mark) bool {
		over := ages(old.Serial) >= old.lasts()+markKept
		if old.Node == m.Node && !over {
			m.Count = old.Count + 1
		}
		return over || old.Node == m.Node
	})
	s.Marks = append(s.Marks, m)
	if n := len(s.Marks) - maxMarks; n > 0 {
		s.Marks = slices.Delete(s.Marks, 0, n)
	}
}

// serials are those of all entries.
func (s JuryState) serials() map[int64]bool {
	all := map[int64]bool{}
	for _, m := range s.Marks {
		all[m.Serial] = true
	}
	if s.Case != nil {
		all[s.Case.Serial] = true
	}
	return all
}

// raise is the floors, of which none is lower than before.
func (s JuryState) raise(to map[string]uint64) map[string]uint64 {
	all := maps.Clone(s.Floors)
	if all == nil {
		all = map[string]uint64{}
	}
	for resource, n := range to {
		all[resource] = max(all[resource], n)
	}
	return all
}
