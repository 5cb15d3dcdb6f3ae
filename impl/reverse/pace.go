package reverse

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/process"
)

const (
	// paceQueue is how much longer than the shortest a round trip is to be: the target of LEDBAT (RFC 6817).
	paceQueue  = 100 * time.Millisecond
	paceUnsent = 16 << 10              // bytes that the kernel may hold which the link has not taken
	paceLook   = 10 * time.Millisecond // how soon it is looked again
	paceSlack  = 2 * time.Millisecond  // nobody waits for less
	paceSize   = 50 * time.Millisecond // for how long it is looked how fast the link is, or for a round trip
	paceFirst  = 4                     // segments that are on their way at first: half a second of 96 kbit/s
	paceLeast  = 2                     // the same, whatever is found
	paceMost   = 4 << 20               // bytes that are on their way
	pacePieces = 4                     // of which a window is made at least
)

// pacer keeps the queue short that a link has at its slowest place, a modem as a rule. TCP fills it with seconds of
// what it sends, and the heartbeats of other connections stand behind that. A pacer has a window of its own: what the
// link takes in the shortest round trip and 100 ms. So it gives way, as LEDBAT does, to others that fill the queue. It
// is safe for concurrent use; a nil one lets all go.
type pacer struct {
	clock clock.Clock
	look  func() (flow, bool) // how the connection stands; false: that is not known
	turn  chan struct{}       // of those that wait, the first goes first. It guards what follows
	full  bool                // somebody has waited for the window since it had its size
	sized flow                // how the connection stood then
	met   bool                // there was a queue. The window doubles until then
	free  time.Time           // what was let go before has left by then

	window atomic.Int64 // bytes; 0: not known yet
}

// flow is how a connection stands.
type flow struct {
	segment          int           // bytes
	inFlight, unsent int           // bytes
	trip, shortest   time.Duration // round trip: the smoothed one, and the least
	acked            uint64        // bytes since it began
	busy             time.Duration // how long something was on its way since then
}

// newPacer returns that of a connection, and nil if it is none of TCP.
func newPacer(c clock.Clock, conn net.Conn) *pacer {
	raw, ok := below(conn).(syscall.Conn)
	if !ok {
		return nil
	}
	look := flowOf(raw)
	if look == nil {
		return nil
	}
	return &pacer{clock: c, look: look, turn: make(chan struct{}, 1)}
}

// below is the connection that all others are made of.
func below(c net.Conn) net.Conn {
	for {
		over, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = over.NetConn()
	}
}

// most is how many of n bytes are to go at once.
func (p *pacer) most(n int) int {
	if p == nil {
		return n
	}
	w := int(p.window.Load())
	if w == 0 {
		w = pieceMax
	}
	return min(n, w/pacePieces)
}

// pass waits until n bytes may go, or ctx ends.
func (p *pacer) pass(ctx context.Context, n int) error {
	if p == nil {
		return nil
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.turn }()
	for ctx.Err() == nil {
		wait := p.waits(n)
		if wait <= 0 {
			return nil
		}
		process.Pause(ctx, p.clock, wait)
	}
	return ctx.Err()
}

// waits is how long n bytes have to wait before it is looked again; 0: they may go.
func (p *pacer) waits(n int) time.Duration {
	now := p.clock.Now()
	if ahead := p.free.Sub(now); ahead > paceSlack {
		return ahead
	}
	f, ok := p.look()
	if !ok || f.segment <= 0 || f.trip <= 0 {
		return 0
	}
	window := p.size(f)
	if f.inFlight+f.unsent >= window {
		p.full = true
		return paceLook
	}
	// What goes is not seen in the flow at once. So it counts as waiting for half of the time that the link takes for it.
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(f.trip) * float64(n) / float64(window) / 2))
	return 0
}

// size is the window, in bytes.
func (p *pacer) size(f flow) int {
	window, busy, acked := int(p.window.Load()), f.busy-p.sized.busy, f.acked-p.sized.acked
	switch {
	case window == 0:
		window = paceFirst * f.segment
	case busy < max(paceSize, f.trip, f.shortest+paceQueue/4):
		return window
	case p.full && acked > 0: // else it is not known how much the link takes, or not yet
		takes := int(float64(acked) * float64(f.shortest+paceQueue) / float64(busy))
		if p.met = p.met || f.trip > f.shortest+paceQueue/4; !p.met {
			takes = window
			if most := window * 3 / 4; p.sized.inFlight >= most || f.inFlight < most { // what it does has been seen
				takes = 2 * window
			}
		}
		window = min(max(takes, window/2, paceLeast*f.segment), 2*window, paceMost)
	}
	p.full, p.sized = false, f
	p.window.Store(int64(window))
	return window
}

// flowOf says how a connection of TCP stands, and has the kernel hold no more of it than paceUnsent; nil if it is none.
func flowOf(conn syscall.Conn) func() (flow, bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	set := func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, paceUnsent)
	}
	if e := raw.Control(set); e != nil || err != nil {
		return nil
	}
	return func() (f flow, ok bool) {
		e := raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if err != nil {
				return
			}
			segment := int(info.Snd_mss)
			ok, f = true, flow{
				segment: segment, inFlight: int(info.Unacked) * segment, unsent: int(info.Notsent_bytes),
				trip: time.Duration(info.Rtt) * time.Microsecond, shortest: time.Duration(info.Min_rtt) * time.Microsecond,
				acked: info.Bytes_acked, busy: time.Duration(info.Busy_time) * time.Microsecond,
			}
		})
		return f, ok && e == nil
	}
}
