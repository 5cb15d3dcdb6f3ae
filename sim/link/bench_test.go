package link

import (
	"io"
	"net"
	"testing"
)

// BenchmarkThroughput is the cost of a byte through an unlimited link: it must stay far below what any uplink of a
// scenario needs.
func BenchmarkThroughput(b *testing.B) {
	sink, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer sink.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := sink.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(io.Discard, c)
	}()
	p, err := NewPool(Config{Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	x, err := p.Proxy("edge-1", "pool", "127.0.0.1:0", sink.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	c, err := net.Dial("tcp", x.Addr())
	if err != nil {
		b.Fatal(err)
	}
	chunk := make([]byte, 64<<10)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		if _, err := c.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
	_ = c.Close()
	<-done
}
