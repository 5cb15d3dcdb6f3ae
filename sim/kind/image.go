package kind

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// Image has kind/node-image/build provide the image of nodes, which takes half an hour where it has to be built, and
// returns its name.
func Image(ctx context.Context, spawner *proc.Spawner, progress func(string)) (string, error) {
	root, err := gobuild.Root("")
	if err != nil {
		return "", err
	}
	build := filepath.Join(root, "kind", "node-image", "build")
	run := func(what string) (string, error) {
		out := &lines{tell: progress}
		p, err := spawner.Start(proc.Spec{Name: "kind/node-image/build", Path: build, Args: []string{what}, Output: out})
		if err != nil {
			return "", err
		}
		if err := p.Wait(ctx); err != nil {
			p.Kill()
			return "", fmt.Errorf("provide the node image: %w: %s", err, out.last)
		}
		return out.last, nil
	}
	if _, err := run("image"); err != nil {
		return "", err
	}
	return run("name")
}

// lines passes on whole lines and keeps the last.
type lines struct {
	tell func(string)
	rest string
	last string
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest += string(p)
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(p), nil
		}
		l.rest = rest
		if l.last = strings.TrimSpace(line); l.last != "" {
			l.tell(l.last)
		}
	}
}
