package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-edge/weir/sim/parts"
)

const (
	steadyRounds = 6 // of the steady phase, one after the other
	// heardWithin is how long a Lease may go without a renewal: with 40 s weir-manager takes nodes for lost, and what is
	// measured is no steady phase.
	heardWithin    = 30 * time.Second
	quietFor       = 20 * time.Second // how long weir-manager must ask little, once it has written all that pools need
	quiet          = 5                // requests a second; at rest it asks less than once
	managerPatient = 15 * time.Minute // for that
)

// cost is what one weir-manager took. The first two are of the steady phase, the others of the one in which nodes are
// cut off.
type cost struct {
	beats       []float64 // seconds of CPU for a heartbeat, of each round
	rss         float64
	cut, cutRSS float64
}

// reading is what a weir-manager has taken so far.
type reading struct {
	at            time.Time
	cpu           float64 // in seconds
	beats         int64
	requests      float64
	rss, all, top float64 // of memory: RssAnon, VmRSS, and the most that this was
}

// compare measures this weir-manager, and before it the one of before, if there is one. The ratios are of what both
// cost one after the other in one cluster.
func (m *managed) compare(ctx context.Context) error {
	if m.Before != "" {
		if err := m.one(ctx, m.Before, "weir-manager of before"); err != nil {
			return err
		}
		m.delegated.Store(0)
	}
	if err := m.one(ctx, m.command, managerCommand); err != nil {
		return err
	}
	if m.Before == "" {
		return nil
	}
	was, now := m.costs[0], m.costs[1]
	for _, x := range []struct {
		name, unit string
		now, was   float64
	}{
		{"CPU for a heartbeat", "µs", median(now.beats) * 1e6, median(was.beats) * 1e6},
		{"RssAnon", "MB", now.rss / mb, was.rss / mb},
		{"CPU until a tenth is known to be cut off", "s", now.cut, was.cut},
		{"RssAnon then", "MB", now.cutRSS / mb, was.cutRSS / mb},
	} {
		m.figures = append(m.figures, Figure{
			Name: managerCommand + " ÷ before: " + x.name, Unit: "x", Samples: []float64{x.now / x.was},
			Limit:  AtMost(2, "not above twice what weir-manager cost before pools were objects"),
			Detail: fmt.Sprintf("%.3g %s ÷ %.3g %s", x.now, x.unit, x.was, x.unit),
		})
	}
	return nil
}

func (m *managed) measure(ctx context.Context, who string) error {
	m.Progress(who + ": waiting until every node was heard")
	if err := m.until(ctx, func(v parts.Metrics) bool {
		return v[`weir_manager_nodes{state="normal"}`] == float64(m.Nodes)
	}); err != nil {
		return err
	}
	m.Progress(who + ": waiting until it has written what pools need")
	if err := m.settle(ctx); err != nil {
		return err
	}
	size := fmt.Sprintf("%d nodes, %d pools", m.Nodes, m.Pools)
	steady, err := m.phase(ctx, who+", "+size, steadyRounds, func() error { return sleep(ctx, m.Steady/steadyRounds) })
	if err != nil {
		return err
	}
	if err := steady.heard(m.Nodes); err != nil {
		return err
	}
	m.figures = append(m.figures, Figure{
		Name: who + ", " + size + ": CPU for a heartbeat", Samples: scaled(steady.each(perBeat), 1e6), Unit: "µs",
		Detail: steady.text(),
	})
	took := cost{beats: steady.each(perBeat), rss: steady.last().rss}
	cut := m.Nodes / 10
	m.delegated.Store(int64(cut))
	lost, err := m.phase(ctx, fmt.Sprintf("%s, %d of them cut off", who, cut), 1, func() error {
		return m.until(ctx, func(v parts.Metrics) bool {
			return v[`weir_manager_condition_changes_total{reason="HeartbeatDelegated"}`] >= float64(cut) &&
				v[`weir_manager_taint_changes_total{change="add"}`] >= float64(cut)
		})
	})
	if err != nil {
		return err
	}
	took.cut, took.cutRSS = lost.sum().cpu, lost.last().rss
	m.costs = append(m.costs, took)
	return nil
}

