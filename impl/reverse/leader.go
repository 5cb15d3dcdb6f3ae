package reverse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/process"
)

const (
	protocol = "weir-reverse"
	switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n" +
		gateHeader + ": %s\r\n\r\n"
	answered = 10 * time.Second // for each step before the connection carries something
	// maxAnswer bounds what a gate answers to the upgrade, in bytes.
	maxAnswer = 16 << 10
	// maxHeader bounds the header of a request and of an answer within the connection, in bytes.
	maxHeader = 16 << 10
	preface   = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" // of HTTP/2, by the client
	endHeader = "Weir-End"                         // trailer: why the connection in the pool has broken
	// gateHeader names a gate among the replicas, in its answer to the upgrade, until it ends.
	gateHeader = "Weir-Gate"
	nodeHeader = "Weir-Node" // of CONNECT: the node whose address it is; none: spec.reach has the address
)

// Backoff between connections that do not come about, or end at once. A gate may say a longer time.
const (
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 30 * time.Second
	maxAfter     = 5 * time.Minute
)

// The gate asks for a sign of life after gatePing of silence, and the leader after leaderPing. So one of them asks, and
// a NAT has a packet every 30 s.
const (
	gatePing    = 30 * time.Second
	leaderPing  = 45 * time.Second
	pingAnswer  = 15 * time.Second
	writeWithin = time.Minute // a byte has to go
)

// Defaults of the bounds.
const (
	defaultPerPool = 256
	defaultSum     = 1024
	defaultWindow  = 256 << 10
	defaultDial    = 10 * time.Second
	spareStreams   = 32 // for the gate's own requests, and streams that end
)

// LeaderConfig says how a leader serves a gate. Gate, Dial and Reach are required.
type LeaderConfig struct {
	Gate string // host:port, for the Host header and for people
	// Dial opens a connection to the gate, over which HTTP/1.1 is spoken: TLS has shown who both are, and has not chosen
	// h2.
	Dial func(context.Context) (net.Conn, error)
	// Reach is what may be dialed, for an address of which the gate says that it is the node's; "": of none. It is asked
	// for each connection, so a change counts for the next one, and may ask the cloud.
	Reach func(ctx context.Context, node string) (Reach, error)
	// Take, if set, is asked whether the connection to a gate of a name is wanted. There may be one to it already, if
	// several gates are behind one address. release is called when it is over. After an error the leader tries again,
	// after 5 min at most.
	Take func(name string) (release func(), err error)
	// Connect dials an address that Reach allows. nil: TCP, which looks again at the address that is dialed.
	Connect func(context.Context, netip.AddrPort) (net.Conn, error)
	// Streams is how many connections there are at once. 0: 256.
	Streams int
	// Window is how many bytes of one connection may wait here for the pool to take them; 64 KiB to 4 MiB. 0: 256 KiB.
	Window int
	// DialWithin bounds Connect. 0: 10 s.
	DialWithin time.Duration
	// Grace is how long connections may last after Run was told to end, and Ends ends them before that if it is set. 0:
	// they end at once.
	Grace  time.Duration
	Ends   context.Context //nolint:containedctx // of the caller, which runs several of these one after another
	Clock  clock.Clock     // nil: the real one
	Logger *slog.Logger    // nil: none
}

// LeaderState is how a Leader stands, and what it has done so far.
type LeaderState struct {
	Connected bool      `json:"connected"`     // the gate has taken the connection
	Since     time.Time `json:"since"`         // since when that is so, or not
	Err       string    `json:"err,omitempty"` // why it is not; "": it has not been tried
	Open      int       `json:"open"`          // connections into the pool

	Connections uint64 `json:"connections"` // to the gate that it took
	Opened      uint64 `json:"opened"`      // connections into the pool
	Refused     uint64 `json:"refused"`     // by Reach
	Failed      uint64 `json:"failed"`      // dialed without success
	UpBytes     uint64 `json:"upBytes"`     // from the pool
	DownBytes   uint64 `json:"downBytes"`   // into the pool
}

// Leader keeps a connection to one gate, and dials into the pool for it. State may be called at any time; Run once.
type Leader struct {
	c        LeaderConfig
	answered time.Duration // for each step of the gate

	opened, refused, failed, up, down atomic.Uint64

	mu    sync.Mutex
	state LeaderState // without what counts above
}

