package host

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// connects is the environment of a process that this test binary is, too: it connects to an address, or, with "own", to
// itself in its own network namespace.
const connects = "WEIR_TEST_CONNECTS"

func TestMain(m *testing.M) {
	at := os.Getenv(connects)
	if at == "" {
		os.Exit(m.Run())
	}
	if at == "own" {
		up()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		at = l.Addr().String()
	}
	conn, err := net.Dial("tcp", at)
	if err != nil {
		panic(err)
	}
	fmt.Println(at)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test lets it go
	conn.Close()
}

// up brings the loopback of a new namespace up.
func up() {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		panic(err)
	}
	request := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP}
	copy(request.name[:], "lo")
	//nolint:gosec // the form of the kernel
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		panic(errno)
	}
}

// start starts a process that connects, and returns where to. end lets it go.
func start(t *testing.T, at string, namespaces uintptr, env ...string) (to netip.AddrPort, pid int, end func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = slices.Concat(env, []string{connects + "=" + at})
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() { in.Close(); _ = cmd.Wait() }
	t.Cleanup(end)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return netip.MustParseAddrPort(strings.TrimSpace(line)), cmd.Process.Pid, end
}

func connected(t *testing.T, to netip.AddrPort) (pids []int) {
	t.Helper()
	all, err := Connected(t.Context(), []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:6443"), to})
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	for _, p := range all {
		if len(p.To) != 1 || p.To[0] != to || p.Program != self || !strings.HasPrefix(self, "/") || p.Command == "" ||
			!strings.Contains(self, p.Command) {
			t.Errorf("%+v", p)
		}
		pids = append(pids, p.PID)
	}
	return pids
}

// TestConnected: a real connection is told with the process that has it, by IPv4 and IPv6, and in another network
// namespace; none is when it is over.
func TestConnected(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root sees other processes' connections")
	}
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		to := l.Addr().(*net.TCPAddr).AddrPort()
		if pids := connected(t, to); len(pids) != 0 {
			t.Errorf("%s: %v before anybody has connected", at, pids)
		}
		_, pid, end := start(t, to.String(), 0)
		if pids := connected(t, to); !slices.Equal(pids, []int{pid}) {
			t.Errorf("%s: %v, want %d", at, pids, pid)
		}
		end()
		if pids := connected(t, to); len(pids) != 0 {
			t.Errorf("%s: %v when it is over", at, pids)
		}
	}
	to, pid, _ := start(t, "own", syscall.CLONE_NEWNET)
	if pids := connected(t, to); !slices.Equal(pids, []int{pid}) {
		t.Errorf("in a namespace: %v, want %d", pids, pid)
	}
}

// TestAPI: what pods are told is found in their environment.
func TestAPI(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start(t, l.Addr().String(), 0, "KUBERNETES_SERVICE_HOST=192.0.2.7", "KUBERNETES_SERVICE_PORT=443")
	start(t, l.Addr().String(), 0, "KUBERNETES_SERVICE_HOST=nowhere", "KUBERNETES_SERVICE_PORT=443")
	all, err := APIAddresses()
	if err != nil || !slices.Contains(all, netip.MustParseAddrPort("192.0.2.7:443")) {
		t.Errorf("%v, %v", all, err)
	}
}

// FuzzConnections: what a kernel writes is read, and nothing else makes it fail badly.
func FuzzConnections(f *testing.F) {
	f.Add("   0: 0100007F:0CEA 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4242 1")
	f.Add("  sl  local_address rem_address   st")
	f.Add("0: 0:0 00000000000000000000000001000000:0050 01 0 0 0 0 0 7")
	f.Fuzz(func(t *testing.T, line string) {
		if to, inode, err := parse(line); err == nil && inode != "" && !to.IsValid() {
			t.Errorf("%q: %v", line, to)
		}
	})
}
