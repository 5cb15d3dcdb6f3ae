package link

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// hostType is the name, in toxiproxy's registry, of the toxic in which those of AddToxic run.
const hostType = "weir_toxics"

// resetPeer is the one toxic that is not toxiproxy's own code. That one wants to own two TCP connections, and panics on
// anything else. Ours also resets connections on which nothing is said.
const resetPeer = "reset_peer"

// toxic is one that is on a pool.
type toxic struct {
	number  int
	kind    string
	dir     Direction
	node    string       // empty: the whole pool
	toxic   toxics.Toxic // nil: resetPeer
	timeout time.Duration
	since   time.Time
}

func (t *toxic) String() string {
	node := t.node
	if node == "" {
		node = "all nodes"
	}
	return fmt.Sprintf("%s %s of %s", t.kind, t.dir, node)
}

func (t *toxic) meets(node string) bool { return t.node == "" || t.node == node }

// AddToxic puts a toxic of toxiproxy's on the connections of one node, or of the whole pool when node is empty. Those
// that are open have it, and those that are opened while it is there. Kind and attributes have toxiproxy's names and
// units.
// Toxics add up, in the order in which they came. A connection that a toxic ends is closed at both ends; reset_peer
// resets it there, both directions at once. remove takes it off.
func (p *Pool) AddToxic(dir Direction, node, kind string, attributes map[string]int64) (remove func(), err error) {
	t := &toxic{kind: kind, dir: dir, node: node}
	if kind == resetPeer {
		t.timeout = time.Duration(attributes["timeout"]) * time.Millisecond
	} else if t.toxic, err = newToxic(kind, attributes); err != nil {
		return nil, fmt.Errorf("link %s: toxic %s: %w", p.name, kind, err)
	}
	p.change(func() {
		p.numbered++
		t.number, t.since = p.numbered, p.clock.Now()
		p.toxics = append(p.toxics, t)
	})
	return func() {
		p.change(func() { p.toxics = slices.DeleteFunc(p.toxics, func(o *toxic) bool { return o == t }) })
	}, nil
}

// newToxic makes one of toxiproxy's.
func newToxic(kind string, attributes map[string]int64) (toxics.Toxic, error) {
	t := toxics.New(&toxics.ToxicWrapper{Type: kind})
	if t == nil || kind == hostType || kind == toxicType {
		return nil, errors.New("toxiproxy has none of that name")
	}
	text, err := json.Marshal(attributes)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return t, d.Decode(t)
}

// Toxics lists what AddToxic has put on the link and nobody has removed.
func (p *Pool) Toxics() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]string, 0, len(p.toxics))
	for _, t := range p.toxics {
		out = append(out, t.String())
	}
	return out
}

// toxicsOf are those of one direction of a node's connections, and a channel that is closed when they may be others.
func (p *Pool) toxicsOf(node string, dir Direction) (list []*toxic, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.toxics {
		if t.toxic != nil && t.dir&dir != 0 && t.meets(node) {
			list = append(list, t)
		}
	}
	return list, p.changed
}

