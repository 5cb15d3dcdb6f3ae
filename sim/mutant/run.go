package mutant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/sim/proc"
)

// Verdict is what came of a mutant.
type Verdict string

// The verdicts. Everything but Caught is a failure.
const (
	Caught        Verdict = "caught"
	Survived      Verdict = "SURVIVED"
	Hung          Verdict = "HUNG"
	NotApplied    Verdict = "does not apply"
	NotCompiled   Verdict = "does not compile"
	NotCheckable  Verdict = "check fails without it"
	NotAttempted  Verdict = "not attempted"
	checkHolds    Verdict = "" // of a check without a mutant
	buildPatience         = 15 * time.Minute
)

// Row is what is reported of a mutant.
type Row struct {
	Mutant
	Line    int           `json:"line"`
	Verdict Verdict       `json:"verdict"`
	By      string        `json:"by,omitempty"`   // the first test that failed
	Said    string        `json:"said,omitempty"` // where, and with which words; what was wrong
	Took    time.Duration `json:"nanoseconds"`
	Inputs  string        `json:"inputs"` // a hash of what the check is made of
}

// Options of a run.
type Options struct {
	Root     string // of the repository
	Parallel int    // at once, of those that may; 0 is 2
	Before   []Row  // of an earlier run: what was caught there by a check that is made of the same is not tried again
	Progress func(string)
	Row      func([]Row) // is called with all rows after each that is new, by one goroutine at a time; nil: nobody is
}

// Run plants mutants, each in a build of its own, and returns a row for each in their order. The error says that
// nothing could be run, or that it was interrupted: then some are not attempted.
func Run(ctx context.Context, ms []Mutant, o Options) (rows []Row, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Parallel == 0 {
		o.Parallel = 2
	}
	spawner, err := proc.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, spawner.Close()) }()
	c := &campaign{Options: o, spawner: spawner}
	inputs, err := c.inputs(ctx, ms)
	if err != nil {
		return nil, err
	}
	rows, left := resumed(ms, inputs, o.Before)
	c.rows, c.done = rows, len(ms)-len(left)
	groups := together(ms, left)
	c.each(ctx, len(groups), func(i int) Check { return groups[i].all }, func(i int) {
		c.group(ctx, ms, groups[i], inputs)
	})
	return rows, ctx.Err()
}

// resumed are rows with what was caught before, and the indexes of what is left.
func resumed(ms []Mutant, inputs map[string]string, before []Row) (rows []Row, left []int) {
	rows = make([]Row, len(ms))
	for i, m := range ms {
		rows[i] = Row{Mutant: m, Verdict: NotAttempted}
		for _, b := range before {
			if b.Verdict == Caught && b.Inputs == inputs[m.Check.Package] && reflect.DeepEqual(b.Mutant, m) {
				rows[i] = b
			}
		}
		if rows[i].Verdict == NotAttempted {
			left = append(left, i)
		}
	}
	return rows, left
}

// tells is the end of the line of progress.
func (r Row) tells() string {
	if r.Verdict == Caught {
		return r.By
	}
	return r.Said
}

type campaign struct {
	Options
	spawner *proc.Spawner

	mu   sync.Mutex
	rows []Row
	done int // of the rows
}

// each calls do for all indexes, some at once; those whose check wants to be alone come last, one by one.
func (c *campaign) each(ctx context.Context, n int, check func(int) Check, do func(int)) {
	var g errgroup.Group
	g.SetLimit(c.Parallel)
	for i := range n {
		if !check(i).Alone && ctx.Err() == nil {
			g.Go(func() error { do(i); return nil })
		}
	}
	_ = g.Wait()
	for i := range n {
		if check(i).Alone && ctx.Err() == nil {
			do(i)
		}
	}
}

// group tries the mutants of a group: together in one build as far as that goes, and in builds of their own.
func (c *campaign) group(ctx context.Context, ms []Mutant, g group, inputs map[string]string) {
	b, err := c.build(ctx, ms, g)
	if err != nil {
		c.Progress(fmt.Sprintf("%s: each mutant in a build of its own: %v", g.all.Package, err))
	}
	defer b.remove()
	failed := c.checks(ctx, g, b)
	if b != nil && len(failed) > 0 { // maybe because of how it was built
		b.remove()
		b, failed = nil, c.checks(ctx, g, nil)
	}
	for _, i := range g.mutants {
		if ctx.Err() != nil {
			return
		}
		m := ms[i]
		r := Row{Mutant: m, Verdict: NotCheckable}
		if said, fails := failed[m.Check.key()]; fails {
			r.Said = said
		} else {
			r = c.try(ctx, m, i, b)
		}
		r.Inputs = inputs[m.Check.Package]
		c.took(i, r)
	}
}

