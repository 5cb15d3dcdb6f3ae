package grid

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/scenario"
)

// The axes of the table. Loads are per cent of what the link carries, by changes as they are uncompressed.
var (
	rates = []scenario.Rate{128_000, 512_000, 1_000_000, 8_000_000}
	loads = []int{20, 60, 90, 120}
	// beyond are loads that only the thinnest link gets, to find the limit: changes cross compressed, so it carries
	// several times its rate.
	beyond = []int{300, 600}
)

// fault is a column of the table.
type fault struct {
	name string
	list []scenario.Fault
}

const (
	faultAt = 4 * time.Second
	after   = 20 * time.Second // for which changes go on when the fault is over
)

func faults() []fault {
	one := func(k scenario.Kind, target scenario.Target, at, lasts time.Duration) scenario.Fault {
		return scenario.Fault{At: at, Kind: k, Target: target, For: lasts, Repeat: 1}
	}
	blackout := func(lasts, off time.Duration) []scenario.Fault {
		return []scenario.Fault{one(&scenario.Blackout{Off: off}, scenario.WholePool, faultAt, lasts)}
	}
	kill, lose := &scenario.Kill{}, &scenario.Kill{Ending: scenario.Ending{Disk: scenario.LoseDisk}}
	leader, coordinator := one(kill, scenario.Leader, faultAt, 4*time.Second),
		one(lose, scenario.Coordinator, faultAt+time.Second, 5*time.Second)
	return []fault{
		{"blackout-5s", blackout(5*time.Second, time.Second)},
		{"blackout-12s", blackout(12*time.Second, 3*time.Second)},
		{"blackout-60s", blackout(time.Minute, 3*time.Second)},
		{"leader", []scenario.Fault{leader}},
		{"coordinator", []scenario.Fault{coordinator}},
		{"both", []scenario.Fault{leader, coordinator}},
		{"apiserver", []scenario.Fault{one(kill, scenario.APIServer, faultAt, 4*time.Second)}},
	}
}

// Cell is one place of the table.
type Cell struct {
	Rate  scenario.Rate
	Load  int // per cent
	Fault string

	faults []scenario.Fault
}

// Cells are all of the table whose names have each of some words; "|" separates words of which one is enough.
func Cells(words ...string) []Cell {
	var cells []Cell
	for _, r := range rates {
		more := beyond
		if r != rates[0] {
			more = nil
		}
		for _, l := range slices.Concat(loads, more) {
			for _, f := range faults() {
				c := Cell{r, l, f.name, f.list}
				if !slices.ContainsFunc(words, func(w string) bool { return !c.has(w) }) {
					cells = append(cells, c)
				}
			}
		}
	}
	return cells
}

// Words are all that names of cells are made of.
func Words() []string {
	var words []string
	for _, c := range Cells() {
		for _, w := range c.words() {
			if !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	return words
}

func (c Cell) words() []string {
	rate, _, _ := strings.Cut(c.Rate.String(), "/")
	return []string{rate, strconv.Itoa(c.Load) + "%", c.Fault}
}

func (c Cell) has(word string) bool {
	return slices.ContainsFunc(strings.Split(word, "|"), func(w string) bool { return slices.Contains(c.words(), w) })
}

// Name is the cell's, and that of its folder.
func (c Cell) Name() string {
	return strings.ToLower(strings.ReplaceAll(strings.Join(c.words(), "-"), "%", "pct"))
}

// changeBytes is about what one change of the workload is, uncompressed: an EndpointSlice and an Endpoints object of so
// many endpoints.
func changeBytes(endpoints int) float64 { return 2200 + 205*float64(endpoints) }

// endpoints is how many make a change that large.
func endpoints(change float64) int {
	return int((change - changeBytes(0)) / (changeBytes(1) - changeBytes(0)))
}

// mostChanges of a second are what one writer does beside the rest on two cores. On a faster link changes are larger
// and not more.
const mostChanges = 12

// Scenario is that of the cell: a file's, over the cell's link, at its pace, with its faults.
func (c Cell) Scenario(base *scenario.Scenario) (*scenario.Scenario, error) {
	s := *base
	s.Name, s.Faults, s.Batches = c.Name(), c.faults, true
	// what it reads first is longer than a list.
	s.Clients = slices.DeleteFunc(slices.Clone(base.Clients),
		func(k scenario.ClientKind) bool { return k == scenario.Kubectl })
	s.Description = fmt.Sprintf("%s over %v, with changes that take %d %% of it uncompressed: %s.", base.Name, c.Rate,
		c.Load, c.Fault)
	s.Topology.Pool.Uplink.Up, s.Topology.Pool.Uplink.Down = c.Rate, c.Rate
	s.Workload.Endpoints = max(base.Workload.Endpoints,
		endpoints(float64(c.Rate)/8*float64(slices.Max(loads))/100/mostChanges))
	pace := float64(c.Rate) / 8 * float64(c.Load) / 100 / changeBytes(s.Workload.Endpoints)
	lasts := faultAt + after
	for _, f := range c.faults {
		lasts = max(lasts, f.At+f.For+after)
	}
	s.Workload.ChangesPerSecond = max(math.Round(pace*100)/100, 0.1)
	s.Workload.Changes = max(int(pace*lasts.Seconds()), 1)
	text, err := s.YAML()
	if err != nil {
		return nil, err
	}
	return scenario.Parse("", text)
}
