package source

import (
	"net"
	"sync"
	"time"
)

// Pulse lets the feeders of one process prove together that their streams of the cloud live, so that quiet streams cost
// no more the more there are.
//
// A quiet stream proves nothing, so a short watch of metadata runs beside it: see Feeder.prove. What comes over a
// connection on that watch, or on any stream, is nearly a proof for all other streams over that connection: the same
// kube-apiserver lives, and the link carries what it sends. What is left is that its cache of another resource may lag
// behind. So for others a sign counts as one of some seconds before, and kube-apiserver's own bookmarks, one a minute,
// still show that each stream goes on.
//
// The zero value is ready. It is safe for concurrent use.
type Pulse struct {
	mu    sync.Mutex
	beats map[net.Conn]*beat
}

// beat is what is known of one connection; Pulse.mu guards it.
type beat struct {
	streams int       // that are attended
	at      time.Time // of the last sign
	turn    *turn     // of the one who proves now; nil: nobody does
}

// turn is the time until the next sign of a connection, or until the one who proves is done.
type turn struct {
	over chan struct{} // closed when it is
	err  error         // by which all streams over the connection have to end; set before
}

func (t *turn) end(err error) {
	t.err = err
	close(t.over)
}

// join begins to attend a stream over a connection; leave ends it.
func (p *Pulse) join(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beats == nil {
		p.beats = map[net.Conn]*beat{}
	}
	b := p.beats[conn]
	if b == nil {
		b = &beat{}
		p.beats[conn] = b
	}
	b.streams++
}

func (p *Pulse) leave(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.beats[conn]
	if b.streams--; b.streams == 0 {
		delete(p.beats, conn)
	}
}

// sign notes that something came over a connection.
func (p *Pulse) sign(conn net.Conn, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.beats[conn]
	if b == nil {
		return
	}
	if b.at = now; b.turn != nil {
		b.turn.end(nil)
		b.turn = &turn{over: make(chan struct{})}
	}
}

// last is when the last sign came over a connection that was joined.
func (p *Pulse) last(conn net.Conn) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beats[conn].at
}

// claim asks who proves. nil: nobody did, so the caller has to, and then calls done. Else it is what to wait for.
func (p *Pulse) claim(conn net.Conn) *turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.beats[conn]
	if b.turn != nil {
		return b.turn
	}
	b.turn = &turn{over: make(chan struct{})}
	return nil
}

// done ends a claim; err: see turn.
func (p *Pulse) done(conn net.Conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.beats[conn]
	b.turn.end(err)
	b.turn = nil
}
