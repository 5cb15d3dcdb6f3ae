package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/scenario"
)

// lab is a laboratory without processes: it notes what is done. Each pool has a leader, harbour-2.
type lab struct {
	lines map[scenario.LinkName]*line
	part  part
	lost  []string
}

func (*lab) Find(_ context.Context, at *scenario.Aim) error {
	switch n, hub := at.Fault.Target.Hub(); {
	case hub:
		at.Node = fmt.Sprintf("harbour-%d", n)
	case at.Fault.Target == scenario.Leader:
		at.Node, at.Leader = "harbour-2", "harbour-2"
	case at.Fault.Target == scenario.APIServer:
		at.CutOff = true
	}
	if at.Part = string(at.Fault.Target); at.Node != "" {
		at.Part = "hub/" + at.Node
	}
	if at.Fault.Target == scenario.WholePool {
		at.Part = ""
	}
	return nil
}

func (l *lab) Part(*scenario.Aim) (scenario.Part, error)    { return &l.part, nil }
func (l *lab) Machine(*scenario.Aim) (scenario.Part, error) { return &l.part, nil }

func (l *lab) Lines(_ scenario.Pool, name scenario.LinkName) (all []scenario.Line) {
	if line := l.lines[scenario.CloudLink]; line != nil && (name.Cloud() || name == "") {
		all = append(all, line)
	}
	if line := l.lines[scenario.CoordinatorLink]; line != nil && (name.LAN() || name == "") {
		all = append(all, line)
	}
	return all
}

func (l *lab) Lost(nodes []string) { l.lost = append(l.lost, nodes...) }

func (*lab) Sleep(context.Context, time.Time) error { return nil }

// is what is on its links.
func (l *lab) is() (all []string) {
	for name, one := range l.lines {
		for _, s := range one.on {
			all = append(all, string(name)+": "+s)
		}
	}
	slices.Sort(all)
	return all
}

// line notes what is put on it, and refuses all toxics of one node.
type line struct{ on []string }

const refused = "harbour-2"

func (l *line) Cut(dir link.Direction, node string) {
	l.on = append(l.on, fmt.Sprint("cut ", dir, " of ", node))
}

func (l *line) Heal(dir link.Direction, node string) { l.drop(fmt.Sprint("cut ", dir, " of ", node)) }

func (l *line) SetRate(dir link.Direction, bits int64) {
	l.drop(fmt.Sprint("rate ", dir))
	l.on = append(l.on, fmt.Sprint("rate ", dir, " ", bits))
}

func (l *line) SetRTT(d time.Duration) {
	l.drop("rtt")
	l.on = append(l.on, fmt.Sprint("rtt ", d))
}

func (l *line) AddToxic(dir link.Direction, node, kind string, attributes map[string]int64) (func(), error) {
	if node == refused {
		return nil, errors.New("it is full")
	}
	s := fmt.Sprint(kind, " ", dir, " of ", node, " ", attributes)
	l.on = append(l.on, s)
	return func() { l.drop(s) }, nil
}

func (l *line) drop(prefix string) {
	l.on = slices.DeleteFunc(l.on, func(o string) bool { return strings.HasPrefix(o, prefix) })
}

// part notes what is done to it.
type part struct{ done []string }

func (p *part) note(what string) error {
	p.done = append(p.done, what)
	return nil
}

func (p *part) Start(context.Context) error { return p.note("start") }
func (p *part) Stop(context.Context) error  { return p.note("stop") }
func (p *part) Kill() error                 { return p.note("kill") }
func (p *part) Freeze() error               { return p.note("freeze") }
func (p *part) Thaw() error                 { return p.note("thaw") }
func (p *part) LoseDisk() error             { return p.note("lose disk") }

