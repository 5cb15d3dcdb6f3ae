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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCountersAreExact(t *testing.T) {
	s := newSetup(t, Config{Phase: "warm-up"})
	client, server := s.connect("edge-1", "pool")
	write(t, client, []byte("list"))
	read(t, server, 4)
	write(t, server, bytes.Repeat([]byte("x"), 100_000))
	read(t, client, 100_000)

	s.SetPhase("churn")
	s.clock.Step(1500 * time.Millisecond)
	write(t, server, []byte("event"))
	read(t, client, 5)
	other, otherServer := s.connect("edge-2", "control")
	write(t, other, []byte("ping"))
	read(t, otherServer, 4)

	want := []Counter{
		{"edge-1", "pool", "churn", 1, Down, 5},
		{"edge-1", "pool", "warm-up", 1, Up, 4},
		{"edge-1", "pool", "warm-up", 1, Down, 100_000},
		{"edge-2", "control", "churn", 2, Up, 4},
	}
	got := s.Counters()
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("counter %d: %v, want %v", i, got[i], want[i])
		}
	}

	wantSeries := []Sample{
		{epoch, "edge-1", "pool", Up, 4},
		{epoch, "edge-1", "pool", Down, 100_000},
		{epoch.Add(time.Second), "edge-1", "pool", Down, 5},
		{epoch.Add(time.Second), "edge-2", "control", Up, 4},
	}
	series := s.Series(time.Second)
	if len(series) != len(wantSeries) {
		t.Fatalf("got %v", series)
	}
	for i := range wantSeries {
		if series[i] != wantSeries[i] {
			t.Errorf("sample %d: %v, want %v", i, series[i], wantSeries[i])
		}
	}

	_ = client.Close()
	_ = server.Close()
	eventually(t, "the books close the first connection", func() bool { return !s.Connections()[0].Closed.IsZero() })
	conns := s.Connections()
	if len(conns) != 2 || conns[0].Phase != "warm-up" || conns[1].Node != "edge-2" || conns[1].Phase != "churn" ||
		conns[0].To != s.cloud.Addr().String() || !conns[1].Closed.IsZero() {
		t.Errorf("connections: %+v", conns)
	}
}

func TestTwoConnectionsShareTheRate(t *testing.T) {
	s := newSetup(t, Config{Down: 8_000_000})
	one, oneServer := s.connect("edge-1", "pool")
	two, twoServer := s.connect("edge-2", "pool")
	var wg sync.WaitGroup
	data := make([]byte, 1_000_000)
	for _, c := range []*net.TCPConn{oneServer, twoServer} {
		wg.Go(func() { write(t, c, data) })
	}
	for _, c := range []*net.TCPConn{one, two} {
		wg.Go(func() { _, _ = io.CopyN(io.Discard, c, int64(len(data))) })
	}
	// A second brings one megabyte, half of it to each.
	for range 1000 {
		s.step(time.Millisecond)
	}
	eventually(t, "a second's worth has crossed", func() bool { return s.bytes(Down) >= 990_000 })
	per := map[string]int64{}
	for _, c := range s.Counters() {
		per[c.Node] += c.Bytes
	}
	if total := per["edge-1"] + per["edge-2"]; total > 1_000_000+DefaultBurst {
		t.Errorf("%d bytes in a second at 1 MB/s", total)
	}
	if diff := per["edge-1"] - per["edge-2"]; diff < -50_000 || diff > 50_000 {
		t.Errorf("unfair: %v", per)
	}
	s.SetRate(Down, 0)
	wg.Wait()
	if got := s.bytes(Down); got != 2_000_000 {
		t.Errorf("%d bytes in the end", got)
	}
}

func TestLatency(t *testing.T) {
	s := newSetup(t, Config{RTT: 60 * time.Millisecond})
	client := s.dial(s.proxy("edge-1", "node"))
	write(t, client, []byte("hello"))
	s.step(59 * time.Millisecond)
	select {
	case <-s.cloud.conns:
		t.Fatal("opened in less than a round trip")
	default:
	}
	s.step(time.Millisecond)
	server := s.cloud.accepted(t)
	s.step(29 * time.Millisecond)
	silent(t, server)
	s.step(time.Millisecond)
	if got := read(t, server, 5); got != "hello" {
		t.Errorf("got %q", got)
	}
	// Many small writes travel together: one delay for all of them.
	for range 100 {
		write(t, server, []byte("tick"))
	}
	eventually(t, "all are on their way", func() bool { return s.bytes(Down) == 400 })
	s.clock.Step(30 * time.Millisecond)
	read(t, client, 400)
}

