package change

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Measures of the sketch.
const (
	sketchWidth = 60
	sketchLanes = 3 // of which each side has a line
	sketchName  = 22
	blocks      = "▁▂▃▄▅▆▇█"
	ground      = '·'
)

// sketch draws the scenario of Picture in text, base above head: the link, then the lanes that differ most. A comment
// has no files beside it, and shows this. Empty: no run has a track.
func (r *Report) sketch() (out []string) {
	runs, ok := r.track()
	if !ok {
		return nil
	}
	last, tallest := extent(runs)
	at := func(seconds float64) int {
		return min(max(int(seconds/max(last, 1e-9)*sketchWidth), 0), sketchWidth-1)
	}
	var lanes []sketched
	for _, l := range runs[len(runs)-1].Track.Lanes {
		s := sketched{name: l.Name, moves: l.Kind == LaneLink}
		for _, run := range runs {
			if i := slices.IndexFunc(run.Track.Lanes, func(o Lane) bool { return o.Name == l.Name }); i >= 0 {
				s.sides = append(s.sides, run.Side)
				s.strips = append(s.strips, run.Track.Lanes[i].strip(tallest[l.Name], at))
			}
		}
		if len(l.Amounts) > 0 {
			s.most = "to " + Format(tallest[l.Name], l.Unit) + "/s"
		}
		lanes = append(lanes, s)
	}
	slices.SortStableFunc(lanes, func(a, b sketched) int { return b.apart() - a.apart() })
	add := func(name, side, strip string) {
		out = append(out, strings.TrimRight(fmt.Sprintf("%-*s %-4s %s", sketchName, name, side, strip), " "))
	}
	end := fmt.Sprintf("%.0f s", last)
	add(runs[len(runs)-1].Scenario, "", "0 s"+strings.Repeat(" ", sketchWidth-3-len(end))+end)
	if marks := runs[len(runs)-1].Track.Marks; len(marks) > 0 {
		faults := slices.Repeat([]rune{' '}, sketchWidth)
		for _, m := range marks {
			faults[at(m.At)] = '↓'
		}
		add(fmt.Sprintf("↓ %.30s", marks[0].Label), "", string(faults))
	}
	for _, l := range lanes[:min(len(lanes), sketchLanes)] {
		for i, strip := range l.strips {
			name := l.name
			if i > 0 {
				name = "  " + l.most
			}
			add(name, l.sides[i], string(strip))
		}
	}
	return append(out, "█ leads, reads the cloud  ▅ follows, reads the coordinator  ▃ neither  "+
		"! a broken promise  o a list again")
}

// sketched is a lane of both sides.
type sketched struct {
	name   string
	most   string // of the link
	moves  bool   // the link
	sides  []string
	strips [][]rune
}

// apart is by how much the sides differ. The link, the first lane, is always shown.
func (s sketched) apart() (n int) {
	if s.moves {
		return math.MaxInt32
	}
	for i, c := range s.strips[0] {
		if c != s.strips[len(s.strips)-1][i] {
			n++
		}
	}
	return n
}

// strip is a lane as a line of blocks.
func (l Lane) strip(most float64, at func(float64) int) []rune {
	strip := slices.Repeat([]rune{ground}, sketchWidth)
	block := func(height float64) rune { return []rune(blocks)[min(max(int(math.Round(height*8)), 1), 8)-1] }
	tall := make([]float64, sketchWidth)
	for i, v := range l.Amounts {
		if c := at(float64(i)); v > tall[c] {
			tall[c] = v
			strip[c] = block(v / most)
		}
	}
	for _, s := range l.Spans {
		for c := at(s.From); c <= at(s.To); c++ {
			strip[c] = block(stateOf(s.State).height)
			if s.State == "" {
				strip[c] = ground
			}
		}
	}
	for _, m := range l.Moments {
		switch {
		case m.Bad:
			strip[at(m.At)] = '!'
		case strip[at(m.At)] != '!':
			strip[at(m.At)] = 'o'
		}
	}
	return strip
}
