package loopback

import (
	"net"
	"os"
	"testing"
)

func reserved(t *testing.T) *Block {
	t.Helper()
	b, err := Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	return b
}

func TestBlocksDoNotCollide(t *testing.T) {
	a, b := reserved(t), reserved(t)
	if a.String() == b.String() {
		t.Errorf("both %s", a)
	}
	addr, err := a.Addr(7)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr+":0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	for _, n := range []int{0, 255} {
		if _, err := a.Addr(n); err == nil {
			t.Errorf("address %d was given", n)
		}
	}
}

// TestNodes: addresses for Nodes are no loopback addresses, and yet this machine's own, each block its own.
func TestNodes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may add the route that makes them this machine's own")
	}
	a, err := ReserveNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	b, err := ReserveNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if a.String() == b.String() {
		t.Errorf("both %s", a)
	}
	if err := addRoute(); err != nil {
		t.Errorf("a route that is there: %v", err)
	}
	address, err := a.Addr(250)
	if err != nil {
		t.Fatal(err)
	}
	if ip := net.ParseIP(address); ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		t.Errorf("%s is refused by kube-apiserver", address)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
