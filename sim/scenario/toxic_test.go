package scenario_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/scenario"
)

func TestToxicBegins(t *testing.T) {
	lab := &lab{lines: map[scenario.LinkName]*line{scenario.CloudLink: {}, scenario.CoordinatorLink: {}}}
	k := &scenario.Toxic{Type: scenario.LimitData, Attributes: map[string]int64{"bytes": 4000}}
	at := &scenario.Aim{
		Fault: scenario.Fault{Kind: k, Link: scenario.BothLinks, Direction: link.Up}, Nodes: []string{"harbour-1"},
	}
	going, err := k.Begin(t.Context(), lab, at)
	if err != nil {
		t.Fatal(err)
	}
	const want = "limit_data up of harbour-1 map[bytes:4000]"
	if diff := cmp.Diff([]string{"cloud: " + want, "coordinator: " + want}, lab.is()); diff != "" {
		t.Errorf("on the links (-want +got):\n%s", diff)
	}
	if err := going.Heal(t.Context()); err != nil || len(lab.is()) > 0 {
		t.Errorf("healed: %v, and %q are left", err, lab.is())
	}
	at.Nodes = append(at.Nodes, refused)
	if _, err := k.Begin(t.Context(), lab, at); err == nil || len(lab.is()) > 0 {
		t.Errorf("refused: %v, and %q are left", err, lab.is())
	}
}

// TestToxicIsTold: a report says what a toxic was.
func TestToxicIsTold(t *testing.T) {
	f := scenario.Fault{
		Target: scenario.Leader, Link: scenario.CloudLink, Direction: link.Down,
		Kind: &scenario.Toxic{Type: scenario.Slicer, Attributes: map[string]int64{"average_size": 4000, "delay": 1500}},
	}
	const want = "slicer leader, link cloud down: average_size 4kB, delay 1.5ms"
	if got := f.String(); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestToxicsOfStorms: storms have toxics of all types. A seed draws the same ones again, and leaves the rest of a storm
// as it was before there were any.
func TestToxicsOfStorms(t *testing.T) {
	s, err := scenario.Parse("", []byte(strings.Replace(small, "faults:\n",
		"faults: [{at: 1s, action: storm, target: pool, for: 20s}]\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	types := map[scenario.Action]int{}
	for range 100 {
		s.Seed++
		drawn := s.Drawn()
		if diff := cmp.Diff(drawn.Faults, s.Drawn().Faults, whole); diff != "" {
			t.Fatalf("seed %d draws another storm (-first +second):\n%s", s.Seed, diff)
		}
		roundTrip(t, drawn)
		for _, f := range drawn.Faults {
			if _, toxic := f.Kind.(*scenario.Toxic); toxic {
				types[f.Action()]++
			}
		}
	}
	if len(types) != 5 {
		t.Errorf("drawn were %v, want all five", types)
	}
	const oldest = "freeze leader|stop hub/1|kill coordinator|freeze apiserver|cut hub/1, link cloud down|" +
		"kill coordinator, disk lost|cut pool, link cloud down|slow pool, link cloud"
	s.Seed = 7
	var rest []string
	for _, f := range s.Drawn().Faults {
		if _, toxic := f.Kind.(*scenario.Toxic); !toxic {
			rest = append(rest, f.String())
		}
	}
	if got := strings.Join(rest, "|"); got != oldest {
		t.Errorf("seed 7 draws %s", got)
	}
}
