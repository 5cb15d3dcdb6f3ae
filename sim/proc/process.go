package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	sigKill = syscall.SIGKILL
	// tailBytes of the log end up in the error of a process that failed.
	tailBytes = 2048
	// pipeGrace is how long output is still read after the process itself has ended.
	pipeGrace = 2 * time.Second
)

// Spec says what to run.
type Spec struct {
	Name string   // what people call it, for errors: "kube-apiserver", "hub edge-1"
	Path string   // executable
	Args []string // without the program's name
	Env  []string // added to the environment of this process
	Dir  string   // working directory; empty: this one's

	// LogFile receives standard output and error; it is appended to, so a restarted process keeps one log.
	// Empty: they are discarded, unless Output is set.
	LogFile string
	// Output receives standard output and error instead of a log file.
	Output io.Writer
}

// Process is a started process.
type Process struct {
	name    string
	pid     int // and the id of its group
	cmd     *exec.Cmd
	log     *os.File
	logFrom int64 // where this start began in its log
	done    chan struct{}
	err     error // valid once done is closed
}

func prepare(spec Spec) (*Process, error) {
	p := &Process{name: spec.Name, done: make(chan struct{})}
	// Stop, Kill and Spawner.Close end it, each in its way; a context knows only one.
	p.cmd = exec.CommandContext(context.Background(), spec.Path, spec.Args...)
	p.cmd.Env = append(os.Environ(), spec.Env...)
	p.cmd.Dir = spec.Dir
	p.cmd.WaitDelay = pipeGrace
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: sigKill}
	switch {
	case spec.Output != nil:
		p.cmd.Stdout, p.cmd.Stderr = spec.Output, spec.Output
	case spec.LogFile != "":
		f, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open log of %s: %w", spec.Name, err)
		}
		if p.logFrom, err = f.Seek(0, io.SeekEnd); err != nil {
			return nil, errors.Join(fmt.Errorf("open log of %s: %w", spec.Name, err), f.Close())
		}
		p.log, p.cmd.Stdout, p.cmd.Stderr = f, f, f
	}
	return p, nil
}

// wait runs once, on the goroutine that Spawner.Start started.
func (p *Process) wait() {
	err := p.cmd.Wait()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		p.err = fmt.Errorf("%s: %w%s", p.name, err, p.tail())
	}
	// The leader is gone; nothing it started may stay. Its id stays reserved as long as the group has members.
	_ = syscall.Kill(-p.pid, sigKill)
	p.closeLog()
}

// Name is the name given in the Spec.
func (p *Process) Name() string { return p.name }

// PID is the process id, and the id of its group.
func (p *Process) PID() int { return p.pid }

// Done is closed when the process has ended and been waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err tells how the process ended: nil for exit code 0 or while it runs, else what happened and the last
// lines of its log.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Wait waits until the process has ended, or ctx, and tells how.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop sends SIGTERM and waits for the end for the given grace, then kills. It returns nil when the process
// is gone, whatever its exit code, and an error when it had to be killed.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.signal(syscall.SIGTERM)
	p.signalGroup(syscall.SIGCONT) // a frozen process cannot end by itself
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("stop %s: killed: %w", p.name, ctx.Err())
	case <-timer.C:
		tail := p.tail()
		p.Kill()
		return fmt.Errorf("stop %s: still running %s after SIGTERM, killed%s", p.name, grace, tail)
	}
}

// Kill sends SIGKILL to the process and all it started, and waits for its end.
func (p *Process) Kill() {
	p.signalGroup(sigKill)
	<-p.done
}

// Freeze stops the process and all it started (SIGSTOP): alive, connected, and silent.
func (p *Process) Freeze() error { return p.must(syscall.SIGSTOP, "freeze") }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error { return p.must(syscall.SIGCONT, "thaw") }

func (p *Process) must(sig syscall.Signal, verb string) error {
	if !p.Running() {
		return fmt.Errorf("%s %s: it is not running", verb, p.name)
	}
	if err := syscall.Kill(-p.pid, sig); err != nil {
		return fmt.Errorf("%s %s: %w", verb, p.name, err)
	}
	return nil
}

func (p *Process) signal(sig syscall.Signal) {
	if p.Running() {
		_ = p.cmd.Process.Signal(sig) // already gone is what we want to hear
	}
}

// signalGroup signals the process and all it started, unless it has ended: its id may be another's by then.
func (p *Process) signalGroup(sig syscall.Signal) {
	if p.Running() {
		_ = syscall.Kill(-p.pid, sig)
	}
}

func (p *Process) closeLog() {
	if p.log != nil {
		_ = p.log.Close()
	}
}

// Tail returns the last bytes that the process wrote to its log file.
func (p *Process) Tail(n int64) string {
	if p.cmd.Stdout == nil {
		return ""
	}
	f, ok := p.cmd.Stdout.(*os.File)
	if !ok {
		return ""
	}
	log, err := os.Open(f.Name())
	if err != nil {
		return ""
	}
	defer log.Close()
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	from := max(p.logFrom, size-n)
	data, _ := io.ReadAll(io.NewSectionReader(log, from, size-from))
	if from > p.logFrom { // do not begin within a line
		if _, rest, ok := strings.Cut(string(data), "\n"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return strings.TrimSpace(string(data))
}

func (p *Process) tail() string {
	t := p.Tail(tailBytes)
	if t == "" {
		return ""
	}
	return "\n  " + strings.ReplaceAll(t, "\n", "\n  ")
}
