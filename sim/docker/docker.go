package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

const pingPatience = 15 * time.Second

// Error is a docker command that failed.
type Error struct {
	Args   []string
	Err    error
	Output string // of standard error
}

func (e *Error) Error() string {
	return fmt.Sprintf("docker %s: %v: %s", strings.Join(e.Args[:min(len(e.Args), 3)], " "), e.Err,
		strings.TrimSpace(e.Output))
}

// Unwrap returns how the command ended.
func (e *Error) Unwrap() error { return e.Err }

// says reports whether the engine's refusal has one of the words in it.
func says(err error, words ...string) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, w := range words {
		if strings.Contains(e.Output, w) {
			return true
		}
	}
	return false
}

// Gone reports whether a command failed because there is no such container or network.
func Gone(err error) bool { return says(err, "No such", "not found") }

// Run runs the docker command and returns what it wrote to standard output, without white space around it.
func Run(ctx context.Context, args ...string) (string, error) { return feed(ctx, nil, args...) }

func feed(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return stdout.String(), &Error{Args: args, Err: err, Output: stderr.String()}
	}
	return strings.TrimSpace(stdout.String()), nil
}

// Ping returns nil if an engine answers, and else what to do.
func Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("there is no docker command: install Docker, or in a sandbox or CI: kind/dockerd start")
	}
	if _, err := Run(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("no Docker engine answers: start Docker, or in a sandbox or CI: kind/dockerd start (%w)", err)
	}
	return nil
}
