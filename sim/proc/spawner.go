package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ErrClosed is returned by Spawner.Start after Close.
var ErrClosed = errors.New("proc: spawner is closed")

// Spawner starts processes and ends what is left of them in Close. Its methods may be called by many
// goroutines.
type Spawner struct {
	scratch string
	janitor *janitor
	forks   chan fork

	mu     sync.Mutex
	live   map[*Process]struct{}
	closed bool
}

// fork is one exec.Cmd.Start to be done on the locked thread.
type fork struct {
	cmd  *exec.Cmd
	done chan error
}

// New returns a Spawner with an empty scratch directory.
func New() (*Spawner, error) {
	scratch, err := os.MkdirTemp("", "weir-")
	if err != nil {
		return nil, fmt.Errorf("create scratch directory: %w", err)
	}
	j, err := startJanitor(scratch)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	s := &Spawner{scratch: scratch, janitor: j, forks: make(chan fork), live: map[*Process]struct{}{}}
	go s.forkLoop()
	return s, nil
}

// Scratch creates a directory of the given name, only for this user, below the scratch directory. It is
// removed when the Spawner is closed or this process dies.
func (s *Spawner) Scratch(name ...string) (string, error) {
	dir := filepath.Join(append([]string{s.scratch}, name...)...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create scratch directory: %w", err)
	}
	return dir, nil
}

// Start starts a process. The caller ends it with Stop or Kill; Close does so for the rest.
func (s *Spawner) Start(spec Spec) (*Process, error) {
	p, err := prepare(spec)
	if err != nil {
		return nil, err
	}
	// The lock is held across the fork so that Close never misses a child that is just being born.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		p.closeLog()
		return nil, ErrClosed
	}
	f := fork{cmd: p.cmd, done: make(chan error, 1)}
	s.forks <- f
	if err := <-f.done; err != nil {
		p.closeLog()
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p.pid = p.cmd.Process.Pid
	s.live[p] = struct{}{}
	s.tellJanitor()
	go func() {
		p.wait()
		s.forget(p)
		close(p.done)
	}()
	return p, nil
}

// Close kills every process that still runs, waits for it, removes the scratch directory and ends the
// forking thread. It may be called twice.
func (s *Spawner) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	left := make([]*Process, 0, len(s.live))
	for p := range s.live {
		left = append(left, p)
	}
	s.mu.Unlock()
	for _, p := range left {
		p.signalGroup(sigKill)
	}
	for _, p := range left {
		<-p.done
	}
	close(s.forks)
	return s.janitor.finish()
}

// forkLoop runs on one thread for the life of the Spawner, see the package comment.
func (s *Spawner) forkLoop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for f := range s.forks {
		f.done <- f.cmd.Start()
	}
}

func (s *Spawner) forget(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, p)
	s.tellJanitor()
}

// tellJanitor sends the process groups that run now. A lost janitor loses only the second net, so a
// failed write is not an error of the caller.
func (s *Spawner) tellJanitor() {
	groups := make([]string, 0, len(s.live))
	for p := range s.live {
		groups = append(groups, strconv.Itoa(p.pid))
	}
	slices.Sort(groups)
	s.janitor.watch(strings.Join(groups, " "))
}
