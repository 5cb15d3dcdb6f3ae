package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

// InColumns runs a scenario as columns, one after the other on sites of their own. What it has of itself it puts into
// the result before run; run adds the columns. The result is worth reporting even with an error: it then tells how far
// the run came.
func InColumns(s *scenario.Scenario, o Options, topology []report.Fact,
	run func(*report.Result, *timeline.Writer) error) (res report.Result, err error) {
	started := time.Now()
	res = report.Result{
		Description: s.Description, Repeat: o.Repeat, Runtime: o.Runtime.Name(), Started: started, Revision: o.Revision,
		Outcome:  report.Outcome{Scenario: s.Name, Seed: s.Seed, Metrics: report.Values{}},
		Versions: versions(""), Machine: Machine(),
		Topology: topology, UplinkBitsPerSecond: float64(s.Topology.Pool.Uplink.Down),
	}
	defer func() {
		if err != nil {
			res.Error = err.Error()
		}
		res.Seconds, res.Passed = time.Since(started).Seconds(), err == nil
		for _, e := range s.Expectations {
			x := e.Report(res.Metrics)
			res.Expectations = append(res.Expectations, x)
			res.Passed = res.Passed && x.Passed
		}
	}()
	if err := Suits(s, o.Runtime); err != nil {
		return res, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return res, err
	}
	w, err := timeline.Create(filepath.Join(o.Dir, "timeline.jsonl"), clock.RealClock{})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	err = run(&res, w)
	return res, err
}

// Column is one run of a scenario that has several, and what it tells of itself.
type Column struct {
	Options

	Way   string // report.WayStock or WayWeir
	Pool  string // that the scenario is about
	Time  *timeline.Writer
	Every time.Duration // between two looks of Until
	Site  runtime.Site
	Began time.Time
	cloud string // version of its kube-apiserver

	Bytes  report.ByteTable
	Series []report.Series

	mu    sync.Mutex
	marks []report.Mark
}

// Up brings up the column's site.
func (c *Column) Up(ctx context.Context, t runtime.Topology) (err error) {
	c.Began = time.Now()
	if c.Site, err = c.Runtime.Up(ctx, t, c.Progress); err != nil {
		return err
	}
	if c.cloud, err = cloudVersion(c.Site); err != nil {
		err = errors.Join(err, c.Down(ctx))
	}
	return err
}

// Down ends it.
func (c *Column) Down(ctx context.Context) error {
	c.Progress(c.Way + " column: stopping everything")
	return c.Site.Down(context.WithoutCancel(ctx))
}

// Phase begins one.
func (c *Column) Phase(name string) {
	c.Site.Link(c.Pool).SetPhase(name)
	c.Time.Emit(timeline.Event{Lane: timeline.Phase, Way: c.Way, Name: name})
	c.mark(name, false)
}

// Note writes what happened to the timeline, the plots and the person who waits.
func (c *Column) Note(what string) {
	c.Progress(fmt.Sprintf("%s column: %s", c.Way, what))
	c.Time.Emit(timeline.Event{Lane: timeline.Fault, Way: c.Way, Name: what})
	c.mark(what, true)
}

func (c *Column) mark(label string, fault bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks = append(c.marks, report.Mark{Way: c.Way, Seconds: time.Since(c.Began).Seconds(), Label: label, Fault: fault})
}

// Parts lists what is to be started: kubelets come last, when all that they need is there. The apiserver runs.
func (c *Column) Parts() (first, kubelets []runtime.PartID) {
	for _, id := range c.Site.Parts() {
		switch id.Kind() {
		case "apiserver":
		case "kubelet":
			kubelets = append(kubelets, id)
		default:
			first = append(first, id)
		}
	}
	return first, kubelets
}

// Measure takes down what crossed the link so far.
func (c *Column) Measure() {
	l := c.Site.Link(c.Pool)
	c.Bytes, c.Series = Bytes(c.Way, l), Series(c.Way, l, c.Began)
}

// Into adds what the column tells to a result.
func (c *Column) Into(res *report.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(res.Versions, versions(c.cloud))
	res.Bytes, res.Series, res.Marks = append(res.Bytes, c.Bytes...), append(res.Series, c.Series...),
		append(res.Marks, c.marks...)
}

// Lines implements scenario.Lab.
func (c *Column) Lines(_ scenario.Pool, name scenario.LinkName) (all []scenario.Line) {
	all = append(all, c.Site.Link(c.Pool))
	if lan := c.Site.LAN(c.Pool); lan != nil && name == "" {
		all = append(all, lan)
	}
	return all
}

// Lost implements scenario.Lab: no column waits for clients.
func (*Column) Lost([]string) {}

// Sleep implements scenario.Lab.
func (*Column) Sleep(ctx context.Context, until time.Time) error {
	return sleep(ctx, time.Until(until))
}

// Bundle is parts as one: those that run end together, and all start one after the other.
type Bundle struct {
	scenario.Part // nil: nothing else is done to it

	Site runtime.Site
	IDs  []runtime.PartID
}

// Kill ends them.
func (m Bundle) Kill() (all error) {
	for _, id := range m.IDs {
		switch p, err := m.Site.Part(id); {
		case err != nil:
			all = errors.Join(all, err)
		case p.Running():
			all = errors.Join(all, p.Kill())
		}
	}
	return all
}

// Start starts them.
func (m Bundle) Start(ctx context.Context) error {
	for _, id := range m.IDs {
		if err := runtime.Start(ctx, m.Site, id); err != nil {
			return err
		}
	}
	return nil
}

// Until waits for a condition, with progress.
func (c *Column) Until(ctx context.Context, patience time.Duration, ok func() (bool, string)) error {
	return Until(ctx, c.Every, patience, func(what string) { c.Progress(c.Way + " column: " + what) }, ok)
}

// Slept waits; false: ctx ended before.
func Slept(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
