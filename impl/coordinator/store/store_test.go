package store

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) (*Store, func()) {
	t.Helper()
	d, err := Lock(path)
	check(t, err)
	s, err := Open(t.Context(), d, nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		d.Close()
		t.Fatal(err)
	}
	return s, func() {
		s.Close()
		d.Close()
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d, err := Lock(path)
	check(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v, want a directory for this user only", info.Mode(), err)
	}
	_, err = Lock(path)
	var locked *LockedError
	if !errors.As(err, &locked) || locked.By != strconv.Itoa(os.Getpid()) {
		t.Fatalf("a second lock: %v", err)
	}
	if want := "data directory " + path + " is in use by process "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%q does not begin with %q", err, want)
	}
	d.Close()
	check(t, os.Chmod(path, 0o755)) //nolint:gosec // as somebody made it who thought of nothing
	d, err = Lock(path)
	check(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v, want a directory that was closed to others", info.Mode(), err)
	}
	d.Close()
}

func TestLockNeedsADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	if _, err := Lock(file); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("locked a file: %v", err)
	}
}

func TestIncarnation(t *testing.T) {
	path := t.TempDir()
	s, stop := open(t, path)
	first := s.Incarnation()
	_, err := s.client.Put(t.Context(), "key", "value")
	check(t, err)
	check(t, s.Check(t.Context()))
	stop()

	s, stop = open(t, path)
	if first == "" || s.Incarnation() != first {
		t.Errorf("incarnation %q after a restart, %q before", s.Incarnation(), first)
	}
	resp, err := s.client.Get(t.Context(), "key")
	check(t, err)
	if len(resp.Kvs) != 1 || string(resp.Kvs[0].Value) != "value" {
		t.Errorf("after a restart: %v", resp.Kvs)
	}
	stop()

	check(t, os.RemoveAll(filepath.Join(path, "etcd")))
	s, stop = open(t, path)
	defer stop()
	if s.Incarnation() == first {
		t.Error("the same incarnation after the data was lost")
	}
}

// TestLongPath: a socket's path has 107 bytes, a directory's has more.
func TestLongPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("deep/", 40))
	s, stop := open(t, path)
	defer stop()
	if _, err := os.Stat(filepath.Join(path, "etcd.sock")); err != nil {
		t.Error(err)
	}
	// As the API server reaches it: by its socket.
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, DialTimeout: 10 * time.Second})
	check(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = c.Put(ctx, "key", "value")
	check(t, err)
}

// TestSockets: both of etcd's sockets are in the directory that nobody else may enter. An abstract one asks nobody who
// he is.
func TestSockets(t *testing.T) {
	path := t.TempDir()
	_, stop := open(t, path)
	defer stop()
	for _, name := range []string{"etcd.sock", "peer.sock"} {
		if info, err := os.Stat(filepath.Join(path, name)); err != nil || info.Mode().Type() != os.ModeSocket {
			t.Errorf("%s: %v", name, err)
		}
	}
	info, err := os.Stat(path)
	check(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("others may enter: %v", info.Mode())
	}
}

// TestBrokenData: what etcd answers by ending the process is an error here.
func TestBrokenData(t *testing.T) {
	path := t.TempDir()
	_, stop := open(t, path)
	stop()
	db := filepath.Join(path, "etcd", "member", "snap", "db")
	check(t, os.WriteFile(db, []byte(strings.Repeat("no database ", 10000)), 0o600))
	d, err := Lock(path)
	check(t, err)
	defer d.Close()
	_, err = Open(t.Context(), d, nil, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "start etcd in "+path) || strings.Contains(err.Error(), "\n") {
		t.Errorf("opened a broken database: %v", err)
	}
}

// TestStartWithoutOthers: one of three that finds no other one stops as soon as it is told to.
func TestStartWithoutOthers(t *testing.T) {
	t.Chdir(t.TempDir()) // where the sockets are
	d, err := Lock("data")
	check(t, err)
	defer d.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why, serves := errors.New("no longer wanted"), make(chan struct{})
	cluster := &Cluster{
		Token: "harbour", Name: "a",
		Serve: func(http.Handler) { close(serves) },
		Join:  func(context.Context) (bool, error) { return false, nil },
	}
	for _, name := range []string{"a", "b", "c"} {
		u := &url.URL{Scheme: "unix", Host: name + ":10271"}
		cluster.Peers = append(cluster.Peers, Peer{Name: name, URL: u, Former: u})
	}
	ended := make(chan error, 1)
	go func() {
		s, err := Open(ctx, d, cluster, slog.New(slog.NewTextHandler(t.Output(), nil)))
		if err == nil {
			s.Close()
		}
		ended <- err
	}()
	select {
	case <-serves: // etcd runs, and waits for a majority
	case err := <-ended:
		t.Fatalf("it ended by itself: %v", err)
	}
	cancel(why)
	select {
	case err := <-ended:
		if !errors.Is(err, why) {
			t.Errorf("ended with %v, want %v", err, why)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	d, err := Lock(t.TempDir())
	check(t, err)
	defer d.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no longer wanted")
	cancel(why)
	if s, err := Open(ctx, d, nil, slog.New(slog.DiscardHandler)); err == nil {
		s.Close() // it was quicker
	} else if !errors.Is(err, why) {
		t.Errorf("started with %v, want %v", err, why)
	}
}
