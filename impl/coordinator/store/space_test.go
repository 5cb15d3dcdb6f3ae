package store

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/testkit"
)

const (
	little   = 4 << 20 // a quota that a test fills in seconds
	patience = time.Minute
)

func openLittle(t *testing.T, path string) (*Store, func()) {
	t.Helper()
	d, err := Lock(path)
	check(t, err)
	s, err := openIn(t.Context(), d, nil, slog.New(slog.NewTextHandler(t.Output(), nil)), little)
	if err != nil {
		d.Close()
		t.Fatal(err)
	}
	return s, func() { s.Close(); d.Close() }
}

// fill writes one key until etcd takes no more. It has etcd commit each write: by itself etcd does so every 100 ms, and
// goes by what was committed.
func fill(t *testing.T, s *Store) {
	t.Helper()
	value := strings.Repeat("x", 64<<10)
	for range 10 * little / len(value) {
		_, err := s.client.Put(t.Context(), "key", value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		check(t, err)
		s.etcd.Server.Backend().ForceCommit()
	}
	t.Fatal("etcd takes more than ten times its quota")
}

// TestFull: an etcd at its quota takes writes again, while it runs and after a restart, and says what happened.
func TestFull(t *testing.T) {
	path := t.TempDir()
	s, stop := openLittle(t, path)
	fill(t, s)
	if err := s.Check(t.Context()); err == nil || !s.Space().Full {
		t.Errorf("full, it says %+v and %v", s.Space(), err)
	}
	stop()
	s, stop = openLittle(t, path) // as it was when its coordinator was killed
	if now := s.Space(); now.Full || now.Reclaims != 1 || now.Bytes > little/limit.ReclaimAt {
		t.Errorf("after a restart: %+v", now)
	}
	_, err := s.client.Put(t.Context(), "key", "value")
	check(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	told := make(chan bool, 100)
	g.Go(func() error {
		return s.Tend(ctx, slog.New(slog.NewTextHandler(t.Output(), nil)), func(full bool) { told <- full })
	})
	value := strings.Repeat("x", 64<<10)
	testkit.Until(t, patience, "history that is thrown away, and a write after it", func() bool {
		_, err := s.client.Put(t.Context(), "key", value)
		return err == nil && s.Space().Reclaims > 1 && len(told) > 0
	})
	check(t, s.Check(t.Context()))
	if now := s.Space(); now.Full || now.Quota != little {
		t.Errorf("afterwards: %+v", now)
	}
	cancel()
	check(t, g.Wait())
	stop()
}

// TestFullReplicas: of three that are full each makes room, and then all take writes again.
func TestFullReplicas(t *testing.T) {
	t.Chdir(t.TempDir()) // where the sockets are
	names := []string{"a", "b", "c"}
	var peers []Peer
	for _, name := range names {
		u := &url.URL{Scheme: "unix", Host: name + ":10271"}
		peers = append(peers, Peer{Name: name, URL: u, Former: u})
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	all := make([]*Store, len(names))
	var starting errgroup.Group
	for i, name := range names {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", peers[i].URL.Host)
		check(t, err)
		d, err := Lock("data-" + name)
		check(t, err)
		t.Cleanup(d.Close)
		cluster := &Cluster{
			Token: "harbour", Name: name, Peers: peers, Join: func(context.Context) (bool, error) { return false, nil },
			Meshed: func(context.Context) error { return nil },
			Serve: func(h http.Handler) {
				server := &http.Server{Handler: h, ReadHeaderTimeout: patience}
				go func() { _ = server.Serve(l) }()
				t.Cleanup(func() { _ = server.Close() })
			},
		}
		starting.Go(func() (err error) {
			all[i], err = openIn(t.Context(), d, cluster, logger, little)
			return err
		})
	}
	check(t, starting.Wait())
	for _, s := range all {
		t.Cleanup(s.Close)
	}
	fill(t, all[0])
	for i, s := range all {
		testkit.Until(t, patience, "the word that etcd is full, at "+names[i], func() bool { return s.Space().Full })
	}
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	for _, s := range all {
		g.Go(func() error { return s.Tend(ctx, logger, func(bool) {}) })
	}
	for i, s := range all {
		testkit.Until(t, patience, "a write at "+names[i], func() bool {
			_, err := s.client.Put(t.Context(), "key", names[i])
			return err == nil && !s.Space().Full && s.Space().Reclaims > 0 && s.Space().Bytes < little
		})
	}
	cancel()
	check(t, g.Wait())
}
