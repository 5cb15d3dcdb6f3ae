package virtual

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
)

// TestScripts runs testdata/*.txt: "run hubs=N grace=TIME spread=TIME", perhaps with more of Config, then lines "TIME
// COMMAND". The answer is the trace; go test -rewrite writes it again.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			c, err := configOf(d.CmdArgs)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			got, err := runScript(c, d.Input)
			if err != nil {
				t.Errorf("%v\n%s", err, got)
			}
			return got
		})
	})
}

func configOf(args []datadriven.CmdArg) (c Config, err error) {
	c = Config{Seed: 6, Clients: 1}
	for _, arg := range args {
		set, known := map[string]any{
			"hubs": &c.Hubs, "grace": &c.Grace, "spread": &c.Spread, "seed": &c.Seed, "leaders": &c.Leaders, "churn": &c.Churn,
		}[arg.Key]
		switch set := set.(type) {
		case *time.Duration:
			*set, err = time.ParseDuration(arg.Vals[0])
		default:
			_, err = fmt.Sscan(arg.Vals[0], set)
		}
		if err != nil || !known {
			return c, fmt.Errorf("%v: known: %t, %w", arg, known, err)
		}
	}
	return c, nil
}

func runScript(c Config, script string) (trace string, err error) {
	var out strings.Builder
	c.Trace = func(line string) { fmt.Fprintln(&out, line) }
	c.Detail = c.Trace
	p := New(c)
	for line := range strings.Lines(script) {
		at, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		d, err := time.ParseDuration(at)
		if err != nil {
			return "", fmt.Errorf("%q: %w", line, err)
		}
		p.Run(d - p.Now())
		if command == "end" {
			break
		}
		if command == "healed" {
			return out.String(), p.healed()
		}
		if err := p.Do(command); err != nil {
			return "", err
		}
	}
	return out.String(), p.Err()
}

// TestReplay: the same seed is the same schedule, to the last event.
func TestReplay(t *testing.T) {
	var traces [2]strings.Builder
	for i := range traces {
		c := Config{Seed: 7, Hubs: 3, Clients: 2, Grace: 5 * time.Second, Spread: 5 * time.Second}
		c.Trace = func(line string) { fmt.Fprintln(&traces[i], line) }
		c.Detail = c.Trace
		p := New(c)
		for range 200 {
			if err := p.Do(p.Chance(p.rng)); err != nil {
				t.Fatal(err)
			}
			p.Run(p.upTo(5 * time.Second))
		}
	}
	if diff := cmp.Diff(traces[0].String(), traces[1].String()); diff != "" {
		t.Errorf("two runs of one seed differ:\n%s", diff)
	}
}
