package nodelocal

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/testkit"
)

// inNamespace makes the test binary run in a network namespace of its own.
const inNamespace = "WEIR_TEST_NAMESPACE"

// TestNetworkd: in a network namespace of its own, with the kernel's netlink, what something takes away is put back,
// and is served again.
func TestNetworkd(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		if os.Getuid() != 0 {
			t.Skip("a network namespace is root's")
		}
		//nolint:gosec // this very program
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestNetworkd$", "-test.v")
		again.Env = append(os.Environ(), inNamespace+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		out, err := again.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v %s", args, err, out)
		}
	}
	ip("link", "set", "lo", "up")
	at := netip.MustParseAddr(address)
	is := func(want bool) {
		t.Helper()
		if has, err := (System{}).Has(at); err != nil || has != want {
			t.Fatalf("the machine has it: %t, %v; want %t", has, err, want)
		}
	}
	is(false)
	for range 2 { // the second time changes nothing
		if err := (System{}).Give(at); err != nil {
			t.Fatal(err)
		}
		is(true)
	}
	file := filepath.Join(t.TempDir(), "pods")
	if err := os.WriteFile(file, []byte(there+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := NewPods(PodsConfig{
		Address: address, File: file, Known: true, Machine: System{},
		Listen: func(at string, number int) (net.Listener, error) {
			return (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(at, strconv.Itoa(number)))
		},
		Beside: func() net.Addr { return &net.TCPAddr{Port: 10268} },
		Clock:  clock.RealClock{}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = p.Run(ctx, func(l net.Listener) error {
			stop := context.AfterFunc(ctx, func() { _ = l.Close() })
			defer stop()
			for {
				c, err := l.Accept()
				if err != nil {
					return nil
				}
				_ = c.Close()
			}
		})
	})
	calls := func() bool {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", there)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	testkit.Until(t, time.Minute, "the hub to be served at the address", calls)
	testkit.Until(t, time.Minute, "pods to be led", func() bool { p.Reads(); return p.Status().Led })
	for i := range 2 {
		ip("address", "del", address+"/32", "dev", "lo")
		testkit.Until(t, time.Minute, "the address to be put back", func() bool { return p.Losses() == i+1 && calls() })
	}
	if s := p.Status(); !s.Led || s.Address != there {
		t.Errorf("%+v", s)
	}
	cancel()
	running.Wait()
}
