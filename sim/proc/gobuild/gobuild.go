package gobuild

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/proc"
)

const (
	module = "github.com/weir-edge/weir"
	// report is how often progress is told.
	report = 3 * time.Second
	// keepLines of the toolchain's other output end up in the error.
	keepLines = 40
)

// ErrNoRepository is returned when the sources of Weir are not found.
var ErrNoRepository = errors.New("the sources of Weir are not found: run this inside its repository")

// Root returns the root of the repository that dir is in; an empty dir means the working directory.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.Contains("\n"+string(data), "\nmodule "+module+"\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", ErrNoRepository
		}
		dir = up
	}
}

// Env is the environment of every build of the testbed: one set of build flags, so that the main module and the
// control plane share one compile cache.
func Env() []string { return []string{"CGO_ENABLED=0", "GOWORK=off"} }

// Spec says what to build.
type Spec struct {
	Name     string   // what people call it, for progress and errors
	Dir      string   // folder of the module
	Packages []string // main packages
	Output   string   // folder that receives the binaries; it must exist
	LDFlags  string
	Overlay  string // file of other sources, as go build -overlay takes it; "": none
}

// Run builds. Progress may be nil; it is called from one goroutine at a time.
func Run(ctx context.Context, s *proc.Spawner, spec Spec, progress func(string)) error {
	if progress == nil {
		progress = func(string) {}
	}
	begin := time.Now()
	list := append([]string{"list", "-deps", "-f", "{{.ImportPath}}"}, spec.Packages...)
	resolved, err := run(ctx, s, spec, list, func(c count) {
		progress(fmt.Sprintf("%s: %d modules downloaded, %s", spec.Name, c.downloads, since(begin)))
	})
	if err != nil {
		return fmt.Errorf("resolve the packages of %s: %w", spec.Name, err)
	}
	build := append([]string{
		"build", "-v", "-o", spec.Output + string(filepath.Separator), "-ldflags", spec.LDFlags, "-overlay", spec.Overlay,
	}, spec.Packages...)
	built, err := run(ctx, s, spec, build, func(c count) {
		progress(fmt.Sprintf("%s: %d of at most %d packages compiled, %s", spec.Name, c.packages, resolved.packages,
			since(begin)))
	})
	if err != nil {
		return fmt.Errorf("build %s: %w", spec.Name, err)
	}
	progress(fmt.Sprintf("%s: built, %d packages compiled, %s", spec.Name, built.packages, since(begin)))
	return nil
}

func since(t time.Time) string { return time.Since(t).Round(time.Second).String() }

// count is what the toolchain's output says so far.
type count struct {
	packages, downloads int
}

// run runs one go command, tells its progress and returns the final count.
func run(ctx context.Context, s *proc.Spawner, spec Spec, args []string, tell func(count)) (count, error) {
	r, w := io.Pipe()
	p, err := s.Start(proc.Spec{Name: "go " + args[0], Path: "go", Args: args, Dir: spec.Dir, Env: Env(), Output: w})
	if err != nil {
		return count{}, err
	}
	var mu sync.Mutex
	var c count
	var rest []string
	var reader sync.WaitGroup
	reader.Go(func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			mu.Lock()
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "go: downloading "):
				c.downloads++
			case isImportPath(line):
				c.packages++
			default:
				rest = append(rest[max(0, len(rest)+1-keepLines):], line)
			}
			mu.Unlock()
		}
		_, _ = io.Copy(io.Discard, r) // after a line too long to scan
	})
	snapshot := func() count {
		mu.Lock()
		defer mu.Unlock()
		return c
	}
	tick := time.NewTicker(report)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			tell(snapshot())
			continue
		case <-ctx.Done():
			p.Kill()
		case <-p.Done():
		}
		break
	}
	_ = w.Close()
	reader.Wait()
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	if err := p.Err(); err != nil {
		return c, fmt.Errorf("%w\n  %s", err, strings.Join(rest, "\n  "))
	}
	return c, nil
}

// isImportPath tells the lines of go build -v and go list from compile errors and notes.
func isImportPath(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:#")
}
