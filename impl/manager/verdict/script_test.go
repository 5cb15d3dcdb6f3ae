package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// begin has a monotonic reading, as times of a real clock have.
var begin = time.Now()

// TestScripts runs testdata/verdict.txt: a Machine with a grace of 50 s, stepped every second. A line is a second and
// what happens then:
//
//	node NAME POOL [unreachable] [bound[=DURATION]]   a Node says so
//	gone NAME
//	beat NAME... / delegated NAME... / backwards NAME...   Leases change
//	every NAME...        these beat every ten seconds from now on; "every" alone ends that
//	usual POLICY / policy POOL POLICY
//	lead                 with nothing left by a predecessor
//	restart              another process takes over, which heard nothing
//	done NAME
//	see NAME...          print the state of these nodes, and whether they are dead, kept, bound and owed
//	pool NAME            print whether it is heard, silent or given up
//
// What is printed is the answer; go test -rewrite writes it again.
func TestScripts(t *testing.T) {
	datadriven.RunTest(t, "testdata/verdict.txt", func(t *testing.T, d *datadriven.TestData) string {
		s := &stage{t: t, m: New(Config{Grace: 50 * time.Second}), policies: map[string]Policy{}, facts: map[string]Facts{}}
		for line := range strings.Lines(d.Input) {
			words := strings.Fields(line)
			second, err := strconv.Atoi(words[0])
			if err != nil {
				d.Fatalf(t, "%q: %v", line, err)
			}
			for ; s.second < second; s.second++ {
				s.step()
			}
			s.line = strings.TrimSpace(line)
			s.do(words[1], words[2:])
		}
		return s.out.String()
	})
}

type stage struct {
	t        *testing.T
	m        *Machine
	second   int
	line     string
	every    []string
	usual    Policy
	policies map[string]Policy
	facts    map[string]Facts
	last     Decision
	out      strings.Builder
}

func (s *stage) now() time.Time { return begin.Add(time.Duration(s.second) * time.Second) }

func (s *stage) step() {
	if s.second%10 == 0 {
		for _, name := range s.every {
			s.m.Heartbeat(s.now(), name, false, true)
		}
	}
	s.last = s.m.Step(s.now())
}

func (s *stage) do(verb string, words []string) {
	switch verb {
	case "node":
		f := Facts{Pool: strings.Trim(words[1], "-")}
		for _, w := range words[2:] {
			key, value, _ := strings.Cut(w, "=")
			f.Unreachable = f.Unreachable || key == "unreachable"
			f.Bound = f.Bound || key == "bound"
			f.BoundFor, _ = time.ParseDuration(value)
		}
		s.facts[words[0]] = f
		s.m.SetNode(s.now(), words[0], f)
	case "gone":
		delete(s.facts, words[0])
		s.m.RemoveNode(words[0])
	case "beat", "delegated", "backwards":
		for _, name := range words {
			s.m.Heartbeat(s.now(), name, verb == "delegated", verb != "backwards")
		}
	case "every":
		s.every = words
	case "usual":
		s.usual = policyIn(words[0])
		s.m.SetPolicies(s.usual, s.policies)
	case "policy":
		s.policies[words[0]] = policyIn(words[1])
		s.m.SetPolicies(s.usual, s.policies)
	case "lead":
		s.m.Lead(s.now(), Record{})
	case "restart":
		left := s.last.Record
		for name, p := range left.Pools {
			left.Pools[name] = PoolRecord{Since: p.Since.Round(0), GivenUp: p.GivenUp} // as it is read from an object
		}
		s.m = New(Config{Grace: 50 * time.Second})
		s.m.SetPolicies(s.usual, s.policies)
		for name, f := range s.facts {
			s.m.SetNode(s.now(), name, f)
		}
		s.m.Lead(s.now(), left)
	case "done":
		s.m.Done(words[0])
	case "see":
		for _, name := range words {
			fmt.Fprintln(&s.out, s.second, name, s.see(name))
		}
	case "pool":
		p, is := s.m.Step(s.now()).Pools[words[0]], "heard"
		switch {
		case p.GivenUp:
			is = "given-up"
		case p.Silent:
			is = "silent"
		}
		fmt.Fprintln(&s.out, s.second, words[0], is)
	default:
		s.t.Fatalf("%s: unknown verb", s.line)
	}
}

func (s *stage) see(name string) string {
	d := s.m.Step(s.now())
	v := d.Nodes[name]
	text := v.State.String()
	for _, mark := range []struct {
		on    bool
		word  string
		names []string
	}{
		{v.Dead, "dead", d.Record.Dead}, {v.Kept, "kept", d.Record.Kept}, {v.Bound, "bound", d.Record.Bound},
		{v.Owed, "owed", d.Record.Owed},
	} {
		if mark.on {
			text += " " + mark.word
		}
		if mark.on != slices.Contains(mark.names, name) {
			s.t.Errorf("%s: record says otherwise: %+v", s.line, d.Record)
		}
	}
	return text
}

func policyIn(s string) Policy {
	if after, ok := strings.CutPrefix(s, "evict:"); ok {
		d, err := time.ParseDuration(after)
		if err != nil {
			panic(fmt.Sprint(s, ": ", err))
		}
		return Policy{Evict: true, After: d}
	}
	return Policy{}
}
