package nodelocal

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const address = "169.254.2.1"

// port is one that nobody connects to.
type port struct {
	net.Listener
	at net.TCPAddr
}

func (p *port) Addr() net.Addr { return &p.at }
func (p *port) Close() error   { return nil }

// bed is a Pods and what it told.
type bed struct {
	*Pods
	mu     sync.Mutex
	absent bool // the machine does not have the address
	led    []string
	stop   func()
	gone   bool // the machine has lost the address
	may    bool // the hub may put it back
}

func (b *bed) listens(at string, number int) (net.Listener, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.absent || net.JoinHostPort(at, strconv.Itoa(number)) != there {
		return nil, syscall.EADDRNOTAVAIL
	}
	return &port{at: net.TCPAddr{IP: net.ParseIP(address), Port: 10268}}, nil
}

// Has implements Machine.
func (b *bed) Has(netip.Addr) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.gone, nil
}

// Give implements Machine.
func (b *bed) Give(netip.Addr) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.may {
		return syscall.EPERM
	}
	b.gone = false
	return nil
}

// lose has the machine lose the address, or find it again.
func (b *bed) lose(gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = gone
}

// start starts one that keeps what it knows in a folder.
func start(t *testing.T, dir string, change func(*bed, *PodsConfig)) *bed {
	t.Helper()
	b := &bed{}
	c := PodsConfig{
		Address: address, File: filepath.Join(dir, "pods"), Wait: 2 * time.Minute, Clock: clock.RealClock{},
		Logger: slog.New(slog.DiscardHandler),
		Listen: b.listens, Beside: func() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 10268} },
	}
	change(b, &c)
	b.Pods = NewPods(c)
	b.Follow(func(to string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.led = append(b.led, to)
	})
	if err := b.Open(); err != nil && !b.absent {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := b.Run(ctx, func(net.Listener) error { <-ctx.Done(); return nil }); err != nil {
			t.Error(err)
		}
	})
	b.stop = func() { cancel(); wg.Wait() }
	return b
}

func (b *bed) last() string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.led) == 0 {
		return "nowhere"
	}
	return b.led[len(b.led)-1]
}

func (b *bed) is(t *testing.T, when, want string) {
	t.Helper()
	if got := b.last(); got != want || b.Status().Led != (want != "nowhere" && want != "") {
		t.Errorf("%s: led %s, want %s; %+v", when, got, want, *b.Status())
	}
}

// told is there, which counts when the kubelet has read it.
func (b *bed) told(t *testing.T, when string) {
	t.Helper()
	if got := b.last(); got != there || b.Status().Led {
		t.Errorf("%s, before the kubelet has read it: led %s; %+v", when, got, *b.Status())
	}
	if b.Shown(""); b.Status().Led {
		t.Errorf("%s, when the kubelet has the cloud's: %+v", when, *b.Status())
	}
	b.Shown(there) // by a watch that was open, or a read that was late
	b.is(t, when, there)
}

const there = address + ":10268"

// TestLead: pods are led when the kubelet has read through the hub for long enough; a hub that starts again leads them
// at once, unless nobody trusts its authority yet.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := start(t, dir, func(*bed, *PodsConfig) {})
		time.Sleep(time.Hour)
		b.is(t, "while no kubelet reads", "nowhere")
		b.Reads()
		time.Sleep(time.Minute)
		b.Reads() // it does that all the time
		time.Sleep(time.Minute - time.Second)
		b.is(t, "while some pods may not trust the hub", "nowhere")
		time.Sleep(time.Second)
		b.told(t, "when they do")
		b.stop()
		for _, known := range []bool{true, false} {
			b := start(t, dir, func(_ *bed, c *PodsConfig) { c.Known = known })
			if b.Before() != there {
				t.Errorf("of the process before is known %q", b.Before())
			}
			b.is(t, "after a restart", map[bool]string{true: there, false: ""}[known])
			b.stop()
			if known {
				continue
			}
			b = start(t, dir, func(_ *bed, c *PodsConfig) { c.Known = true }) // killed before pods trusted it
			b.is(t, "after another", "nowhere")
			b.Reads()
			time.Sleep(2 * time.Minute)
			b.told(t, "later")
			b.stop()
		}
	})
}