// settle waits until the manager asks little, and all nodes are heard. What it writes for each pool at its start takes
// the longer the more pools there are and the slower the cloud is.
func (m *managed) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, managerPatient)
	defer cancel()
	var last phase
	for {
		from, err := m.read(ctx)
		if err != nil {
			return err
		}
		if err := sleep(ctx, quietFor); err != nil {
			return fmt.Errorf("%w: weir-manager does not come to rest: it asked %.0f times and heard %d heartbeats in the "+
				"last %.0f s; wanted: less than %d requests a second, and each node within %v",
				err, last.sum().requests, last.sum().beats, last.seconds(), quiet, heardWithin)
		}
		to, err := m.read(ctx)
		if err != nil {
			return err
		}
		if last = (phase{{from, to}}); last.sum().requests/last.seconds() < quiet && last.heard(m.Nodes) == nil {
			return nil
		}
	}
}

// read reads the CPU time last: who asks for metrics costs some.
func (m *managed) read(ctx context.Context) (r reading, err error) {
	v, err := m.probe.Metrics(ctx)
	if err != nil {
		return r, err
	}
	r.requests = v.Sum("rest_client_requests_total")
	u, err := m.process.Usage()
	r.cpu, r.rss, r.all, r.top = u.CPU.Seconds(), float64(u.RSSAnon), float64(u.RSS), float64(u.PeakRSS)
	r.at, r.beats = time.Now(), m.beats.Load()
	return r, err
}

// phase is what a weir-manager took in rounds: what it had taken before each of them, and what after it.
type phase [][2]reading

func (m *managed) phase(ctx context.Context, name string, rounds int, do func() error) (p phase, err error) {
	m.Progress("measuring: " + name)
	for range rounds {
		var one [2]reading
		if one[0], err = m.read(ctx); err != nil {
			return nil, err
		}
		if err := do(); err != nil {
			return nil, err
		}
		cpu, err := m.process.Usage()
		if err != nil {
			return nil, err
		}
		at := time.Now()
		if one[1], err = m.read(ctx); err != nil {
			return nil, err
		}
		one[1].cpu, one[1].at = cpu.CPU.Seconds(), at
		p = append(p, one)
	}
	last := p.last()
	m.figures = append(m.figures,
		Figure{
			Name: name + ": CPU of a core", Samples: p.each(func(d reading, s float64) float64 { return 100 * d.cpu / s }),
			Unit: "%", Detail: p.text(),
		},
		Figure{
			Name: name + ": RssAnon", Samples: []float64{last.rss / mb}, Unit: "MB",
			Detail: fmt.Sprintf("VmRSS %.0f MB, peak %.0f MB", last.all/mb, last.top/mb),
		},
		Figure{
			Name: name + ": requests", Samples: p.each(func(d reading, s float64) float64 { return d.requests / s }), Unit: "/s",
			Detail: fmt.Sprintf("%.0f in all", p.sum().requests),
		},
	)
	return p, nil
}

// each is a figure of each round, of what was taken in it and the seconds that it took.
func (p phase) each(of func(taken reading, seconds float64) float64) (all []float64) {
	for _, r := range p {
		d := reading{cpu: r[1].cpu - r[0].cpu, beats: r[1].beats - r[0].beats, requests: r[1].requests - r[0].requests}
		all = append(all, of(d, r[1].at.Sub(r[0].at).Seconds()))
	}
	return all
}

func perBeat(d reading, _ float64) float64 { return d.cpu / float64(max(d.beats, 1)) }

// sum is what all rounds took.
func (p phase) sum() (all reading) {
	for _, r := range p {
		all.cpu += r[1].cpu - r[0].cpu
		all.beats += r[1].beats - r[0].beats
		all.requests += r[1].requests - r[0].requests
	}
	return all
}

func (p phase) last() reading { return p[len(p)-1][1] }

func (p phase) seconds() (sum float64) {
	for _, r := range p {
		sum += r[1].at.Sub(r[0].at).Seconds()
	}
	return sum
}

func (p phase) text() string {
	return fmt.Sprintf("%.0f s, %.0f heartbeats/s, Nodes with %d images", p.seconds(), float64(p.sum().beats)/p.seconds(),
		nodeImages)
}

// heard is an error if Leases were renewed so seldom that nodes were lost.
func (p phase) heard(nodes int) error {
	rate, least := float64(p.sum().beats)/p.seconds(), float64(nodes)/heardWithin.Seconds()
	if rate < least {
		return fmt.Errorf("the cloud took %.0f heartbeats/s, and %d nodes that are heard within %v need %.0f: have the "+
			"machine do less beside this, or take fewer --manager-nodes",
			rate, nodes, heardWithin, least)
	}
	return nil
}

func scaled(all []float64, by float64) (out []float64) {
	for _, v := range all {
		out = append(out, v*by)
	}
	return out
}
