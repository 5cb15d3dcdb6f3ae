package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// pidfdPoll is how often a Stranger looks whether it is to be forgotten, in milliseconds; the kernel wakes it when the
// process ends.
const pidfdPoll = 500

// Stranger is a process of this machine that somebody else started, for one inside a container.
type Stranger struct {
	pid  int
	fd   int
	done chan struct{}

	forget sync.Once
	quit   chan struct{}
}

// InContainer finds the process of a command in a container, by the container's id, which the names of its control
// groups have in them. It works for every container engine of this machine and needs no privilege.
func InContainer(id, command string) (*Stranger, error) {
	command = command[:min(len(command), 15)] // the kernel keeps no more
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", command, err)
	}
	for _, dir := range dirs {
		comm, err := os.ReadFile(dir + "/comm")
		if err != nil || strings.TrimSpace(string(comm)) != command {
			continue
		}
		groups, err := os.ReadFile(dir + "/cgroup")
		if err != nil || !strings.Contains(string(groups), id) || zombie(dir) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		return watch(pid)
	}
	return nil, fmt.Errorf("find %s: no such process in container %.12s", command, id)
}

func zombie(dir string) bool {
	f, err := os.Open(dir + "/status")
	if err != nil {
		return true
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if state, ok := strings.CutPrefix(lines.Text(), "State:"); ok {
			return strings.HasPrefix(strings.TrimSpace(state), "Z")
		}
	}
	return false
}

func watch(pid int) (*Stranger, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", pid, err)
	}
	s := &Stranger{pid: pid, fd: fd, done: make(chan struct{}), quit: make(chan struct{})}
	go s.wait()
	return s, nil
}

// wait ends when the process does, or the Stranger is forgotten.
func (s *Stranger) wait() {
	defer unix.Close(s.fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, pidfdPoll)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			close(s.done)
			return
		}
		select {
		case <-s.quit:
			return
		default:
		}
	}
}

// PID is its process id here.
func (s *Stranger) PID() int { return s.pid }

// Done is closed when it has ended.
func (s *Stranger) Done() <-chan struct{} { return s.done }

// Running reports whether it has not ended yet.
func (s *Stranger) Running() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Usage reads what it uses now.
func (s *Stranger) Usage() (Usage, error) {
	if !s.Running() {
		return Usage{}, fmt.Errorf("usage of process %d: it is not running", s.pid)
	}
	return readUsage(s.pid)
}

// Forget ends the watch; the process goes on. Done is not closed any more then.
func (s *Stranger) Forget() { s.forget.Do(func() { close(s.quit) }) }
