package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/weir-edge/weir/impl/testkit"
)

// What this test binary is as a process of a service.
const (
	serves = "WEIR_TEST_SERVES" // at an address
	fails  = "WEIR_TEST_FAILS"  // before it is ready
	tells  = "WEIR_TEST_TELLS"  // what it has taken
)

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(tells) != "":
		err = tellTaken()
	case os.Getenv(serves) != "":
		err = serve(os.Getenv(serves))
	default:
		goleak.VerifyTestMain(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers with the number of its process until it is told to end.
func serve(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := TakeSockets()
	if err != nil {
		return err
	}
	l, err := s.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	if os.Getenv(fails) != "" {
		return errors.New("it fails")
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) }),
	}
	ended := make(chan error)
	go func() { ended <- server.Serve(l) }()
	if err := ServeReady(ctx, "http://"+l.Addr().String(), s.Keep, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	err = server.Shutdown(context.WithoutCancel(ctx))
	<-ended
	return err
}

// taken is what a process tells of its sockets.
type taken struct {
	Addresses []string
	Error     string
	Children  string // what its children get
}

func tellTaken() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var t taken
	s, err := TakeSockets()
	if err != nil {
		t.Error = err.Error()
	}
	for _, l := range s.given {
		t.Addresses = append(t.Addresses, l.Addr().String())
	}
	child, err := exec.CommandContext(ctx, "/bin/sh", "-c",
		`echo "$LISTEN_FDS$LISTEN_PID$LISTEN_FDNAMES"; ls -l /proc/self/fd | grep socket:; true`).Output()
	if err != nil {
		return err
	}
	t.Children = strings.TrimSpace(string(child))
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := errors.Join(Tell("X_TAKEN="+string(text)), Tell(Ready)); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// service is one that does not run. What its processes say is in the log of the test.
func service(t *testing.T, most int) *testkit.Service {
	t.Helper()
	s, err := testkit.NewService(most)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// command is this test binary, as a process.
func command(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Env, c.Stderr = env, t.Output()
	return c
}

func start(t *testing.T, s *testkit.Service, env ...string) {
	t.Helper()
	if err := s.Start(command(t, env...)); err != nil {
		t.Fatal(err)
	}
}

// keepOne has a service begin with a socket that listens, so that no other process can get its port before, and returns
// its address.
func keepOne(t *testing.T, s *testkit.Service) string {
	t.Helper()
	l := listen(t, "tcp", "127.0.0.1:0")
	s.Keep("first", file(t, l))
	return l.Addr().String()
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// file is what is below a socket, which is given up.
func file(t *testing.T, socket interface{ Close() error }) *os.File {
	t.Helper()
	f, err := socket.(interface{ File() (*os.File, error) }).File()
	if u, ok := socket.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	if err = errors.Join(err, socket.Close()); err != nil {
		t.Fatal(err)
	}
	return f
}

// call asks by a connection of its own.
func call(ctx context.Context, address string) (string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// refused tries an address at which nobody is.
func refused(t *testing.T, address string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a call of %s, where nobody is: %v, want a refusal", address, err)
	}
}

// callers call without a break, each by new connections, until it is stopped. It returns how many calls were refused.
// What a process has under way when it ends is not counted.
func callers(t *testing.T, address string) (stop func() (made, refused int)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	var (
		mu            sync.Mutex
		all           sync.WaitGroup
		made, refused int
		over          = make(chan struct{})
	)
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				_, err := call(ctx, address)
				mu.Lock()
				made++
				if errors.Is(err, syscall.ECONNREFUSED) {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	return func() (int, int) {
		close(over)
		all.Wait()
		return made, refused
	}
}

// TestSocketsOutliveTheirProcess: while a service restarts, or comes back from a crash, calls wait for its next
// process. None is refused, also of callers that do not stop calling.
func TestSocketsOutliveTheirProcess(t *testing.T) {
	for name, by := range map[string]os.Signal{"a restart": syscall.SIGTERM, "a crash": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			s := service(t, 1)
			address := keepOne(t, s)
			start(t, s, serves+"="+address)
			stop := callers(t, address)
			for range 3 {
				s.End(by)
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
				if err != nil {
					t.Fatalf("a call while no process runs: %v", err)
				}
				if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
					t.Error(err)
				}
				start(t, s, serves+"="+address)
				text, err := io.ReadAll(conn)
				if pid := fmt.Sprint(s.Process().Pid); err != nil || !strings.HasSuffix(string(text), "\r\n\r\n"+pid) {
					t.Errorf("it is answered by %q, %v, want process %s", text, err, pid)
				}
				conn.Close()
			}
			if made, refused := stop(); refused > 0 {
				t.Errorf("%d of %d calls were refused", refused, made)
			}
			if want := []string{strings.ReplaceAll(address, ":", "_")}; !slices.Equal(s.Kept(), want) {
				t.Errorf("kept are %q, want %q", s.Kept(), want)
			}
		})
	}
}

