package virtual

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// TestScripts runs testdata/*.txt: comments, "hubs N grace TIME spread TIME", lines "TIME COMMAND", then "----" and the
// trace.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, want, _ := strings.Cut(string(data), "----\n")
			got, err := runScript(script)
			if err != nil {
				t.Errorf("%v\n%s", err, got)
			}
			if *update {
				if err := os.WriteFile(file, []byte(script+"----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("trace differs (-want +got), go test -update rewrites it:\n%s", diff)
			}
		})
	}
}

func runScript(script string) (trace string, err error) {
	var out strings.Builder
	var p *Pool
	c := Config{Seed: 6, Clients: 1}
	c.Trace = func(line string) { fmt.Fprintln(&out, line) }
	c.Detail = c.Trace
	for line := range strings.Lines(script) {
		var grace, spread, churn, at string
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "hubs"):
			churn = "0s"
			n, err := fmt.Sscanf(line, "hubs %d grace %s spread %s seed %d leaders %d churn %s",
				&c.Hubs, &grace, &spread, &c.Seed, &c.Leaders, &churn)
			if n != 3 && n != 6 {
				return "", fmt.Errorf("%q: %w", line, err)
			}
			if c.Churn, err = time.ParseDuration(churn); err != nil {
				return "", err
			}
			if c.Grace, err = time.ParseDuration(grace); err != nil {
				return "", err
			}
			if c.Spread, err = time.ParseDuration(spread); err != nil {
				return "", err
			}
			p = New(c)
			continue
		}
		at, command, _ := strings.Cut(line, " ")
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
