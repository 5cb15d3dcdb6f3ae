package testkit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Service is one unit.
type Service struct {
	// Environment changes what a process is told, for tests of bad input. nil: it is told what is true.
	Environment func(env []string) []string

	conn *net.UnixConn
	dir  string
	done chan struct{}

	mu    sync.Mutex
	most  int
	kept  []descriptor
	heard []string
	ready chan struct{}
	seen  map[string]chan struct{} // barriers

	process *exec.Cmd // nil: none runs
	ended   chan struct{}
}

type descriptor struct {
	name string
	file *os.File
}

// NewService is a service that does not run, of whose sockets some are kept.
func NewService(most int) (*Service, error) {
	dir, err := os.MkdirTemp("", "weir-sd") // a short name: that of a socket has 107 bytes at most
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &Service{most: most, conn: conn, dir: dir, done: make(chan struct{}), seen: map[string]chan struct{}{}}
	go s.listen()
	return s, nil
}

// Close kills what runs.
func (s *Service) Close() error {
	s.End(syscall.SIGKILL)
	err := s.conn.Close()
	<-s.done
	s.drop(func(descriptor) bool { return true })
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Service) listen() {
	defer close(s.done)
	text, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(253*4))
	for {
		n, more, _, _, err := s.conn.ReadMsgUnix(text, control)
		if err != nil {
			return
		}
		s.hear(string(text[:n]), descriptors(control[:more]))
	}
}

func descriptors(control []byte) (all []*os.File) {
	messages, _ := unix.ParseSocketControlMessage(control)
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			all = append(all, os.NewFile(uintptr(fd), "kept"))
		}
	}
	return all
}

func (s *Service) hear(text string, files []*os.File) {
	said := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		said[key] = value
	}
	if said["FDSTOREREMOVE"] == "1" {
		s.drop(func(d descriptor) bool { return d.name == said["FDNAME"] })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if mark := said["X_BARRIER"]; mark != "" {
		close(s.seen[mark])
		return
	}
	s.heard = append(s.heard, text)
	for _, f := range files {
		if said["FDSTORE"] == "1" && len(s.kept) < s.most {
			s.kept = append(s.kept, descriptor{said["FDNAME"], f})
		} else {
			_ = f.Close()
		}
	}
	if said["READY"] == "1" && s.ready != nil {
		close(s.ready)
		s.ready = nil
	}
}

// settle waits until all that was told has been heard.
func (s *Service) settle() error {
	s.mu.Lock()
	mark, seen := strconv.Itoa(len(s.seen)), make(chan struct{})
	s.seen[mark] = seen
	s.mu.Unlock()
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.conn.LocalAddr().String(), Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("X_BARRIER=" + mark)); err != nil {
		return err
	}
	<-seen
	return nil
}

// Allow sets how many sockets are kept from now on: FileDescriptorStoreMax= of the unit.
func (s *Service) Allow(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = most
}

// Heard is all that the service told, each datagram by itself.
func (s *Service) Heard() []string {
	_ = s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

// Kept is the store, by name.
func (s *Service) Kept() (names []string) {
	_ = s.settle()
	s.drop(broken)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.kept {
		names = append(names, d.name)
	}
	return names
}

// Keep puts a file into the store, as if the service had.
func (s *Service) Keep(name string, f *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, descriptor{name, f})
}

func (s *Service) drop(which func(descriptor) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(d descriptor) bool {
		gone := which(d)
		if gone {
			_ = d.file.Close()
		}
		return gone
	})
}

// broken is what systemd drops by itself: POLLHUP or POLLERR is seen.
func broken(d descriptor) (yes bool) {
	raw, err := d.file.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		look := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a descriptor is small
		n, err := unix.Poll(look, 0)
		yes = err == nil && n > 0 && look[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return yes || err != nil
}

// Start starts a process with what is kept, and waits until it is ready. One that ends before that is an error. The
// process has the variables of command.Env and those of systemd, and no others.
func (s *Service) Start(command *exec.Cmd) error {
	if err := s.settle(); err != nil {
		return err
	}
	s.drop(broken)
	s.mu.Lock()
	ready := make(chan struct{})
	s.ready = ready
	var names []string
	for _, d := range s.kept {
		names = append(names, d.name)
		command.ExtraFiles = append(command.ExtraFiles, d.file)
	}
	env := []string{"NOTIFY_SOCKET=" + s.conn.LocalAddr().String()}
	if len(names) > 0 {
		env = append(env, fmt.Sprintf("LISTEN_FDS=%d", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	}
	if s.Environment != nil {
		env = s.Environment(env)
	}
	command.Env = append(command.Env, env...)
	// The number of a process is known to itself only, before it becomes the program.
	command.Args = append([]string{"/bin/sh", "-c", `LISTEN_PID=${LISTEN_PID-$$} exec "$0" "$@"`, command.Path},
		command.Args[1:]...)
	command.Path = "/bin/sh"
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	err := command.Start()
	s.mu.Unlock() // not before: what runs may drop files that are handed on
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	select {
	case <-ready:
		s.process, s.ended = command, ended
		return nil
	case <-ended:
		return fmt.Errorf("%s has ended before it was ready: %s", command.Args[3], command.ProcessState)
	}
}

// End sends what runs a signal, and waits for its end. What it stored stays, as it does while systemd is about to start
// it again.
func (s *Service) End(by os.Signal) {
	if s.process != nil {
		_ = s.process.Process.Signal(by)
		<-s.ended
		s.process = nil
	}
}

// Stop is systemctl stop: the store goes with the process.
func (s *Service) Stop() {
	s.End(syscall.SIGTERM)
	_ = s.settle()
	s.drop(func(descriptor) bool { return true })
}

// Process is what runs; nil: nothing does.
func (s *Service) Process() *os.Process {
	if s.process == nil {
		return nil
	}
	return s.process.Process
}
