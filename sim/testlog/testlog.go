// Package testlog runs Go tests as go test does, and keeps what a green run hides: what was skipped and why, and where
// the time went.
//
// Run prints what go test prints, a package at a time. Its log is one file per run in a folder; Summary tells of all of
// them.
package testlog

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// slowest is how many packages and tests a summary names.
const slowest = 10

// Log is what came of a run.
type Log struct {
	Name     string    `json:"name"`
	Packages []Package `json:"packages"`
	Skips    []Skip    `json:"skips"`
}

// Package is one whose tests ran.
type Package struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"` // 0 if the result was cached
}

// Skip is a test that was skipped.
type Skip struct {
	Package string `json:"package"`
	Test    string `json:"test"`
	Why     string `json:"why"` // empty: it did not say
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// reader makes a log of events.
type reader struct {
	log    Log
	out    io.Writer
	output map[[2]string][]string // by package and test: what it said so far; of a package, what is printed when it ends
	failed map[string]bool
}

func newReader(name string, out io.Writer) *reader {
	return &reader{
		log: Log{Name: name, Packages: []Package{}, Skips: []Skip{}}, out: out, output: map[[2]string][]string{},
		failed: map[string]bool{},
	}
}

// take reads one line; one that is no event is printed as it stands.
func (r *reader) take(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		fmt.Fprintf(r.out, "%s\n", line)
		return
	}
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "skip":
		if e.Test != "" {
			r.log.Skips = append(r.log.Skips, Skip{Package: e.Package, Test: e.Test, Why: reason(r.output[key])})
			delete(r.output, key)
			return
		}
		r.end(e)
	case "pass":
		if e.Test != "" {
			delete(r.output, key)
			return
		}
		r.end(e)
	case "fail":
		if e.Test == "" {
			r.failed[e.Package] = true
			r.end(e)
		}
	}
}

// end prints what go test prints of a package: its line, and if it failed what its failed tests said.
func (r *reader) end(e event) {
	r.log.Packages = append(r.log.Packages, Package{Name: e.Package, Seconds: e.Elapsed})
	var tests []string
	for key := range r.output {
		if key[0] == e.Package && key[1] != "" {
			tests = append(tests, key[1])
		}
	}
	slices.Sort(tests)
	for _, t := range tests {
		key := [2]string{e.Package, t}
		if r.failed[e.Package] {
			fmt.Fprint(r.out, strings.Join(r.output[key], ""))
		}
		delete(r.output, key)
	}
	lines := r.output[[2]string{e.Package, ""}]
	if !r.failed[e.Package] && len(lines) > 0 {
		lines = lines[len(lines)-1:]
	}
	fmt.Fprint(r.out, strings.Join(lines, ""))
	delete(r.output, [2]string{e.Package, ""})
}

// reason is what a test said before it was skipped, without the place.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "---") {
			continue
		}
		if _, after, ok := strings.Cut(line, ".go:"); ok {
			if _, text, ok := strings.Cut(after, ": "); ok {
				return text
			}
		}
		return line
	}
	return ""
}

// Run runs go test with args, prints to out, and writes the log to dir. Its error is that of go test, or of the log.
func Run(ctx context.Context, name, dir string, args []string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = out
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := newReader(name, out)
	lines := bufio.NewReader(pipe)
	for {
		line, err := lines.ReadBytes('\n')
		if line = []byte(strings.TrimSuffix(string(line), "\n")); len(line) > 0 {
			r.take(line)
		}
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	return errors.Join(err, r.log.write(dir))
}

func (l Log) write(dir string) error {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, l.Name+".json"), append(b, '\n'), 0o644)
}

// Summary tells of all logs in a folder: the slowest packages, and each test that was skipped, with its reason. It
// fails if one has none.
func Summary(dir string, out io.Writer) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	type timed struct {
		what    string
		seconds float64
	}
	var all []timed
	var skips []Skip
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var l Log
		if err := json.Unmarshal(b, &l); err != nil {
			return fmt.Errorf("%s is no log of tests: %w", f, err)
		}
		for _, p := range l.Packages {
			all = append(all, timed{l.Name + " " + p.Name, p.Seconds})
		}
		skips = append(skips, l.Skips...)
	}
	if len(all) == 0 {
		return fmt.Errorf("no log of tests in %s: run make test first", dir)
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintf(out, "\nThe slowest of %d packages:\n", len(all))
	for _, p := range all[:min(slowest, len(all))] {
		fmt.Fprintf(out, "  %6.1f s  %s\n", p.seconds, p.what)
	}
	fmt.Fprintf(out, "Skipped: %d\n", len(skips))
	silent := 0
	for _, s := range skips {
		if s.Why == "" {
			silent++
			s.Why = "it does not say why"
		}
		fmt.Fprintf(out, "  %s %s: %s\n", s.Package, s.Test, s.Why)
	}
	if silent > 0 {
		return fmt.Errorf("%d tests were skipped without a reason", silent)
	}
	return nil
}
