package docker

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"strings"
	"time"
)

const followGrace = 5 * time.Second // for a command that is to end

// Container is a container by its name.
type Container string

// Exec runs a command in it and returns what that wrote to standard output.
func (c Container) Exec(ctx context.Context, command ...string) (string, error) {
	return Run(ctx, append([]string{"exec", string(c)}, command...)...)
}

// Feed runs a command in it that reads from stdin.
func (c Container) Feed(ctx context.Context, stdin io.Reader, command ...string) error {
	_, err := feed(ctx, stdin, append([]string{"exec", "-i", string(c)}, command...)...)
	return err
}

// Follow runs a command in it and passes on what that writes, until it ends. When ctx ends, the command's standard
// input does, by which it has to see that it is to end.
func (c Container) Follow(ctx context.Context, stdout io.Writer, command ...string) error {
	args := append([]string{"exec", "-i", string(c)}, command...)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Cancel, cmd.WaitDelay = stdin.Close, followGrace
	if err := cmd.Run(); err != nil {
		return &Error{Args: args, Err: err, Output: stderr.String()}
	}
	return nil
}

// Write writes a file in it.
func (c Container) Write(ctx context.Context, path string, data io.Reader) error {
	return c.Feed(ctx, data, "cp", "/dev/stdin", path)
}

// CopyTo copies a file, or with /. behind its name what is in a folder, to a path in it. What is there belongs to root.
func (c Container) CopyTo(ctx context.Context, from, to string) error {
	_, err := Run(ctx, "cp", from, string(c)+":"+to)
	return err
}

// ID is its full id.
func (c Container) ID(ctx context.Context) (string, error) { return c.inspect(ctx, "{{.Id}}") }

// Running reports whether it runs, paused or not.
func (c Container) Running(ctx context.Context) (bool, error) {
	s, err := c.inspect(ctx, "{{.State.Running}}")
	return s == "true", err
}

// Addresses are all that it has in all networks, IPv4 first.
func (c Container) Addresses(ctx context.Context) ([]string, error) {
	s, err := c.inspect(ctx,
		"{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}{{range "+
			".NetworkSettings.Networks}}{{.GlobalIPv6Address}} {{end}}")
	return strings.Fields(s), err
}

func (c Container) inspect(ctx context.Context, format string) (string, error) {
	return Run(ctx, "container", "inspect", "--format", format, string(c))
}

// Start starts it again.
func (c Container) Start(ctx context.Context) error { return c.do(ctx, "start") }

// Stop asks its first process to end, and kills it after the engine's patience.
func (c Container) Stop(ctx context.Context) error { return c.do(ctx, "stop") }

// Kill ends all its processes at once.
func (c Container) Kill(ctx context.Context) error { return c.do(ctx, "kill") }

// Pause lets all its processes stand still, and Unpause go on.
func (c Container) Pause(ctx context.Context) error { return c.do(ctx, "pause") }

// Unpause lets them go on.
func (c Container) Unpause(ctx context.Context) error { return c.do(ctx, "unpause") }

// Remove removes it, running or not, with its own volumes. One that is gone is no error.
func (c Container) Remove(ctx context.Context) error {
	_, err := Run(ctx, "rm", "-f", "-v", string(c))
	if Gone(err) {
		return nil
	}
	return err
}

func (c Container) do(ctx context.Context, verb string) error {
	_, err := Run(ctx, verb, string(c))
	return err
}

// Containers lists those that carry a label.
func Containers(ctx context.Context, label, value string) ([]Container, error) {
	out, err := Run(ctx, "ps", "-a", "--filter", "label="+label+"="+value, "--format", "{{.Names}}")
	var all []Container
	for _, name := range strings.Fields(out) {
		all = append(all, Container(name))
	}
	return all, err
}
