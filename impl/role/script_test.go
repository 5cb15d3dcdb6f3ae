package role

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs testdata/*.txt: "run hubs=(NAME, …)", perhaps with grace=TIME and spread=TIME, then lines "TIME
// COMMAND". The answer is the trace; go test -rewrite writes it again.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		datadriven.RunTest(t, file, runScript)
	})
}

func runScript(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var out strings.Builder
	var hubs []string
	var c Config
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "hubs":
			hubs = arg.Vals
		case "grace":
			c.Grace = duration(t, d, arg.Vals[0])
		case "spread":
			c.Spread = duration(t, d, arg.Vals[0])
		default:
			d.Fatalf(t, "unknown: %v", arg)
		}
	}
	p := newPool(t, c, hubs...)
	p.trace = func(h *hub, format string, args ...any) {
		fmt.Fprintf(&out, "%9s %s  %s\n", p.Now().Truncate(time.Millisecond), h.name, fmt.Sprintf(format, args...))
	}
	for line := range strings.Lines(d.Input) {
		at, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		p.Run(duration(t, d, at))
		if command != "end" {
			fmt.Fprintf(&out, "%9s * %s\n", p.Now(), command)
			p.do(command)
		}
	}
	return out.String()
}

func duration(t *testing.T, d *datadriven.TestData, text string) time.Duration {
	t.Helper()
	at, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return at
}
