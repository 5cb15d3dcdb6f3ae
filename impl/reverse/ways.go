package reverse

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/limit"
)

// Bounds of the ways of one pool.
const (
	maxGreeted = 4 // that have not answered yet
	maxWays    = 4 // that have
)

// WaysConfig bounds what ways carry. The zero value has all defaults.
type WaysConfig struct {
	PerPool int // connections into one pool at once. 0: 256
	Sum     int // into all pools. 0: 1024
	// Window is how many bytes of one connection may wait here for its reader, 64 KiB to 4 MiB. 0: 256 KiB. So Sum times
	// Window bounds what waits.
	Window int
	// DialWithin bounds how long Dial waits for the leader's answer. 0: 15 s. It is to be longer than the leader's.
	DialWithin time.Duration
	// Gap is how long Dial waits for the next leader of a pool after the last one has left. Of a pool whose leader has
	// been away for longer it waits not at all. 0: 5 s; below 0: never.
	Gap    time.Duration
	Clock  clock.Clock  // nil: the real one
	Logger *slog.Logger // nil: none
}

// Way is the state of one connection of a leader.
type Way struct {
	Pool, Node string
	Since      time.Time
	Older      bool // there is a newer one, which new connections go over
	Open       int  // connections into the pool
}

// WaysState is what has been carried so far.
type WaysState struct {
	Ways      []Way  // sorted by pool; the newest comes first
	Came      uint64 // connections of leaders that were taken
	Opened    uint64 // connections into pools
	Failed    uint64 // that did not come about
	UpBytes   uint64 // out of pools
	DownBytes uint64 // into pools
}

// Ways has the connections of leaders, and opens connections into their pools over them. It is safe for concurrent use.
type Ways struct {
	c        WaysConfig
	name     string        // of this gate among the replicas
	answered time.Duration // for the hub, before its way counts
	slots    *limit.Slots

	came, opened, failed, up, down atomic.Uint64

	running sync.WaitGroup
	end     chan struct{} // closed by Close

	mu     sync.Mutex
	closed bool
	number uint64 // of the last way
	pools  map[string]*pool
	change chan struct{} // closed when pools have other ways
}

// pool is the ways of one pool.
type pool struct {
	ways    []*way // the newest first
	greeted int
	left    time.Time // when the last one has ended
}

// way is one connection of a leader.
type way struct {
	pool, node string
	number     uint64
	since      time.Time
	link       *link
	conn       *http.ClientConn
	open       int // Ways.mu
}

// NewWays returns one without ways. Close has to be called.
func NewWays(c WaysConfig) (*Ways, error) {
	if c.Window != 0 && (c.Window < 64<<10 || c.Window > 4<<20) {
		return nil, fmt.Errorf("ways: a window of %d bytes: want 64 KiB to 4 MiB", c.Window)
	}
	if c.PerPool < 0 || c.PerPool > 4096 || c.Sum < 0 {
		return nil, fmt.Errorf("ways: %d connections to a pool, %d in all: want at most 4096 to a pool", c.PerPool, c.Sum)
	}
	setDefault(&c.PerPool, defaultPerPool)
	setDefault(&c.Sum, defaultSum)
	setDefault(&c.Window, defaultWindow)
	setDefault(&c.DialWithin, 15*time.Second)
	setDefault(&c.Gap, 5*time.Second)
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Ways{
		c: c, name: rand.Text(), answered: answered, slots: &limit.Slots{Sum: c.Sum, Each: c.PerPool},
		end: make(chan struct{}), pools: map[string]*pool{}, change: make(chan struct{}),
	}, nil
}

// Admit answers POST contract.ReversePath of a hub. The caller has been authenticated: it is the hub of a node of a
// pool, and it may lead the pool. Admit returns once the connection is taken; it never blocks for long.
func (x *Ways) Admit(w http.ResponseWriter, req *http.Request, pool, node string) {
	if req.Method != http.MethodPost || req.ProtoMajor != 1 || !strings.EqualFold(req.Header.Get("Upgrade"), protocol) {
		http.Error(w, "want POST over HTTP/1.1 with Upgrade: "+protocol, http.StatusBadRequest)
		return
	}
	number, err := x.greet(pool)
	if err != nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, err.Why, err.Kind.Status())
		return
	}
	conn, hijacked := x.hijack(w)
	if !hijacked {
		x.greets(pool, -1)
		x.running.Done()
		return
	}
	go func() {
		defer x.running.Done()
		x.run(&way{
			pool: pool, node: node, number: number, link: newLink(conn, &frames{in: conn}, x.c.Clock), since: x.c.Clock.Now(),
		})
	}()
}

// greet takes one more way of a pool that has not answered yet, and counts it as running.
func (x *Ways) greet(name string) (number uint64, err *Error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch p := x.pools[name]; {
	case x.closed:
		return 0, &Error{Kind: Full, Why: "the gate is ending"}
	case p != nil && p.greeted >= maxGreeted:
		return 0, &Error{Kind: Busy, Why: "too many connections of this pool have not answered yet"}
	}
	x.running.Add(1)
	x.of(name).greeted++
	x.number++
	return x.number, nil
}

// of is the ways of a pool; x.mu is held. Pools that have had none for long are forgotten.
func (x *Ways) of(name string) *pool {
	if p := x.pools[name]; p != nil {
		return p
	}
	for other, p := range x.pools {
		if len(p.ways) == 0 && p.greeted == 0 && x.c.Clock.Since(p.left) > x.c.Gap {
			delete(x.pools, other)
		}
	}
	p := &pool{}
	x.pools[name] = p
	return p
}

func (x *Ways) greets(name string, n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of(name).greeted += n
}

