package process

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/testkit"
)

func list(t *testing.T, c *clocktesting.FakeClock) *Lacks {
	t.Helper()
	return &Lacks{Clock: c, Logger: slog.New(slog.DiscardHandler)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMended: a hub ends when a cause is gone, and was gone at each look of a minute.
func TestMended(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Now())
	l, gone := list(t, c), true
	l.Add("--data-dir", syscall.EROFS, "it forgets", func() error {
		if gone {
			return nil
		}
		return syscall.EROFS
	})
	if all := l.All(); len(all) != 1 || all[0].What != "--data-dir" ||
		!strings.Contains(all[0].Why, "read-only file system: it forgets") {
		t.Errorf("it lacks %+v", all)
	}
	for i, is := range []bool{true, true, false, true, true} { // a disk that comes and goes ends nobody
		if gone = is; l.look() != "" {
			t.Errorf("look %d ended the hub", i)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	testkit.Until(t, time.Minute, "the next look to be scheduled", c.HasWaiters)
	c.Step(lackEvery)
	var mended *MendedError
	if err := <-done; !errors.As(err, &mended) || mended.What != "--data-dir" {
		t.Errorf("it ended with %v", err)
	}
}

// TestPlace: what cannot be the machine's doing is an error, and a stand-in takes identities along and leaves the rest
// alone.
func TestPlace(t *testing.T) {
	t.Setenv("RUNTIME_DIRECTORY", t.TempDir())
	l, dir := list(t, clocktesting.NewFakeClock(time.Now())), filepath.Join(t.TempDir(), "data")
	key := func() (*disk.Key, error) { return disk.NewKey(make([]byte, disk.Size)) }
	in, k, err := l.Place(dir, key)
	if in != dir || k == nil || err != nil || len(l.All()) > 0 || DiskWorked(dir) {
		t.Fatalf("%s, %v: it lacks %+v", in, err, l.All())
	}
	for _, name := range []string{"pki", "store"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name, "one"), []byte(name), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, maxFile+1), 0o600))
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	wrong := errors.New("a key that others can read")
	if _, _, err := l.Place(dir, func() (*disk.Key, error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Errorf("a mistake: %v", err)
	}
	emptied := func() (*disk.Key, error) { return disk.NewKey(nil) }
	for range 2 { // the second finds that of the first
		if in, k, err = l.Place(dir, emptied); in == dir || k == nil || err != nil {
			t.Fatalf("%s, %v", in, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(in, "pki", "one")); err != nil || string(text) != "pki" {
		t.Errorf("the stand-in has %q, %v", text, err)
	}
	for _, name := range []string{"store", "large", "link"} {
		if _, err := os.Lstat(filepath.Join(in, name)); err == nil {
			t.Errorf("the stand-in has %s", name)
		}
	}
	if info, err := os.Stat(in); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, _, err := l.Place(dir, key); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(in); err == nil {
		t.Error("the stand-in is still there, with its copies of keys")
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, _, err := l.Place(filepath.Join(file, "data"), key); err == nil {
		t.Error("a folder below a file is no mistake")
	}
}

// TestPort: a port that another process has is told, and its cause is gone when it is free.
func TestPort(t *testing.T) {
	l := list(t, clocktesting.NewFakeClock(time.Now()))
	taken := true
	open := func() (net.Listener, error) {
		if taken {
			return nil, syscall.EADDRINUSE
		}
		return net.Listen("tcp", "127.0.0.1:0")
	}
	if port, err := l.Port("--pool-port", open, "no pool"); port != nil || err != nil || len(l.All()) != 1 {
		t.Errorf("%v, %v: it lacks %+v", port, err, l.All())
	}
	taken = false
	for range lackSteady - 1 {
		l.look()
	}
	if what := l.look(); what != "--pool-port" {
		t.Errorf("it is free, and mended is %q", what)
	}
	if _, err := l.Port("--pool-port", func() (net.Listener, error) { return nil, syscall.EADDRNOTAVAIL }, ""); !errors.Is(
		err, syscall.EADDRNOTAVAIL) {
		t.Errorf("an address of another machine: %v", err)
	}
}
