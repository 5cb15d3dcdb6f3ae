package reverse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inNamespace makes the test binary run in a network namespace of its own.
const inNamespace = "WEIR_TEST_NAMESPACE"

// TestQueue: logs of 10 MB/s and more come out of a pool over 1 Mbit/s, or as much goes into it, while its leaders are
// killed one after the other. The queue of the modem, in which heartbeats stand, stays short: it has room for four
// seconds.
func TestQueue(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		m := newModem(t)
		t.Run("out of the pool", func(t *testing.T) { testQueue(t, m, false) })
		t.Run("into it", func(t *testing.T) { testQueue(t, m, true) })
		return
	}
	if os.Getuid() != 0 {
		t.Skip("a network namespace is root's")
	}
	for _, name := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	//nolint:gosec // this very program
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestQueue$", "-test.v")
	again.Env = append(os.Environ(), inNamespace+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := again.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

func testQueue(t *testing.T, m *modem, into bool) {
	const (
		size  = 1_000_000 // bytes in all
		kills = 3
		most  = 32 << 10 // bytes in the queue: a quarter of a second
	)
	b := newBedAt(t, WaysConfig{Gap: time.Minute}, FrontConfig{}, m.listen(t))
	ends := func(c *LeaderConfig) {
		c.Connect = func(context.Context, netip.AddrPort) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				if into {
					_, _ = io.Copy(io.Discard, there)
				} else {
					_, _ = io.Copy(there, zeros{})
				}
			}()
			return here, nil
		}
	}
	heartbeats := beat(t, m.listen(t))
	got, killed, longest := 0, 0, 0
	_, stop := b.lead("edge-0", ends)
	for c, buf := b.dial(kubelet), make([]byte, 8<<10); got < size; {
		do := c.Read
		if into {
			do = c.Write
		}
		n, err := do(buf)
		got += n
		longest = max(longest, m.queue(t))
		if err != nil {
			if kindOfError(err) != Lost && kindOfError(err) != Broken {
				t.Fatal(err)
			}
			c = b.dial(kubelet)
		}
		if got > size*(killed+1)/(kills+1) && killed < kills {
			killed++
			stop()
			_, stop = b.lead("edge-"+strconv.Itoa(killed), ends)
		}
	}
	beats, late := heartbeats()
	t.Logf("the queue had up to %d bytes, %d of %d heartbeats took more than 1 s, %d leaders were killed", longest, late,
		beats, killed)
	if longest > most {
		t.Errorf("the queue had %d bytes, want %d at most", longest, most)
	}
	if beats == 0 {
		t.Error("no heartbeat was answered")
	}
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// beat sends heartbeats to a listener, until stop is called. Each waits for the answer of the last.
func beat(t *testing.T, lis net.Listener) (stop func() (all, late int)) {
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := lis.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = lis.Close()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(far, far)
		_ = far.Close()
	})
	all, late := 0, 0
	both.Go(func() {
		for buf := make([]byte, 300); ; all++ {
			began := time.Now()
			_, err := c.Write(buf)
			if err == nil {
				_, err = io.ReadFull(c, buf)
			}
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				return
			}
			if time.Since(began) > time.Second {
				late++
			}
		}
	})
	return func() (int, int) {
		_ = c.Close()
		both.Wait()
		return all, late
	}
}

// modem is what is between this network namespace and another one, the cloud: 1 Mbit/s each way. It is a namespace of
// its own, because TCP sees to it that the queues of its own machine are short.
type modem struct{ own, cloud *os.File }

func newModem(t *testing.T) *modem {
	run(t, "ip", "link", "set", "lo", "up")
	m := &modem{own: newNamespace(t), cloud: newNamespace(t)}
	run(t, "ip", "link", "add", "site", "type", "veth", "peer", "name", "modem0", "netns", path(m.own))
	run(t, "ip", "addr", "add", "10.1.0.1/24", "dev", "site")
	run(t, "ip", "link", "set", "site", "up")
	inside(t, m.own, func() {
		run(t, "ip", "link", "add", "modem1", "type", "veth", "peer", "name", "cloud", "netns", path(m.cloud))
		for i, at := range []string{"10.1.0.2/24", "10.2.0.2/24"} {
			dev := fmt.Sprint("modem", i)
			run(t, "ip", "addr", "add", at, "dev", dev)
			run(t, "ip", "link", "set", dev, "up")
			run(t, "tc", "qdisc", "add", "dev", dev, "root", "tbf", "rate", "1mbit", "burst", "3000", "limit", "500000")
		}
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
			t.Error(err)
		}
	})
	inside(t, m.cloud, func() {
		run(t, "ip", "addr", "add", "10.2.0.1/24", "dev", "cloud")
		run(t, "ip", "link", "set", "cloud", "up")
		run(t, "ip", "route", "add", "10.1.0.0/24", "via", "10.2.0.2")
	})
	run(t, "ip", "route", "add", "10.2.0.0/24", "via", "10.1.0.2")
	return m
}

// listen listens in the cloud.
func (m *modem) listen(t *testing.T) (l net.Listener) {
	inside(t, m.cloud, func() {
		var err error
		if l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "10.2.0.1:0"); err != nil {
			t.Error(err)
		}
	})
	return l
}

var backlog = regexp.MustCompile(`backlog (\d+)(K?)b`)

// queue is how many bytes wait in the longer one of its queues.
func (m *modem) queue(t *testing.T) (longest int) {
	inside(t, m.own, func() {
		for _, all := range backlog.FindAllStringSubmatch(run(t, "tc", "-s", "qdisc", "show"), -1) {
			n, _ := strconv.Atoi(all[1])
			if all[2] != "" {
				n <<= 10
			}
			longest = max(longest, n)
		}
	})
	return longest
}

func run(t *testing.T, name string, args ...string) string {
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v %s", name, args, err, out)
	}
	return string(out)
}

// path is that of an open file, for others.
func path(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()) }

func newNamespace(t *testing.T) (f *os.File) {
	onThread(t, func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			f, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	})
	return f
}

// inside calls do in a network namespace.
func inside(t *testing.T, namespace *os.File, do func()) {
	onThread(t, func() error {
		err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			do()
		}
		return err
	})
}

// onThread calls do on a thread that ends afterwards.
func onThread(t *testing.T, do func() error) {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		err = do()
	}()
	if <-done; err != nil {
		t.Fatal(err)
	}
}