func TestHalfClosedConnection(t *testing.T) {
	s := newSetup(t, Config{})
	client, server := s.connect("edge-1", "node")
	write(t, client, []byte("question"))
	_ = client.CloseWrite()
	_ = server.SetReadDeadline(time.Now().Add(patience))
	if got, err := io.ReadAll(server); err != nil || string(got) != "question" {
		t.Errorf("server reads %q, %v", got, err)
	}
	write(t, server, []byte("answer"))
	_ = server.Close()
	_ = client.SetReadDeadline(time.Now().Add(patience))
	if got, err := io.ReadAll(client); err != nil || string(got) != "answer" {
		t.Errorf("client reads %q, %v", got, err)
	}
}

func TestResetCrosses(t *testing.T) {
	s := newSetup(t, Config{})
	client, server := s.connect("edge-1", "node")
	_ = server.SetLinger(0)
	_ = server.Close()
	_ = client.SetReadDeadline(time.Now().Add(patience))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestFarEndRefuses(t *testing.T) {
	s := newSetup(t, Config{RTT: time.Millisecond})
	x := s.proxy("edge-1", "node")
	_ = s.cloud.Close()
	client := s.dial(x)
	s.step(time.Millisecond)
	_ = client.SetReadDeadline(time.Now().Add(patience))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
	if len(s.Connections()) != 0 {
		t.Error("a refused connection was counted")
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	s := newSetup(t, Config{Down: 1_000, RTT: time.Second})
	x := s.proxy("edge-1", "node")
	var servers []*net.TCPConn
	for range 5 {
		client := s.dial(x)
		write(t, client, make([]byte, 100))
		eventually(t, "the connection is open", func() bool {
			s.clock.Step(time.Second)
			return len(s.cloud.conns) == 1
		})
		servers = append(servers, s.cloud.accepted(t))
	}
	var wg sync.WaitGroup
	for _, c := range servers[:3] {
		wg.Go(func() { _, _ = c.Write(make([]byte, 20<<20)) }) // stuck behind the rate, nobody reads
	}
	s.Cut(Both, "")
	s.dial(x) // waits for the link
	eventually(t, "the connections are busy", func() bool { return s.clock.HasWaiters() })
	s.Close()
	for _, c := range servers {
		_ = c.Close()
	}
	wg.Wait()
	if _, err := net.Dial("tcp", x.Addr()); err == nil {
		t.Error("still listening")
	}
	if _, err := s.Proxy("edge-2", "node", "127.0.0.1:0", "127.0.0.1:1"); err == nil {
		t.Error("a closed pool took a proxy")
	}
	goleak.VerifyNone(t, goleak.IgnoreCurrent())
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{}, {Name: "a", Up: -1}, {Name: "a", Burst: -1}, {Name: "a", RTT: -1}} {
		if _, err := NewPool(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	s := newSetup(t, Config{})
	if _, err := s.Proxy("edge-1", "node", s.cloud.Addr().String(), "127.0.0.1:1"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a taken address: %v", err)
	}
}

func TestParseDirection(t *testing.T) {
	for _, d := range []Direction{Up, Down, Both} {
		if got, ok := ParseDirection(d.String()); !ok || got != d {
			t.Errorf("%s: got %s", d, got)
		}
	}
	if _, ok := ParseDirection("sideways"); ok {
		t.Error("sideways was taken")
	}
}

func TestRateAndRTT(t *testing.T) {
	p, err := NewPool(Config{Name: "edge", Up: 256_000, Down: 8_000_001, RTT: 60 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	check := func(up, down int64, rtt time.Duration) {
		t.Helper()
		if p.Rate(Up) != up || p.Rate(Down) != down || p.RTT() != rtt {
			t.Errorf("%d up, %d down, %v; want %d, %d, %v", p.Rate(Up), p.Rate(Down), p.RTT(), up, down, rtt)
		}
	}
	check(256_000, 8_000_001, 60*time.Millisecond)
	p.SetRate(Both, 64_000)
	p.SetRTT(time.Second)
	check(64_000, 64_000, time.Second)
}