// took notes what came of a mutant.
func (c *campaign) took(i int, r Row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows[i] = r
	c.done++
	c.Progress(fmt.Sprintf("%3d of %d  %-14s %-44s %5.1fs  %s", c.done, len(c.rows), r.Verdict, r.Name, r.Took.Seconds(),
		r.tells()))
	if c.Row != nil {
		c.Row(c.rows)
	}
}

// checks runs the checks of a group without a mutant, and returns what those that fail say.
func (c *campaign) checks(ctx context.Context, g group, b *built) map[string]string {
	failed := map[string]string{}
	began := time.Now()
	s, err := c.run(ctx, g.all, b, "", "", "")
	said := "hold"
	for _, one := range g.checks {
		if why := fails(s, err, one); why != "" {
			failed[one.key()] = why
			said = "FAIL: " + one.Run + ": " + why
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Progress(fmt.Sprintf("%d checks of %s without a mutant  %.1fs  %s", len(g.checks), g.all.Package,
		time.Since(began).Seconds(), said))
	return failed
}

// fails tells why a check does not hold where it ran with others of its package; "": it holds.
func fails(s said, err error, one Check) string {
	if v := judge(s, err); v != checkHolds && v != Caught {
		return fmt.Sprintf("%s: %s", v, s.words(err))
	}
	if err != nil && len(s.failed) == 0 { // no test, but all of it
		return s.words(err)
	}
	for _, test := range s.failed {
		if one.has(test) {
			return test + " " + s.words(err)
		}
	}
	for _, test := range s.passed { // the parent of a subtest that is not there passes, too
		if one.has(test) && strings.Count(test, "/") >= strings.Count(one.Run, "/") {
			return ""
		}
	}
	return "no test of this name ran"
}

// group are the mutants whose checks one build can run.
type group struct {
	all     Check
	checks  []Check
	mutants []int
}

func together(ms []Mutant, left []int) (groups []group) {
	seen, at := map[string]bool{}, map[string]int{}
	for _, n := range left {
		c := ms[n].Check
		build := fmt.Sprint(c.Package, c.Target, c.Args, c.Alone)
		i, known := at[build]
		if !known {
			i = len(groups)
			at[build] = i
			groups = append(groups, group{all: Check{Package: c.Package, Args: c.Args, Target: c.Target, Alone: c.Alone}})
		}
		g := &groups[i]
		g.mutants = append(g.mutants, n)
		if seen[c.key()] {
			continue
		}
		seen[c.key()] = true
		g.checks = append(g.checks, c)
		test, _, _ := strings.Cut(c.Run, "/")
		if g.all.Run != "" {
			test = g.all.Run + "|" + test
		}
		g.all.Run, g.all.Seconds = test, min(g.all.Seconds+c.Seconds, mostSeconds)
	}
	return groups
}

// try runs a mutant's check, in a build that has it if there is one. What is not caught there is tried in a build of
// its own: a test may start processes that do not hear which mutant is meant.
func (c *campaign) try(ctx context.Context, m Mutant, number int, b *built) (r Row) {
	began := time.Now()
	r.Mutant = m
	defer func() { r.Took = time.Since(began).Round(time.Millisecond) }()
	p, err := m.plant(c.Root)
	if err != nil {
		r.Verdict, r.Said = NotApplied, err.Error()
		return r
	}
	r.Line = p.line
	dir, err := c.spawner.Scratch(fmt.Sprint(number))
	if err != nil {
		r.Verdict, r.Said = NotAttempted, err.Error()
		return r
	}
	defer os.RemoveAll(dir)
	if b.has(m) {
		s, err := c.run(ctx, m.Check, b, m.Name, "", dir)
		r.By, r.Said = s.by, s.words(err)
		if r.Verdict = judge(s, err); r.Verdict == Caught {
			return r
		}
	}
	overlay, _, err := write(dir, map[string][]byte{filepath.Join(c.Root, m.File): p.text})
	if err != nil {
		r.Verdict, r.Said = NotAttempted, err.Error()
		return r
	}
	s, err := c.run(ctx, m.Check, nil, "", overlay, dir)
	r.By, r.Said = s.by, s.words(err)
	if r.Verdict = judge(s, err); r.Verdict == checkHolds {
		r.Verdict, r.Said = Survived, fmt.Sprintf("%d tests of %s passed", len(s.passed), m.Check)
	}
	return r
}

// write writes changed files, and the overlay that puts them in the places of those that they are copies of.
func write(dir string, files map[string][]byte) (overlay string, replace map[string]string, err error) {
	replace = map[string]string{}
	for file, text := range files {
		replace[file] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(file)))
		if err := os.WriteFile(replace[file], text, 0o600); err != nil {
			return "", nil, fmt.Errorf("write the mutant: %w", err)
		}
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", nil, fmt.Errorf("write the overlay: %w", err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		return "", nil, fmt.Errorf("write the overlay: %w", err)
	}
	return overlay, replace, nil
}

