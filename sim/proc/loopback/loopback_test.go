package loopback

import (
	"net"
	"testing"
)

func reserve(t *testing.T) *Block {
	t.Helper()
	b, err := Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	return b
}

func TestBlocksDoNotCollide(t *testing.T) {
	a, b := reserve(t), reserve(t)
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