func (x *Ways) hijack(w http.ResponseWriter) (net.Conn, bool) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return nil, false
	}
	_ = conn.SetDeadline(time.Now().Add(answered))
	_, err = fmt.Fprintf(conn, switched, x.name)
	_ = conn.SetDeadline(time.Time{})
	if err != nil || buffered.Reader.Buffered() > 0 { // who serves does not speak first
		_ = conn.Close()
		return nil, false
	}
	return conn, true
}

// run has a way for as long as it lasts.
func (x *Ways) run(w *way) {
	defer w.link.Close()
	err := x.hello(w)
	x.greets(w.pool, -1)
	logger := x.c.Logger.With("pool", w.pool, "node", w.node)
	if err != nil {
		logger.Warn("a hub that would lead its pool does not answer over its connection", "err", err)
		return
	}
	if !x.put(w) {
		return
	}
	logger.Info("the pool is reached through a hub")
	why := x.lasts(w)
	x.remove(w)
	logger.Info("the pool is not reached through this hub any more", "why", why)
}

// hello opens the connection, and asks the leader for an answer.
func (x *Ways) hello(w *way) error {
	ctx, cancel := context.WithTimeout(context.Background(), x.answered)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = w.link.Close() })
	defer stop()
	t := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return w.link, nil },
		HTTP2:              http2Config(x.c.PerPool, x.c.Window, gatePing),
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader, Protocols: new(http.Protocols),
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	var err error
	if w.conn, err = t.NewClientConn(ctx, "http", "hub:80"); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://hub"+contract.ReversePath, http.NoBody)
	if err != nil {
		return err
	}
	go func() { // what comes meanwhile
		select {
		case <-x.end:
			_ = w.link.Close()
		case <-ctx.Done():
		}
	}()
	resp, err := w.conn.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("GET %s: %s, want 204", contract.ReversePath, clean(resp.Status))
	}
	if !stop() {
		return ctx.Err()
	}
	return nil
}

// put takes a way. Those of before stay: a hub that led ends its own, and one that leads as well is as good.
func (x *Ways) put(w *way) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return false
	}
	p := x.of(w.pool)
	at, _ := slices.BinarySearchFunc(p.ways, w, func(a, b *way) int { return cmp.Compare(b.number, a.number) })
	p.ways = slices.Insert(p.ways, at, w)
	if len(p.ways) > maxWays {
		_ = p.ways[maxWays].link.Close()
	}
	x.came.Add(1)
	x.changed()
	return true
}

func (x *Ways) changed() {
	close(x.change)
	x.change = make(chan struct{})
}

// lasts waits until a way has ended, or is to end, and returns why.
func (x *Ways) lasts(w *way) string {
	select {
	case <-w.link.closed:
		return "its connection has ended"
	case <-x.end:
		return "the gate is ending"
	}
}

func (x *Ways) remove(w *way) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.of(w.pool)
	p.ways = slices.DeleteFunc(p.ways, func(o *way) bool { return o == w })
	if len(p.ways) == 0 {
		p.left = x.c.Clock.Now()
	}
	x.changed()
}

// State is what there is now.
func (x *Ways) State() WaysState {
	s := WaysState{
		Came: x.came.Load(), Opened: x.opened.Load(), Failed: x.failed.Load(), UpBytes: x.up.Load(),
		DownBytes: x.down.Load(),
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.pools {
		for i, w := range p.ways {
			s.Ways = append(s.Ways, Way{w.pool, w.node, w.since, i > 0, w.open})
		}
	}
	slices.SortStableFunc(s.Ways, func(a, b Way) int { return cmp.Compare(a.Pool, b.Pool) })
	return s
}

// End ends the ways of a node of a pool, and what they carry.
func (x *Ways) End(pool, node string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.pools[pool]; p != nil {
		for _, w := range p.ways {
			if w.node == node {
				_ = w.link.Close()
			}
		}
	}
}

// Close ends all ways and what they carry, and admits none any more. It waits until all have ended.
func (x *Ways) Close() {
	x.mu.Lock()
	if !x.closed {
		x.closed = true
		close(x.end)
	}
	x.mu.Unlock()
	x.running.Wait()
}

// await is the way of a pool, with a place for one more request, and counted as running. It waits for the next leader
// where there was one until now.
func (x *Ways) await(ctx context.Context, name, address string) (*way, *Error) {
	for {
		x.mu.Lock()
		p, change := x.pools[name], x.change
		if x.closed {
			x.mu.Unlock()
			return nil, &Error{Full, name, address, "the gate is ending"}
		}
		var wait time.Duration
		if p != nil {
			for _, w := range p.ways {
				if w.conn.Reserve() == nil {
					w.open++
					x.running.Add(1)
					x.mu.Unlock()
					return w, nil
				}
			}
			if wait = x.c.Gap; len(p.ways) == 0 { // else they are about to end
				wait -= x.c.Clock.Since(p.left)
			}
		}
		x.mu.Unlock()
		none := &Error{NoWay, name, address, "no hub that leads it is connected to this gate"}
		if wait <= 0 {
			return nil, none
		}
		t := x.c.Clock.NewTimer(wait)
		select {
		case <-change:
			t.Stop()
		case <-t.C():
			return nil, none
		case <-ctx.Done():
			t.Stop()
			return nil, none
		}
	}
}

// leave gives back what await has given, but for the slot.
func (x *Ways) leave(w *way) {
	x.mu.Lock()
	w.open--
	x.mu.Unlock()
	x.running.Done()
}

// addr is where a stream comes from and leads to.
type addr string

func (a addr) Network() string { return "tcp" }
func (a addr) String() string  { return string(a) }

func addrOf(address string) net.Addr {
	if a, err := netip.ParseAddrPort(address); err == nil {
		return net.TCPAddrFromAddrPort(a)
	}
	return addr(address)
}
