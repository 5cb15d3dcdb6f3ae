package reverse

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/limit"
)

// maxName bounds the host of an address, in bytes: that of a name in DNS.
const maxName = 253

// FrontConfig says what a Front carries, and for whom. Ways, Authorize and PoolOf are required.
type FrontConfig struct {
	Ways *Ways
	// Authorize says who asks, and whether he may connect to what is in a place. Its error is shown to him, with the code
	// 403.
	Authorize func(req *http.Request, in Place) (user string, err error)
	// Place is where a host is, an address or a name: in a pool if it is of a node, or in spec.reach. An error is why that
	// cannot be said. It is shown to callers that may connect to the place that comes with it, with the code 403.
	Place func(host string) (Place, error)
	// Straight reports why an address that is of no pool may not be dialed from here; nil: it may. It is asked about the
	// address that is really dialed, after what Forbidden refuses. If it is not set no address may.
	Straight func(netip.AddrPort) error
	// Self are the addresses of this gate, which are never dialed.
	Self []netip.AddrPort
	// Dial dials straight. nil: TCP, by these rules. One that is set has to keep them by itself.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// StraightSum is how many connections there are at once that go straight. 0: 1024.
	StraightSum int
	DialWithin  time.Duration // bounds Dial. 0: 10 s
	Clock       clock.Clock   // nil: the real one
	Logger      *slog.Logger  // nil: none
}

// FrontState is what has been asked for so far.
type FrontState struct {
	Open      int // connections now
	Opened    uint64
	Denied    uint64          // by Authorize
	Failed    map[Kind]uint64 // connections that did not come about
	UpBytes   uint64          // to those who asked
	DownBytes uint64          // from them
}

// Front answers CONNECT. It is an http.Handler that is safe for concurrent use.
type Front struct {
	c     FrontConfig
	slots *limit.Slots // of what goes straight
	ctx   context.Context
	end   context.CancelCauseFunc

	opened, denied, up, down atomic.Uint64

	mu     sync.Mutex
	closed bool
	open   int
	failed map[Kind]uint64
	all    sync.WaitGroup
}

// NewFront returns one that serves. Close has to be called.
func NewFront(c FrontConfig) (*Front, error) {
	if c.Ways == nil || c.Authorize == nil || c.Place == nil || c.StraightSum < 0 {
		return nil, errors.New("front: want Ways, Authorize and Place, and StraightSum not below 0")
	}
	setDefault(&c.StraightSum, defaultSum)
	setDefault(&c.DialWithin, defaultDial)
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Front{c: c, slots: &limit.Slots{Sum: c.StraightSum, Each: c.StraightSum}, failed: map[Kind]uint64{}}
	if c.Dial == nil {
		f.c.Dial = guarded(f.straight)
	}
	f.ctx, f.end = context.WithCancelCause(context.Background())
	return f, nil
}

// straight reports why an address may not be dialed from here; nil: it may.
func (f *Front) straight(a netip.AddrPort) error {
	refuse := func(why string) error { return &Error{Kind: Refused, Address: a.String(), Why: why} }
	if a.Addr().Is4In6() { // a resolver and a socket of both families write IPv4 so
		a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	}
	if err := Forbidden(a.Addr()); err != nil {
		return err
	}
	switch {
	case slices.Contains(f.c.Self, a):
		return refuse("it is the gate itself")
	case f.c.Straight == nil:
		return refuse("it is of no pool")
	}
	// A name may not lead where the address does not.
	if in, err := f.c.Place(a.Addr().String()); err != nil {
		return refuse(err.Error())
	} else if in.Pool != "" {
		return refuse("it is of a pool: want the address, and not a name of it")
	}
	if err := f.c.Straight(a); err != nil {
		return refuse(err.Error())
	}
	return nil
}

// State is what there is now.
func (f *Front) State() FrontState {
	s := FrontState{
		Opened: f.opened.Load(), Denied: f.denied.Load(), UpBytes: f.up.Load(), DownBytes: f.down.Load(),
		Failed: map[Kind]uint64{},
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Open = f.open
	for k, n := range f.failed {
		s.Failed[k] = n
	}
	return s
}

// Close ends all connections, and takes none any more. It waits until all have ended.
func (f *Front) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.end(errEnding)
	f.all.Wait()
}

// enters counts one more connection, or one less. It reports whether connections are taken.
func (f *Front) enters() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.open++
	f.all.Add(1)
	return true
}

func (f *Front) leaves() {
	f.mu.Lock()
	f.open--
	f.mu.Unlock()
	f.all.Done()
}