// NewLeader returns one that connects when it runs.
func NewLeader(c LeaderConfig) (*Leader, error) {
	switch {
	case c.Gate == "" || c.Dial == nil || c.Reach == nil:
		return nil, errors.New("reverse connection: want Gate, Dial and Reach")
	case c.Window != 0 && (c.Window < 64<<10 || c.Window > 4<<20):
		return nil, fmt.Errorf("reverse connection: a window of %d bytes: want 64 KiB to 4 MiB", c.Window)
	case c.Streams < 0 || c.Streams > 4096:
		return nil, fmt.Errorf("reverse connection: %d streams: want at most 4096", c.Streams)
	}
	setDefault(&c.Streams, defaultPerPool)
	setDefault(&c.Window, defaultWindow)
	setDefault(&c.DialWithin, defaultDial)
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Leader{c: c, answered: answered}
	if c.Connect == nil {
		l.c.Connect = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
			return guarded(func(to netip.AddrPort) error { return Forbidden(to.Addr()) })(ctx, a.String())
		}
	}
	l.state.Since = c.Clock.Now()
	return l, nil
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// State is how it stands now.
func (l *Leader) State() LeaderState {
	l.mu.Lock()
	s := l.state
	l.mu.Unlock()
	s.Opened, s.Refused, s.Failed = l.opened.Load(), l.refused.Load(), l.failed.Load()
	s.UpBytes, s.DownBytes = l.up.Load(), l.down.Load()
	return s
}

// Run keeps the connection until ctx ends. Then it takes no more connections, gives those that there are the grace,
// and returns nil. No goroutine of it is left.
func (l *Leader) Run(ctx context.Context) error {
	for backoff := firstBackoff; ctx.Err() == nil; {
		began := l.c.Clock.Now()
		err := l.once(ctx)
		was := l.ended(err)
		if ctx.Err() != nil {
			break
		}
		if was && l.c.Clock.Since(began) > maxBackoff {
			backoff = firstBackoff
		}
		wait := backoff/2 + rand.N(backoff/2)
		var told *laterError
		if errors.As(err, &told) {
			wait = max(wait, told.after+rand.N(told.after/4+1))
		}
		process.Pause(ctx, l.c.Clock, wait)
		most := maxBackoff
		if errors.Is(err, errUnwanted) {
			most = maxAfter
		}
		backoff = min(2*backoff, most)
	}
	return nil //nolint:nilerr // it was told to end
}

// taken notes that the gate has taken the connection.
func (l *Leader) taken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Connected {
		return
	}
	l.state.Connected, l.state.Since, l.state.Err = true, l.c.Clock.Now(), ""
	l.state.Connections++
	l.c.Logger.Info("the gate reaches the pool through this hub", "gate", l.c.Gate)
}

// ended notes that there is no connection, and reports whether there was one.
func (l *Leader) ended(err error) (was bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was = l.state.Connected; was || l.state.Err == "" {
		l.state.Since = l.c.Clock.Now()
		l.c.Logger.Info("the gate does not reach the pool through this hub", "gate", l.c.Gate, "err", err)
	}
	l.state.Connected = false
	l.state.Err = "it ends"
	if err != nil {
		l.state.Err = clean(err.Error())
	}
	return was
}

// errUnwanted is of a connection that LeaderConfig.Take does not want.
var errUnwanted = errors.New("the connection is not wanted")

// laterError is of a gate that says when to come again.
type laterError struct {
	error
	after time.Duration
}

