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
	var untried []Mutant
	for _, i := range left {
		untried = append(untried, ms[i])
	}
	without := c.checks(ctx, untried)
	done := len(ms) - len(left)
	c.each(ctx, len(left), func(n int) Check { return untried[n].Check }, func(n int) {
		i, m := left[n], untried[n]
		r := Row{Mutant: m, Verdict: NotCheckable}
		if said, fails := without[m.Check.key()]; fails {
			r.Said = said
		} else {
			r = c.try(ctx, m, i)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		r.Inputs = inputs[m.Check.Package]
		rows[i] = r
		done++
		o.Progress(fmt.Sprintf("%3d of %d  %-14s %-44s %5.1fs  %s", done, len(ms), r.Verdict, r.Name, r.Took.Seconds(),
			r.tells()))
		if o.Row != nil {
			o.Row(rows)
		}
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
	mu      sync.Mutex
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

// checks runs each check once without a mutant, those of a package in one build, and returns what those that fail say.
func (c *campaign) checks(ctx context.Context, ms []Mutant) map[string]string {
	groups := together(ms)
	failed := map[string]string{}
	done := 0
	c.each(ctx, len(groups), func(i int) Check { return groups[i].all }, func(i int) {
		began, g := time.Now(), groups[i]
		s, err := c.run(ctx, g.all, "", "")
		c.mu.Lock()
		defer c.mu.Unlock()
		done++
		said := "hold"
		for _, one := range g.checks {
			if why := fails(s, err, one); why != "" {
				failed[one.key()] = why
				said = "FAIL: " + one.Run + ": " + why
			}
		}
		c.Progress(fmt.Sprintf("%d checks of %s without a mutant, %d of %d packages  %.1fs  %s", len(g.checks), g.all.Package,
			done, len(groups), time.Since(began).Seconds(), said))
	})
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
	for _, test := range s.passed {
		if one.has(test) {
			return ""
		}
	}
	return "no test of this name ran"
}

// group are the checks that one build can run.
type group struct {
	all    Check
	checks []Check
}

func together(ms []Mutant) (groups []group) {
	seen, at := map[string]bool{}, map[string]int{}
	for _, m := range ms {
		c := m.Check
		if seen[c.key()] {
			continue
		}
		seen[c.key()] = true
		build := fmt.Sprint(c.Package, c.Target, c.Args, c.Alone)
		i, known := at[build]
		if !known {
			i = len(groups)
			at[build] = i
			groups = append(groups, group{all: Check{Package: c.Package, Args: c.Args, Target: c.Target, Alone: c.Alone}})
		}
		g := &groups[i]
		g.checks = append(g.checks, c)
		test, _, _ := strings.Cut(c.Run, "/")
		if g.all.Run != "" {
			test = g.all.Run + "|" + test
		}
		g.all.Run, g.all.Seconds = test, min(g.all.Seconds+c.Seconds, mostSeconds)
	}
	return groups
}

// try runs a mutant's check.
func (c *campaign) try(ctx context.Context, m Mutant, number int) (r Row) {
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
	overlay, err := write(dir, filepath.Join(c.Root, m.File), p.text)
	if err != nil {
		r.Verdict, r.Said = NotAttempted, err.Error()
		return r
	}
	s, err := c.run(ctx, m.Check, overlay, dir)
	r.By, r.Said = s.by, s.words(err)
	if r.Verdict = judge(s, err); r.Verdict == checkHolds {
		r.Verdict, r.Said = Survived, fmt.Sprintf("%d tests of %s passed", len(s.passed), m.Check)
	}
	return r
}

// write writes the changed file, and the overlay that puts it in the place of the one that it is a copy of.
func write(dir, file string, text []byte) (overlay string, err error) {
	changed := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(changed, text, 0o600); err != nil {
		return "", fmt.Errorf("write the mutant: %w", err)
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return overlay, nil
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

// run runs a check; overlay may be empty. The error says that it did not pass.
func (c *campaign) run(ctx context.Context, check Check, overlay, temp string) (said, error) {
	ctx, cancel := context.WithTimeout(ctx, buildPatience+check.limit())
	defer cancel()
	module, err := moduleOf(c.Root, check.Package)
	if err != nil {
		return said{built: true}, fmt.Errorf("%w: %w", errNoGo, err)
	}
	pkg, err := filepath.Rel(module, filepath.Join(c.Root, check.Package))
	if err != nil {
		return said{built: true}, fmt.Errorf("%w: %w", errNoGo, err)
	}
	args := []string{"test", "-json", "-vet=off", "-timeout", check.limit().String(), "-run", check.Run}
	env := []string{"CGO_ENABLED=0", "GOWORK=off"}
	if check.Target == Race {
		args, env = append(args, "-race", "-short"), []string{"CGO_ENABLED=1", "GOWORK=off"}
	}
	if overlay != "" { // what Go's cache knows of a check without a mutant is good enough
		args, env = append(args, "-failfast", "-count=1", "-overlay", overlay), append(env, "TMPDIR="+temp)
	}
	args = append(args, "./"+pkg)
	if len(check.Args) > 0 {
		args = append(append(args, "-args"), check.Args...)
	}
	out, in := io.Pipe()
	p, err := c.spawner.Start(proc.Spec{Name: "go test", Path: "go", Args: args, Dir: module, Env: env, Output: in})
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
