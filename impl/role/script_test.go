package role

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

// TestScripts runs testdata/*.txt: a header of comments, perhaps "grace TIME spread TIME", "hubs NAME…", lines "TIME
// COMMAND", then "----" and the trace.
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
			got := runScript(t, script)
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

func runScript(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	var p *pool
	var c Config
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case words[0] == "grace": // grace TIME spread TIME
			for i, d := range []*time.Duration{&c.Grace, &c.Spread} {
				var err error
				if *d, err = time.ParseDuration(words[1+2*i]); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			}
		case words[0] == "hubs":
			p = newPool(t, c, words[1:]...)
			p.trace = func(h *hub, format string, args ...any) {
				fmt.Fprintf(&out, "%9s %s  %s\n", p.Now().Truncate(time.Millisecond), h.name, fmt.Sprintf(format, args...))
			}
		default:
			at, err := time.ParseDuration(words[0])
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			p.Run(at)
			if command := strings.Join(words[1:], " "); command != "end" {
				fmt.Fprintf(&out, "%9s * %s\n", p.Now(), command)
				p.do(command)
			}
		}
	}
	return out.String()
}