// once opens one connection and serves it until it ends, or ctx does.
func (l *Leader) once(ctx context.Context) error {
	dialing, cancel := context.WithTimeout(ctx, 2*l.answered)
	raw, err := l.c.Dial(dialing)
	cancel()
	if err != nil {
		return fmt.Errorf("connect to gate %s: %w", l.c.Gate, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	name, in, err := l.upgrade(ctx, raw)
	release := func() {}
	if err == nil && l.c.Take != nil {
		var unwanted error
		if release, unwanted = l.c.Take(name); unwanted != nil {
			release, err = func() {}, fmt.Errorf("%w: %w", errUnwanted, unwanted)
		}
	}
	defer release()
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		stop()
		_ = raw.Close()
		return fmt.Errorf("gate %s: %w", l.c.Gate, err)
	}
	return l.serve(ctx, newLink(raw, in, l.c.Clock))
}

// upgrade has the gate take the roles of a client, and returns its name and what it says.
func (l *Leader) upgrade(ctx context.Context, conn net.Conn) (name string, _ *bufio.Reader, _ error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+l.c.Gate+contract.ReversePath, http.NoBody)
	if err != nil {
		return "", nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", protocol)
	req.Header.Set("User-Agent", contract.UserAgent)
	_ = conn.SetDeadline(time.Now().Add(l.answered))
	if err := req.Write(conn); err != nil {
		return "", nil, err
	}
	bound := &io.LimitedReader{R: conn, N: maxAnswer}
	in := bufio.NewReaderSize(bound, 4<<10)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return "", nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols || !strings.EqualFold(resp.Header.Get("Upgrade"), protocol) {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxText))
		_ = resp.Body.Close()
		err := fmt.Errorf("POST %s: %s, want 101: %s", contract.ReversePath, clean(resp.Status), clean(string(text)))
		if s, e := strconv.Atoi(resp.Header.Get("Retry-After")); e == nil && s > 0 {
			return "", nil, &laterError{err, min(time.Duration(s)*time.Second, maxAfter)}
		}
		return "", nil, err
	}
	if _, err := in.Peek(len(preface)); err != nil {
		return "", nil, fmt.Errorf("it says nothing after its 101: %w", err)
	}
	_ = conn.SetDeadline(time.Time{})
	bound.N = 1 << 62
	return clean(resp.Header.Get(gateHeader)), in, nil
}

// link is a connection to the gate. It says when it is closed.
type link struct {
	net.Conn
	in     io.Reader
	pace   *pacer
	once   sync.Once
	closed chan struct{}
}

func newLink(c net.Conn, in io.Reader, t clock.Clock) *link {
	return &link{Conn: c, in: in, pace: newPacer(t, c), closed: make(chan struct{})}
}

func (c *link) Read(p []byte) (int, error) { return c.in.Read(p) }

func (c *link) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// one is a listener of one connection, which accepts nothing more.
type one struct {
	*link
	give chan net.Conn
	end  chan struct{}
	once sync.Once
}

func listenOne(c *link) *one {
	o := &one{link: c, give: make(chan net.Conn, 1), end: make(chan struct{})}
	o.give <- c
	return o
}

// Accept implements net.Listener.
func (o *one) Accept() (net.Conn, error) {
	select {
	case c := <-o.give:
		return c, nil
	case <-o.end:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. The connection lives on.
func (o *one) Close() error {
	o.once.Do(func() { close(o.end) })
	return nil
}

// Addr implements net.Listener.
func (o *one) Addr() net.Addr { return o.LocalAddr() }

// serve answers the gate over a connection until it ends, or ctx does and the grace is over.
func (l *Leader) serve(ctx context.Context, c *link) error {
	all := &carried{leader: l, pace: c.pace}
	defer all.wait()
	server := &http.Server{
		Handler: all, Protocols: new(http.Protocols), ReadHeaderTimeout: l.answered, MaxHeaderBytes: maxHeader,
		HTTP2:    http2Config(l.c.Streams, l.c.Window, leaderPing),
		ErrorLog: slog.NewLogLogger(l.c.Logger.Handler(), slog.LevelDebug),
	}
	server.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listenOne(c))
	}()
	err := errors.New("the connection to the gate is over")
	select {
	case <-c.closed:
	case <-ctx.Done():
		err = nil
		all := context.WithoutCancel(ctx)
		if l.c.Ends != nil {
			all = l.c.Ends
		}
		grace, cancel := context.WithTimeout(all, l.c.Grace)
		_ = server.Shutdown(grace)
		cancel()
	}
	_ = server.Close()
	_ = c.Close()
	<-served
	return err
}

// http2Config is of both ends. The window of the connection has room for the windows of all streams, so those that
// nobody reads never take it from others.
func http2Config(streams, window int, ping time.Duration) *http.HTTP2Config {
	streams += spareStreams
	return &http.HTTP2Config{
		MaxConcurrentStreams: streams, MaxReadFrameSize: 16 << 10,
		MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: min(streams*window, 1<<31-1),
		SendPingTimeout: ping, PingTimeout: pingAnswer, WriteByteTimeout: writeWithin,
	}
}