// ServeHTTP implements http.Handler. It returns when the connection is over.
func (f *Front) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case req.Method != http.MethodConnect:
		w.Header().Set("Allow", http.MethodConnect)
		http.Error(w, "want CONNECT", http.StatusMethodNotAllowed)
		return
	case req.ProtoMajor != 1:
		http.Error(w, "want CONNECT over HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	if !f.enters() {
		refuse(w, http.StatusServiceUnavailable, errEnding.Error())
		return
	}
	defer f.leaves()
	address := req.Host
	host, port, in, bad := f.place(address)
	user, err := f.c.Authorize(req, in)
	if err != nil {
		f.denied.Add(1)
		f.c.Logger.Warn("a connection was refused", "user", user, "address", clean(address), "err", err)
		refuse(w, http.StatusForbidden, err.Error())
		return
	}
	began := f.c.Clock.Now()
	logger := f.c.Logger.With("user", user, "address", clean(address))
	logger = logger.With("pool", in.Pool)
	var far net.Conn
	done, fail := func() {}, bad
	if fail == nil {
		far, done, fail = f.dial(req.Context(), in, net.JoinHostPort(host, port))
	}
	if fail != nil {
		f.mu.Lock()
		f.failed[fail.Kind]++
		f.mu.Unlock()
		logger.Warn("a connection does not come about", "took", f.took(began), "err", fail)
		refuse(w, fail.Kind.Status(), fail.Error())
		return
	}
	defer done()
	client, err := hijack(w, "HTTP/1.1 200 OK\r\n\r\n")
	if err != nil {
		abort(far)
		logger.Warn("a connection is not taken", "took", f.took(began), "err", err)
		return
	}
	f.opened.Add(1)
	p := &pipe{client: client, far: far, halfIdle: halfIdle}
	end := p.run(f.ctx)
	f.up.Add(p.up.Load())
	f.down.Add(p.down.Load())
	logger.Info("a connection is over", "up", p.up.Load(), "down", p.down.Load(), "took", f.took(began), "end", end)
}

func (f *Front) took(began time.Time) time.Duration {
	return f.c.Clock.Since(began).Round(time.Millisecond)
}

// place is what an address names, and where that is.
func (f *Front) place(address string) (host, port string, in Place, _ *Error) {
	refused := func(why string) *Error { return &Error{Kind: Refused, Address: clean(address), Why: why} }
	host, port, err := net.SplitHostPort(address)
	if n, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil || n == 0 || host == "" || len(host) > maxName {
		return "", "", Place{}, refused("want host:port")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if err := Forbidden(a); err != nil {
			return "", "", Place{}, dialError(err, "", clean(address))
		}
	}
	if in, err = f.c.Place(host); err != nil {
		return "", "", in, refused(err.Error())
	}
	return host, port, in, nil
}

// dial opens a connection to an address, by the way of its pool or straight. done is to be called when it is over.
func (f *Front) dial(ctx context.Context, in Place, address string) (c net.Conn, done func(), _ *Error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)()
	if in.Pool != "" {
		_, port, _ := net.SplitHostPort(address)
		c, err := f.c.Ways.Dial(ctx, in, net.JoinHostPort(in.Addr.String(), port))
		if err != nil {
			return nil, nil, dialError(err, in.Pool, clean(address))
		}
		return c, func() {}, nil
	}
	if f.slots.Enter("") != "" {
		return nil, nil, &Error{
			Full, "", clean(address), fmt.Sprintf("the gate has %d connections that go straight, the most that it may",
				f.c.StraightSum),
		}
	}
	within, stop := context.WithTimeout(ctx, f.c.DialWithin)
	defer stop()
	c, err := f.c.Dial(within, address)
	if err != nil {
		f.slots.Leave("")
		return nil, nil, dialError(err, "", clean(address))
	}
	return c, func() { f.slots.Leave("") }, nil
}

// refuse answers with a code and a text. The text stands in the status line, too: kube-apiserver and Prometheus show
// nothing else.
func refuse(w http.ResponseWriter, code int, text string) {
	text = clean(text)
	c, err := hijack(w, fmt.Sprintf("HTTP/1.1 %d %s: %s\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s\n", code, http.StatusText(code), text, len(text)+1, text))
	if err == nil {
		_ = c.Close()
		return
	}
	http.Error(w, text, code)
}

// hijack takes the connection of a request, and says something over it.
func hijack(w http.ResponseWriter, say string) (net.Conn, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(answered))
	_, err = io.WriteString(conn, say)
	_ = conn.SetDeadline(time.Time{})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return ahead(conn, buffered.Reader), nil
}

// ahead is a connection of which something was read ahead.
func ahead(c net.Conn, in *bufio.Reader) net.Conn {
	if in.Buffered() == 0 {
		return c
	}
	b, _ := in.Peek(in.Buffered())
	return &readAhead{Conn: c, in: io.MultiReader(bytes.NewReader(bytes.Clone(b)), c)}
}

type readAhead struct {
	net.Conn
	in io.Reader
}

func (c *readAhead) Read(p []byte) (int, error) { return c.in.Read(p) }

// CloseWrite does what that of the connection does.
func (c *readAhead) CloseWrite() error { return closeWrite(c.Conn) }

func (c *readAhead) abort() { abort(c.Conn) }
