package link

import (
	"errors"
	"io"
	"syscall"
	"testing"
	"time"
)

func TestCutOfANodeAndHeal(t *testing.T) {
	s := newSetup(t, Config{})
	one, oneServer := s.connect("edge-1", "node")
	two, twoServer := s.connect("edge-2", "node")
	s.Cut(Both, "edge-1")
	write(t, one, []byte("lost?"))
	write(t, oneServer, []byte("lost?"))
	write(t, two, []byte("hi"))
	read(t, twoServer, 2)
	silent(t, oneServer)
	silent(t, one)
	if got := s.bytes(Up); got != 2 {
		t.Errorf("%d bytes crossed, want 2", got)
	}
	if cuts := s.Cuts(); len(cuts) != 2 || cuts[0] != (Cut{"edge-1", Up}) || cuts[1] != (Cut{"edge-1", Down}) {
		t.Errorf("cuts: %v", cuts)
	}
	s.Heal(Both, "")
	if len(s.Cuts()) != 2 {
		t.Error("healing the pool healed a node")
	}
	s.HealAll()
	read(t, oneServer, 5)
	read(t, one, 5)
	if len(s.Cuts()) != 0 {
		t.Errorf("cuts: %v", s.Cuts())
	}
}

func TestCutOneWay(t *testing.T) {
	s := newSetup(t, Config{})
	client, server := s.connect("edge-1", "node")
	s.Cut(Down, "")
	write(t, client, []byte("request"))
	read(t, server, 7)
	write(t, server, []byte("answer"))
	silent(t, client)
	s.Heal(Down, "")
	read(t, client, 6)
}

func TestACutTellsNobodyOfTheEnd(t *testing.T) {
	s := newSetup(t, Config{})
	client, server := s.connect("edge-1", "node")
	s.Cut(Both, "")
	_ = client.SetLinger(0)
	_ = client.Close()
	silent(t, server)
	write(t, server, []byte("are you there?"))
	s.HealAll()
	_ = server.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, server); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after healing the server reads %v, want a reset", err)
	}
}

// What waits for a socket that was closed during the cut is answered by a reset: it does not cross.
func TestWhatWaitsForAClosedSocketIsLost(t *testing.T) {
	s := newSetup(t, Config{})
	client, server := s.connect("edge-1", "node")
	other, otherServer := s.connect("edge-2", "node")
	_ = other.CloseWrite() // half closed before the cut: it waits for its answer
	if _, err := otherServer.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	s.Cut(Both, "")
	write(t, server, make([]byte, 32<<10))
	write(t, otherServer, make([]byte, 5000))
	silent(t, client)
	_ = client.Close()
	s.HealAll()
	_ = server.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, server); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after healing the server reads %v, want its end", err)
	}
	read(t, other, 5000)
	if got := s.bytes(Down); got > segment+5000 {
		t.Errorf("%d bytes crossed, want one segment and the other's answer", got)
	}
}

func TestConnectionOpenedDuringACut(t *testing.T) {
	s := newSetup(t, Config{})
	x := s.proxy("edge-1", "node")
	s.Cut(Up, "")
	patient, hasty := s.dial(x), s.dial(x)
	write(t, patient, []byte("hello"))
	write(t, hasty, []byte("hello"))
	held := func(n int) func() bool { return func() bool { return s.clock.Waiters() == n } }
	eventually(t, "the link holds both", held(2))
	_ = hasty.Close()
	// Asked now and then, the link forgets connections whose client is gone; also when it heals before it asks.
	s.clock.Step(time.Second)
	eventually(t, "it holds the patient one", held(1))
	third := s.dial(x)
	write(t, third, []byte("hello"))
	eventually(t, "the link holds the third", held(2))
	_ = third.Close()
	s.HealAll()
	server := s.cloud.accepted(t)
	read(t, server, 5)
	write(t, server, []byte("welcome"))
	read(t, patient, 7)
	if n := len(s.Connections()); n != 1 {
		t.Errorf("%d connections crossed, want 1: those that were given up never came about", n)
	}
	if got := s.bytes(Up); got != 5 {
		t.Errorf("%d bytes crossed, want 5", got)
	}
}