// doom is when a toxic resets a connection of a node that was opened at some time; zero: never, as it is now. The
// channel is closed when that may be otherwise.
func (p *Pool) doom(node string, opened time.Time) (at time.Time, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.toxics {
		if t.kind != resetPeer || !t.meets(node) {
			continue
		}
		since := t.since
		if opened.After(since) {
			since = opened
		}
		if end := since.Add(t.timeout); at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at, p.changed
}

// host is the toxic behind the shared uplink. It runs those that are on the pool now. toxiproxy could add them to its
// own links, but not while connections come and go: it looks for a toxic of a closing link at the place where it was,
// loses what a receiver does not take within 5 s, and lets new connections wait for those that cannot be changed yet.
type host struct {
	next *half // of the connection that is being started, see Proxy.startLinks
}

var (
	_ toxics.Toxic         = (*host)(nil)
	_ toxics.StatefulToxic = (*host)(nil)
)

// NewState is called by toxiproxy when a link starts.
func (o *host) NewState() any { return o.next }

// Pipe moves one direction of a connection until it has ended.
func (o *host) Pipe(stub *toxics.ToxicStub) {
	h, ok := stub.State.(*half)
	if !ok || h == nil { // cannot happen: links are started by startLinks only
		new(toxics.NoopToxic).Pipe(stub)
		return
	}
	h.suffer(stub)
}

// suffer runs one chain of toxics after another, until the connection has ended.
func (h *half) suffer(stub *toxics.ToxicStub) {
	defer drained(stub.Input)
	defer stub.Close()
	pool, node := h.conn.proxy.pool, h.conn.proxy.node
	states, input := map[int]any{}, stub.Input
	list, changed := pool.toxicsOf(node, h.dir)
	c := startChain(input, list, states)
	for {
		select {
		case chunk, more := <-c.output:
			if !more {
				return
			}
			stub.Output <- chunk
		case <-h.conn.dead:
			c.stop(stub.Output, nil)
			return
		case <-changed:
			list, changed = pool.toxicsOf(node, h.dir)
			if slices.Equal(list, c.toxics) {
				continue
			}
			if ended := c.stop(stub.Output, list); ended {
				go drained(stub.Input)
				input = nothing()
			}
			c = startChain(input, list, states)
		}
	}
}

// drained reads and throws away what still comes, so that nobody waits for a reader.
func drained(input <-chan *stream.StreamChunk) {
	for more := true; more; {
		_, more = <-input
	}
}

// nothing is what comes after the end.
func nothing() <-chan *stream.StreamChunk {
	c := make(chan *stream.StreamChunk)
	close(c)
	return c
}

// chain are the toxics that one direction of a connection passes now, each with a goroutine. A goroutine ends when the
// chain is stopped, or else when its input does.
type chain struct {
	toxics []*toxic
	stubs  []*toxics.ToxicStub
	output <-chan *stream.StreamChunk
}

// startChain starts them. States are those that toxics keep of the connection, by their numbers.
func startChain(input <-chan *stream.StreamChunk, list []*toxic, states map[int]any) *chain {
	c := &chain{toxics: list, output: input}
	for _, t := range list {
		out := make(chan *stream.StreamChunk)
		s := toxics.NewToxicStub(c.output, out)
		if keeps, ok := t.toxic.(toxics.StatefulToxic); ok {
			if states[t.number] == nil {
				states[t.number] = keeps.NewState()
			}
			s.State = states[t.number]
		}
		go s.Run(&toxics.ToxicWrapper{Toxic: readsOn{t.toxic}, Toxicity: 1})
		c.stubs, c.output = append(c.stubs, s), out
	}
	return c
}

// readsOn is a toxic that reads on when it has ended the connection before the sender did.
type readsOn struct{ toxics.Toxic }

// Pipe implements toxics.Toxic.
func (t readsOn) Pipe(stub *toxics.ToxicStub) {
	t.Toxic.Pipe(stub)
	if stub.Closed() {
		drained(stub.Input)
	}
}

// stop ends the chain, which is followed by one of other toxics. What its toxics hold goes to the output. It reports
// whether nothing may come any more: one of them has ended the connection, or one that is left out has lost bytes.
func (c *chain) stop(output chan<- *stream.StreamChunk, next []*toxic) (ended bool) {
	if len(c.stubs) == 0 {
		return false
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for _, s := range c.stubs { // from the first on, so that each finds a reader for what it holds
			s.InterruptToxic()
		}
	}()
	for waits := true; waits; {
		select {
		case chunk, more := <-c.output:
			if more {
				output <- chunk
			} else {
				c.output = nil
			}
		case <-stopped:
			waits = false
		}
	}
	for i, t := range c.toxics {
		if cleans, ok := t.toxic.(toxics.CleanupToxic); ok && !slices.Contains(next, t) {
			cleans.Cleanup(c.stubs[i])
		}
		ended = ended || c.stubs[i].Closed()
	}
	for _, s := range c.stubs {
		s.Close()
	}
	return ended
}