// TestKindsHappen: each fault of processes and links is aimed, begins and is healed as its words say.
func TestKindsHappen(t *testing.T) {
	rate, timeout := scenario.Rate(1000), &scenario.Toxic{Type: scenario.Timeout}
	pool := scenario.Pool{Name: "harbour", Nodes: 3, Coordinators: 1, Uplink: scenario.Uplink{Up: 7000, Down: 8000}}
	for _, test := range []struct {
		fault              scenario.Fault
		aim, begun, healed string
	}{
		{
			scenario.Fault{Kind: &scenario.Kill{Ending: scenario.Ending{Disk: scenario.LoseDisk}}, Target: scenario.Leader},
			"hub/harbour-2 without [harbour-2], ends", "kill", "kill, lose disk, start",
		},
		{
			scenario.Fault{Kind: &scenario.Stop{}, Target: scenario.APIServer},
			"apiserver without [], cut off, ends", "stop", "stop, start",
		},
		{
			scenario.Fault{Kind: &scenario.Restart{}, Target: scenario.Coordinator},
			"coordinator without [], ends", "stop", "stop, start",
		},
		{
			scenario.Fault{Kind: &scenario.Freeze{}, Target: scenario.Hub(1)},
			"hub/harbour-1 without [harbour-1]", "freeze", "freeze, thaw",
		},
		{
			scenario.Fault{Kind: &scenario.Vanish{}, Target: scenario.Hub(1)},
			"hub/harbour-1 [harbour-1] without [harbour-1], ends",
			"kill, cloud: cut both of harbour-1, coordinator: cut both of harbour-1", "kill, start",
		},
		{
			scenario.Fault{Kind: &scenario.Cut{}, Target: scenario.WholePool, Link: scenario.CloudLink, Direction: link.Up},
			" [] without [], cut off", "cloud: cut up of ", "",
		},
		{
			scenario.Fault{Kind: &scenario.Cut{}, Target: scenario.Leader, Link: scenario.BothLinks},
			" [harbour-2] without [harbour-2]",
			"cloud: cut both of harbour-2, coordinator: cut both of harbour-2", "",
		},
		{
			scenario.Fault{Kind: &scenario.Flap{Cuts: 2}, Target: scenario.Hub(3), Link: scenario.CoordinatorLink},
			" [harbour-3] without []", "coordinator: cut both of harbour-3", "",
		},
		{
			scenario.Fault{Kind: &scenario.Cut{}, Target: scenario.Hub(1), Link: scenario.CloudLink},
			" [harbour-1] without []", "cloud: cut both of harbour-1", "",
		},
		{
			scenario.Fault{Kind: &scenario.Flap{Cuts: 2}, Target: scenario.Hub(3), Link: scenario.BothLinks},
			" [harbour-3] without [harbour-3]",
			"cloud: cut both of harbour-3, coordinator: cut both of harbour-3", "",
		},
		{
			scenario.Fault{Kind: &scenario.Toxic{Type: scenario.Slicer}, Target: scenario.Hub(1), Link: scenario.BothLinks},
			" [harbour-1] without []",
			"cloud: slicer both of harbour-1 map[], coordinator: slicer both of harbour-1 map[]", "",
		},
		{
			scenario.Fault{Kind: timeout, Target: scenario.Hub(1), Link: scenario.BothLinks},
			" [harbour-1] without [harbour-1]",
			"cloud: timeout both of harbour-1 map[], coordinator: timeout both of harbour-1 map[]", "",
		},
		{
			scenario.Fault{Kind: &scenario.Toxic{Type: scenario.SlowClose}, Target: scenario.Hub(1), Link: scenario.BothLinks},
			" [harbour-1] without []",
			"cloud: slow_close both of harbour-1 map[], coordinator: slow_close both of harbour-1 map[]", "",
		},
		{
			scenario.Fault{Kind: timeout, Target: scenario.Hub(1), Link: scenario.CloudLink},
			" [harbour-1] without []", "cloud: timeout both of harbour-1 map[]", "",
		},
		{
			scenario.Fault{Kind: &scenario.Slow{Rate: &rate}, Target: scenario.WholePool, Link: scenario.BothLinks},
			" [] without []", "cloud: rate both 1000, coordinator: rate both 1000",
			"cloud: rate down 8000, cloud: rate up 7000, cloud: rtt 0s, coordinator: rate down 0, coordinator: rate up 0, " +
				"coordinator: rtt 0s",
		},
	} {
		t.Run(test.fault.String(), func(t *testing.T) {
			lab := &lab{lines: map[scenario.LinkName]*line{scenario.CloudLink: {}, scenario.CoordinatorLink: {}}}
			at := &scenario.Aim{Fault: test.fault, Pool: pool}
			if err := test.fault.Kind.Aim(t.Context(), lab, at); err != nil {
				t.Fatal(err)
			}
			going, err := test.fault.Kind.Begin(t.Context(), lab, at)
			if err != nil {
				t.Fatal(err)
			}
			begun := lab.did()
			if going.Hold != nil {
				if err := going.Hold(t.Context()); err != nil || len(lab.is()) > 0 {
					t.Errorf("after its time: %v, %q", err, lab.is())
				}
			}
			if err := going.Heal(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, line := range lab.lines {
				line.drop("rate both")
			}
			if diff := cmp.Diff([]string{test.aim, test.begun, test.healed}, []string{aimed(at), begun, lab.did()}); diff != "" {
				t.Errorf("aim, begun and healed (-want +got):\n%s", diff)
			}
		})
	}
}

func (l *lab) did() string { return strings.Join(append(slices.Clone(l.part.done), l.is()...), ", ") }

func aimed(at *scenario.Aim) string {
	s := at.Part
	if at.Nodes != nil {
		s += fmt.Sprint(" ", at.Nodes)
	}
	s += fmt.Sprint(" without ", at.Silent)
	if at.CutOff {
		s += ", cut off"
	}
	if at.Ends {
		s += ", ends"
	}
	return s
}