// TestAbsent: as long as the machine does not have the address nobody is told it; later, without a restart.
func TestAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for range 2 { // of which the second was told of it by the process before
			b := start(t, dir, func(b *bed, c *PodsConfig) { b.absent, c.Known = true, true })
			b.Reads()
			time.Sleep(time.Hour)
			b.is(t, "without the address", map[bool]string{true: "nowhere", false: ""}[b.Before() == ""])
			b.mu.Lock()
			b.absent = false
			b.mu.Unlock()
			time.Sleep(again)
			time.Sleep(2 * time.Minute)
			b.told(t, "with it")
			b.stop()
		}
	})
}

// TestOff: without the flag containers are told where the cloud is, and what was kept is gone.
func TestOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "pods"), []byte(there), 0o600); err != nil {
			t.Fatal(err)
		}
		b := start(t, dir, func(_ *bed, c *PodsConfig) { c.Address = "" })
		b.is(t, "without an address", "")
		b.stop()
		if _, err := os.Stat(b.File); !os.IsNotExist(err) {
			t.Error("what was kept is still there")
		}
		b = start(t, dir, func(_ *bed, c *PodsConfig) { c.Known = true })
		b.is(t, "with one again", "nowhere")
		b.stop()
	})
}

// TestCheck: what is invalid is told with the flag, the value and what is allowed.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		address, bind string
		wait          time.Duration
		want          string
	}{
		{"", "127.0.0.1", 0, ""},
		{address, "127.0.0.1", time.Minute, ""},
		{"x", "127.0.0.1", 0, "--pods-address"},
		{"0.0.0.0", "127.0.0.1", 0, "--pods-address"},
		{"224.0.0.1", "127.0.0.1", 0, "--pods-address"},
		{"127.0.0.1", "127.0.0.1", 0, "--pods-address"},
		{address, "0.0.0.0", 0, "--pods-address"},
		{address, "127.0.0.1", -time.Second, "--pods-wait"},
	} {
		err := CheckPods(test.address, test.bind, test.wait)
		if usage := (*cli.UsageError)(nil); errors.As(err, &usage) != (test.want != "") ||
			err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// TestUnreadable: a file that holds no address is as if there were none.
func TestUnreadable(t *testing.T) {
	for _, text := range []string{"", "garbage", "169.254.2.1", string(make([]byte, mostFile+1))} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "pods"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := PodsConfig{File: filepath.Join(dir, "pods"), Logger: slog.New(slog.DiscardHandler)}
		if p := NewPods(c); p.Before() != "" {
			t.Errorf("%q: %s", text, p.Before())
		}
	}
}

// TestLost: an address that something took away is put back within seconds. Where the hub may not do that, pods are led
// to the cloud until it is there again, and all is told.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "pods"), []byte(there+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		b := start(t, dir, func(b *bed, c *PodsConfig) { c.Known, c.Machine = true, b })
		b.Reads()
		b.is(t, "before", there)
		b.may = true
		b.lose(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if has, _ := b.Has(netip.Addr{}); !has || b.Losses() != 1 {
			t.Errorf("after 2 s it is there: %t, %d losses", has, b.Losses())
		}
		b.is(t, "put back", there)

		b.may = false
		b.lose(true)
		time.Sleep(2 * time.Second)
		b.Reads()
		b.is(t, "lost", "")
		if s := b.Status(); !strings.Contains(s.Waits, "has lost") || b.Losses() != 2 {
			t.Errorf("%d losses, it says %q", b.Losses(), s.Waits)
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "pods")); strings.TrimSpace(string(text)) != there {
			t.Errorf("the file has %q: pods are to be led again", text)
		}
		time.Sleep(time.Minute)
		b.lose(false)
		time.Sleep(2 * time.Second)
		b.told(t, "there again")
		if b.Losses() != 2 {
			t.Errorf("%d losses", b.Losses())
		}
		b.stop()
	})
}
