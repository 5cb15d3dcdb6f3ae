package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// Sockets are listening sockets of a service that systemd keeps while no process of it runs: its store of file
// descriptors, systemd.io/FILE_DESCRIPTOR_STORE. A call that comes meanwhile waits in the queue of the socket, and the
// next process answers it. Without a store the call is refused.
//
// systemd decides how long it keeps them. `systemctl restart` and a restart by Restart= keep the store. It is dropped
// as soon as the service is stopped and nothing is about to start it: callers of a stopped service are refused at once.
//
// A socket is kept for one start. TakeSockets has systemd forget all that it kept, and Keep hands over what is open
// when the service is ready. So a service that ends before it is ready leaves nothing behind. Until it is ready again,
// calls are refused as without a store: nobody waits for a service that cannot start.
type Sockets struct {
	mu    sync.Mutex
	given []*net.TCPListener // by systemd, and wanted by nobody yet
	open  []*net.TCPListener // by this process, or wanted by it
}

// mostSockets bounds what is taken. A unit allows a few (FileDescriptorStoreMax=).
const mostSockets = 64

// TakeSockets takes what systemd has kept for this process, once: children of the process get none of it. A service
// calls it before all else that can fail. The error names what could not be taken; the others are there.
func TakeSockets() (*Sockets, error) {
	s := &Sockets{}
	told := os.Getenv("LISTEN_FDS")
	n, err := strconv.Atoi(told)
	if usable := err == nil && n >= 0 && n <= mostSockets; told != "" && !usable {
		for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
			_ = os.Unsetenv(name)
		}
		return s, fmt.Errorf("take the sockets that systemd has kept: LISTEN_FDS=%.40q is no number up to %d", told,
			mostSockets)
	}
	var failed []error
	var names []string
	for _, f := range activation.Files(true) {
		l, err := listening(f)
		if err != nil {
			failed = append(failed, fmt.Errorf("take %s, which systemd has kept: %w", f.Name(), err))
		} else {
			s.given = append(s.given, l)
		}
		_ = f.Close() // the listener has one of its own
		names = append(names, f.Name())
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		failed = append(failed, Tell("FDSTOREREMOVE=1\nFDNAME="+name))
	}
	return s, errors.Join(failed...)
}

// listening is the socket that a file is, if it is one of TCP that listens.
func listening(f *os.File) (*net.TCPListener, error) {
	var listens int
	err := control(f, func(fd int) (err error) {
		listens, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case listens == 0:
		return nil, errors.New("it does not listen")
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	if tcp, ok := l.(*net.TCPListener); ok {
		return tcp, nil
	}
	return nil, errors.Join(fmt.Errorf("it is of %s", l.Addr().Network()), l.Close())
}

// Listen goes on with the socket that was kept of an IP address and port, or opens it. nil opens it.
func (s *Sockets) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if s == nil {
		return (&net.ListenConfig{}).Listen(ctx, network, address)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, err := parse(address)
	if err != nil {
		return nil, err
	}
	if l := s.take(at); l != nil {
		s.open = append(s.open, l)
		return l, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if errors.Is(err, syscall.EADDRINUSE) && s.free(at.Port()) {
		l, err = (&net.ListenConfig{}).Listen(ctx, network, address)
	}
	if tcp, ok := l.(*net.TCPListener); ok {
		s.open = append(s.open, tcp)
	}
	return l, err
}

func parse(address string) (netip.AddrPort, error) {
	if strings.HasPrefix(address, ":") {
		address = "[::]" + address
	}
	return netip.ParseAddrPort(address)
}

// take is the socket of an address; nil: there is none. One at an address that the machine has lost is none.
func (s *Sockets) take(at netip.AddrPort) *net.TCPListener {
	i := slices.IndexFunc(s.given, func(l *net.TCPListener) bool {
		has := local(l)
		return has.Port() == at.Port() && (has.Addr() == at.Addr().Unmap() ||
			has.Addr().IsUnspecified() && at.Addr().IsUnspecified())
	})
	if i < 0 || lost(at.Addr()) {
		return nil
	}
	l := s.given[i]
	s.given = slices.Delete(s.given, i, i+1)
	return l
}

func local(l net.Listener) netip.AddrPort {
	at, _ := l.Addr().(*net.TCPAddr)
	has := at.AddrPort()
	return netip.AddrPortFrom(has.Addr().Unmap(), has.Port())
}

// lost reports whether an address is none of this machine.
func lost(at netip.Addr) bool {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
	if err == nil {
		_ = l.Close()
	}
	return errors.Is(err, syscall.EADDRNOTAVAIL)
}

// free gives up what was kept of a port at other addresses than the one that is wanted; false: there is nothing.
func (s *Sockets) free(port uint16) bool {
	was := len(s.given)
	s.given = slices.DeleteFunc(s.given, func(l *net.TCPListener) bool {
		if local(l).Port() != port {
			return false
		}
		giveUp(l)
		return true
	})
	return len(s.given) < was
}

// giveUp refuses who waits at a socket, and frees its port at once, whoever else has the socket. systemd drops it when
// it sees that.
func giveUp(l *net.TCPListener) {
	_ = control(l, func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RDWR) })
	_ = l.Close()
}

func control(l syscall.Conn, do func(fd int) error) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	return errors.Join(raw.Control(func(fd uintptr) { failed = do(int(fd)) }), failed)
}

// Keep has systemd keep what is open now, and gives up what was kept and is not wanted.
func (s *Sockets) Keep() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.given {
		giveUp(l)
	}
	s.given = nil
	var failed []error
	for _, l := range s.open {
		if err := control(l, func(fd int) error { return store(l.Addr(), fd) }); !errors.Is(err, net.ErrClosed) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// store has systemd keep a socket under the name of its address, which may not have a colon.
func store(at net.Addr, socket int) error {
	state := "FDSTORE=1\nFDNAME=" + strings.ReplaceAll(at.String(), ":", "_")
	return tell(state, func(conn *net.UnixConn) error {
		raw, err := conn.SyscallConn()
		if err != nil {
			return err
		}
		var failed error // WriteMsgUnix writes nothing to a socket that is connected
		return errors.Join(raw.Write(func(fd uintptr) bool {
			failed = unix.Sendmsg(int(fd), []byte(state), unix.UnixRights(socket), nil, 0)
			return !errors.Is(failed, unix.EAGAIN)
		}), failed)
	})
}