// TestNothingIsKept: a unit that keeps nothing refuses calls while it restarts. So does a service whose last start was
// in vain, although its unit keeps sockets: nobody waits for it.
func TestNothingIsKept(t *testing.T) {
	s := service(t, 0)
	address := keepOne(t, s)
	start(t, s, serves+"="+address)
	if _, err := call(t.Context(), address); err != nil {
		t.Error(err)
	}
	s.End(syscall.SIGTERM)
	refused(t, address)

	s = service(t, 1)
	address = keepOne(t, s)
	start(t, s, serves+"="+address)
	s.End(syscall.SIGKILL)
	if err := s.Start(command(t, serves+"="+address, fails+"=yes")); err == nil {
		t.Fatal("a process that fails is ready")
	}
	if kept := s.Kept(); len(kept) > 0 {
		t.Errorf("a start in vain leaves %q", kept)
	}
	refused(t, address)
}

// TestOtherAddress: a service that is started with another address gets that, also if what was kept stands in its way.
// The former address is given up: who waits there is not left waiting.
func TestOtherAddress(t *testing.T) {
	s := service(t, 1)
	former := keepOne(t, s)
	_, port, err := net.SplitHostPort(former)
	if err != nil {
		t.Fatal(err)
	}
	start(t, s, serves+"=:"+port)
	if text, err := call(t.Context(), former); err != nil || text != fmt.Sprint(s.Process().Pid) {
		t.Errorf("at all addresses, one that was kept alone among them: %q, %v", text, err)
	}
	if kept := s.Kept(); len(kept) != 1 || kept[0] == "first" {
		t.Errorf("kept are %q", kept)
	}
	s.End(syscall.SIGTERM)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", former)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start(t, s, serves+"=127.0.0.1:0")
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("who waits at an address of before: %v", err)
	}
	refused(t, former)
	if kept := s.Kept(); len(kept) != 1 || strings.HasSuffix(kept[0], "_"+port) {
		t.Errorf("kept are %q", kept)
	}
}

// TestLostAddress: a socket of an address that the machine has lost is not taken for one that can be called.
func TestLostAddress(t *testing.T) {
	free := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1) })
		return errors.Join(failed, err)
	}}
	l, err := free.Listen(t.Context(), "tcp", "192.0.2.1:0") // TEST-NET-1 of RFC 5737
	if err != nil {
		t.Fatal(err)
	}
	s := &Sockets{given: []*net.TCPListener{l.(*net.TCPListener)}}
	if l, err := s.Listen(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("%v, %v", l, err)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := s.Keep(); err != nil {
		t.Error(err)
	}
	if err := l.(*net.TCPListener).SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestTakeSockets: what cannot be what systemd says is left, with a word about it, and the rest is taken. Children get
// nothing.
func TestTakeSockets(t *testing.T) {
	change := func(name, value string) func([]string) []string {
		return func(env []string) []string {
			env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
			return append(env, name+"="+value)
		}
	}
	for name, c := range map[string]struct {
		change func([]string) []string
		beside func(t *testing.T) *os.File
		taken  int
		want   string
	}{
		"as systemd does it":       {taken: 1},
		"a number that is none":    {change: change("LISTEN_FDS", "abc"), want: `LISTEN_FDS="abc"`},
		"a number below zero":      {change: change("LISTEN_FDS", "-1"), want: `LISTEN_FDS="-1"`},
		"too many":                 {change: change("LISTEN_FDS", "65"), want: `LISTEN_FDS="65" is no number up to 64`},
		"of another process":       {change: change("LISTEN_PID", "1")},
		"a process that is none":   {change: change("LISTEN_PID", "me")},
		"without names":            {change: change("LISTEN_FDNAMES", ""), taken: 1},
		"more names than sockets":  {change: change("LISTEN_FDNAMES", "a:b:c"), taken: 1},
		"a name that is not known": {change: change("LISTEN_FDNAMES", "FDSTORE=1\n"), taken: 1},
		"beside no socket": {
			beside: func(t *testing.T) *os.File {
				f, err := os.Open(os.DevNull)
				if err != nil {
					t.Fatal(err)
				}
				return f
			}, taken: 1, want: "take beside, which systemd has kept: socket operation on non-socket",
		},
		"beside a socket that does not listen": {
			beside: func(t *testing.T) *os.File {
				conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				return file(t, conn)
			}, taken: 1, want: "it does not listen",
		},
		"beside a socket of another kind": {
			beside: func(t *testing.T) *os.File { return file(t, listen(t, "unix", "@weir-"+random(t))) }, taken: 1,
			want: "it is of unix",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := service(t, 0)
			if c.beside != nil {
				s.Keep("beside", c.beside(t))
			}
			keepOne(t, s)
			s.Environment = c.change
			start(t, s, tells+"=yes")
			var got taken
			for _, text := range s.Heard() {
				if told, ok := strings.CutPrefix(text, "X_TAKEN="); ok {
					if err := json.Unmarshal([]byte(told), &got); err != nil {
						t.Fatal(err)
					}
				}
			}
			if len(got.Addresses) != c.taken || !strings.Contains(got.Error, c.want) || c.want == "" && got.Error != "" {
				t.Errorf("taken is %+v, want %d, and %q", got, c.taken, c.want)
			}
			if got.Children != "" && c.taken > 0 {
				t.Errorf("children get %q", got.Children)
			}
			if kept := s.Kept(); c.change == nil && len(kept) > 0 {
				t.Errorf("systemd still keeps %q", kept)
			}
		})
	}
}

func random(t *testing.T) string {
	t.Helper()
	return strings.ReplaceAll(t.TempDir(), "/", "-")
}
