package link

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// never is longer than any test, in milliseconds and in microseconds.
const never = int64(time.Hour)

func (s *setup) poison(dir Direction, node, kind string, attributes map[string]int64) func() {
	s.t.Helper()
	remove, err := s.AddToxic(dir, node, kind, attributes)
	if err != nil {
		s.t.Fatal(err)
	}
	return remove
}

// ends checks that a connection is closed, or reset.
func ends(t *testing.T, c net.Conn, byReset bool) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	n, err := c.Read(make([]byte, 1))
	if n != 0 || errors.Is(err, syscall.ECONNRESET) != byReset || !byReset && !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes and %v, want an end, by a reset: %v", n, err, byReset)
	}
}

func TestLimitData(t *testing.T) {
	s := newSetup(t, Config{})
	x := s.proxy("edge-1", "node")
	client := s.dial(x)
	server := s.cloud.accepted(t)
	write(t, server, []byte("before"))
	read(t, client, 6)
	remove := s.poison(Down, "edge-1", "limit_data", map[string]int64{"bytes": 4})
	other, cloud := s.connect("edge-2", "node")
	newer := s.dial(x)
	for _, c := range []*net.TCPConn{server, s.cloud.accepted(t)} {
		write(t, c, []byte("after"))
	}
	for _, c := range []*net.TCPConn{client, newer} {
		if got := read(t, c, 4); got != "afte" {
			t.Errorf("got %q", got)
		}
		ends(t, c, false)
	}
	ends(t, server, false)
	write(t, cloud, []byte("of another node"))
	read(t, other, 15)
	if got := s.Toxics(); len(got) != 1 || got[0] != "limit_data down of edge-1" {
		t.Errorf("toxics %q", got)
	}
	remove()
	client = s.dial(x)
	write(t, s.cloud.accepted(t), []byte("healed"))
	read(t, client, 6)
	if got := s.Toxics(); len(got) != 0 {
		t.Errorf("toxics %q, want none", got)
	}
}

// TestTimeout: what is said is lost, so the connections cannot go on when it is over.
func TestTimeout(t *testing.T) {
	s := newSetup(t, Config{})
	client, server := s.connect("edge-1", "node")
	remove := s.poison(Up, "", "timeout", map[string]int64{"timeout": 0})
	write(t, client, []byte("lost"))
	silent(t, server)
	write(t, server, []byte("the other way"))
	read(t, client, 13)
	remove()
	ends(t, server, false)
	ends(t, client, false)

	defer s.poison(Up, "", "timeout", map[string]int64{"timeout": 1})()
	_, server = s.connect("edge-2", "node") // opened while it is there
	ends(t, server, false)
}

// TestSlicer: bytes come in pieces, and none is lost when it is taken off in the middle of one.
func TestSlicer(t *testing.T) {
	s := newSetup(t, Config{})
	client, server := s.connect("edge-1", "node")
	remove := s.poison(Both, "edge-1", "slicer", map[string]int64{"average_size": 10, "delay": never})
	sent := bytes.Repeat([]byte("0123456789"), 8)
	write(t, client, sent)
	read(t, server, 10)
	silent(t, server)
	remove()
	if got := read(t, server, 70); got != string(sent[10:]) {
		t.Errorf("then came %q", got)
	}
	write(t, server, sent)
	read(t, client, 80)
}

func TestSlowClose(t *testing.T) {
	s := newSetup(t, Config{})
	client, server := s.connect("edge-1", "node")
	remove := s.poison(Up, "", "slow_close", map[string]int64{"delay": never / int64(time.Millisecond)})
	write(t, client, []byte("last"))
	_ = client.CloseWrite()
	read(t, server, 4)
	silent(t, server)
	write(t, server, []byte("answer"))
	read(t, client, 6)
	remove()
	ends(t, server, false)
}

// TestResetPeer: connections are reset at both ends, also those on which nothing is said.
func TestResetPeer(t *testing.T) {
	s := newSetup(t, Config{})
	x := s.proxy("edge-1", "node")
	client := s.dial(x)
	server := s.cloud.accepted(t)
	other, cloud := s.connect("edge-2", "node")
	remove := s.poison(Both, "edge-1", "reset_peer", map[string]int64{"timeout": 2000})
	s.step(time.Second)
	newer := s.dial(x)
	accepted := s.cloud.accepted(t)
	write(t, newer, []byte("hello"))
	read(t, accepted, 5)
	s.step(time.Second)
	ends(t, client, true)
	ends(t, server, true)
	silent(t, newer)
	s.step(time.Second)
	ends(t, newer, true)
	ends(t, accepted, true)
	write(t, other, []byte("of another node"))
	read(t, cloud, 15)
	last := s.dial(x)
	accepted = s.cloud.accepted(t)
	remove()
	write(t, last, []byte("goes on"))
	read(t, accepted, 7)
	s.clock.Step(time.Hour)
	silent(t, last)
}

// TestToxicsOnTopOfEachOther: those behind one that has ended the connection neither wait for a reader nor keep
// anybody who takes them off, and nothing is left of them.
func TestToxicsOnTopOfEachOther(t *testing.T) {
	s := newSetup(t, Config{})
	slices := s.poison(Both, "", "slicer", map[string]int64{"average_size": 100, "delay": 1})
	limit := s.poison(Both, "", "limit_data", map[string]int64{"bytes": 50})
	slow := s.poison(Both, "", "slow_close", map[string]int64{"delay": 1})
	loses := s.poison(Up, "", "timeout", map[string]int64{"timeout": 0})
	x := s.proxy("edge-1", "node") // later than they
	var wg sync.WaitGroup
	for range 4 {
		client := s.dial(x)
		server := s.cloud.accepted(t)
		wg.Go(func() { _, _ = client.Write(make([]byte, 1<<20)) })
		wg.Go(func() { _, _ = server.Write(make([]byte, 1<<20)) })
		wg.Go(func() { _, _ = io.Copy(io.Discard, client) })
		wg.Go(func() { _, _ = io.Copy(io.Discard, server) })
	}
	loses()
	wg.Wait()
	for _, remove := range []func(){slices, slow, limit} {
		remove()
	}
	client := s.dial(x)
	write(t, client, []byte("hello"))
	read(t, s.cloud.accepted(t), 5)

	// A receiver that reads nothing, and leaves.
	s.poison(Down, "", "slicer", map[string]int64{"average_size": 100, "delay": never})
	server := s.dialed(x)
	wg.Go(func() { _, _ = server.Write(make([]byte, 1<<20)) })
	s.Close()
	_ = server.Close()
	wg.Wait()
	goleak.VerifyNone(t, goleak.IgnoreCurrent())
}

// dialed is the far end of a connection whose near end has gone at once, by a reset.
func (s *setup) dialed(x *Proxy) *net.TCPConn {
	s.t.Helper()
	client := s.dial(x)
	server := s.cloud.accepted(s.t)
	_ = reset(client)
	return server
}

func TestUnknownToxic(t *testing.T) {
	s := newSetup(t, Config{})
	s.proxy("edge-1", "node")
	if _, err := s.AddToxic(Both, "", "poison", nil); err == nil {
		t.Error("a toxic that toxiproxy does not have was taken")
	}
	if got := s.Toxics(); len(got) != 0 {
		t.Errorf("toxics %q, want none", got)
	}
}