// judge is checkHolds if the check passed.
func judge(s said, err error) Verdict {
	switch {
	case !s.built:
		return NotCompiled
	case s.late && s.by == "", errors.Is(err, context.DeadlineExceeded):
		return Hung
	case errors.Is(err, context.Canceled), errors.Is(err, errNoGo):
		return NotAttempted
	case err != nil:
		return Caught
	}
	return checkHolds
}

func (s said) words(err error) string {
	switch {
	case !s.built:
		return strings.Join(s.compiler, "; ")
	case s.at != "":
		return s.at
	case err != nil:
		return strings.Join(append(s.compiler, err.Error()), "; ")
	}
	return ""
}

var errNoGo = errors.New("the go command did not run")

// run runs a check: with a mutant of a build, or by the go command with an overlay, which may be empty. The error says
// that it did not pass.
func (c *campaign) run(ctx context.Context, check Check, b *built, mutant, overlay, temp string) (said, error) {
	ctx, cancel := context.WithTimeout(ctx, buildPatience+check.limit())
	defer cancel()
	module, pkg, err := c.where(check)
	if err != nil {
		return said{built: true}, fmt.Errorf("%w: %w", errNoGo, err)
	}
	args, env, dir := []string{"test", "-json", "-vet=off"}, check.env(), module
	dash := "-"
	if b != nil {
		args, dash = []string{"tool", "test2json", "-t", "-p", pkg, b.program, "-test.v=test2json"}, "-test."
		dir, env = filepath.Join(c.Root, check.Package), append(env, switchName+"="+mutant)
	}
	args = append(args, dash+"timeout="+check.limit().String(), dash+"run="+check.Run)
	if check.Target == Race && b == nil {
		args = append(args, "-race")
	}
	if check.Target == Race {
		args = append(args, dash+"short")
	}
	if mutant != "" || overlay != "" { // what Go's cache knows of a check without a mutant is good enough
		args, env = append(args, dash+"failfast", dash+"count=1"), append(env, "TMPDIR="+temp)
	}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if b == nil {
		args = append(args, pkg)
	}
	if len(check.Args) > 0 && b == nil {
		args = append(args, "-args")
	}
	return c.hear(ctx, proc.Spec{Name: "go test", Path: "go", Args: append(args, check.Args...), Dir: dir, Env: env})
}

// where is the module of a check, and its package there.
func (c *campaign) where(check Check) (module, pkg string, err error) {
	if module, err = moduleOf(c.Root, check.Package); err != nil {
		return "", "", err
	}
	pkg, err = filepath.Rel(module, filepath.Join(c.Root, check.Package))
	return module, "./" + pkg, err
}

// env is what the go command is given in its environment.
func (c Check) env() []string {
	if c.Target == Race {
		return []string{"CGO_ENABLED=1", "GOWORK=off"}
	}
	return []string{"CGO_ENABLED=0", "GOWORK=off"}
}

// hear runs the go command to its end, and listens.
func (c *campaign) hear(ctx context.Context, spec proc.Spec) (said, error) {
	out, in := io.Pipe()
	spec.Output = in
	p, err := c.spawner.Start(spec)
	if err != nil {
		return said{built: true}, fmt.Errorf("%w: %w", errNoGo, err)
	}
	heard := make(chan said, 1)
	go func() { heard <- listen(out) }()
	err = p.Wait(ctx)
	if ctx.Err() != nil {
		p.Kill()
	}
	_ = in.Close()
	return <-heard, err
}

// moduleOf returns the folder of the module that a folder is part of.
func moduleOf(root, folder string) (string, error) {
	for dir := filepath.Join(root, folder); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == root || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is in no module below %s", folder, root)
		}
	}
}
