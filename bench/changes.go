package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/sim/testca"
)

// What one relay tells others: changes of one endpoint in a slice of a hundred.
const (
	changesPaced   = 50 // at changesEvery
	changesEvery   = 100 * time.Millisecond
	changesAlone   = 10 // at changesApart
	changesApart   = time.Second
	changesAtOnce  = 400 // one as soon as all have the one before
	changesReaders = 20
)

// Changes measures what a change costs from one relay to others, as a difference and whole, in one process.
func Changes(ctx context.Context, rounds int, progress func(string)) ([]Figure, error) {
	paced := fmt.Sprintf("%d changes at %v, each of one endpoint of 100, with TLS, HTTP/2 and what is said beside them",
		changesPaced, changesEvery)
	diff := Figure{
		Name: "bytes of a change as a difference, at ten a second", Unit: "B", Limit: changeBytes, Detail: paced,
	}
	whole := Figure{Name: "bytes of a change as a whole object, at ten a second", Unit: "B", Detail: paced}
	alone := Figure{
		Name: "bytes of a change as a difference, at one a second", Unit: "B", Limit: changeAloneBytes,
		Detail: fmt.Sprintf("%d changes, likewise; what is said in a second without one counts too", changesAlone),
	}
	cpu := Figure{
		Name: fmt.Sprintf("CPU of a change from a relay to %d others, as a difference ÷ as a whole object", changesReaders),
		Unit: "ratio", Detail: "of both ends; they are one process",
	}
	one := Figure{Name: "CPU of a change from a relay to one other, as a difference ÷ as a whole object", Unit: "ratio"}
	for i := range rounds {
		progress(fmt.Sprintf("changes: round %d of %d", i+1, rounds))
		for form, f := range map[bool]*Figure{true: &diff, false: &whole} {
			s, err := changes(ctx, form, 1, changesPaced, changesEvery)
			if err != nil {
				return nil, err
			}
			f.Samples = append(f.Samples, s.bytes)
		}
		s, err := changes(ctx, true, 1, changesAlone, changesApart)
		if err != nil {
			return nil, err
		}
		alone.Samples = append(alone.Samples, s.bytes)
		for readers, f := range map[int]*Figure{changesReaders: &cpu, 1: &one} {
			d, err := changes(ctx, true, readers, changesAtOnce, 0)
			if err != nil {
				return nil, err
			}
			w, err := changes(ctx, false, readers, changesAtOnce, 0)
			if err != nil {
				return nil, err
			}
			f.Samples = append(f.Samples, d.cpu.Seconds()/w.cpu.Seconds())
		}
	}
	lists, err := firstList(ctx, rounds, progress)
	return append([]Figure{diff, alone, whole, one, cpu}, lists...), err
}

// changeCost is what a change cost for each reader: bytes on its connection, both ways, and CPU of all.
type changeCost struct {
	bytes float64
	cpu   time.Duration
}

// changes feeds relays from one relay, and counts from when they have its list.
func changes(ctx context.Context, diff bool, readers, n int, every time.Duration) (cost changeCost, err error) {
	ctx, cancel := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	defer func() { cancel(); err = errors.Join(err, g.Wait()) }()
	from, err := newRelay()
	if err != nil {
		return cost, err
	}
	s := slice(0, 0)
	object := func(version uint64) (*wire.Object, error) {
		at := int(version % 100)
		other := slice(int(version)%200, 0)
		s.Endpoints[at], s.ResourceVersion = other.Endpoints[at], wire.FormatVersion(version)
		raw, err := s.Marshal()
		if err != nil {
			return nil, err
		}
		return wire.ParseObject(wire.Protobuf, raw)
	}
	first, err := object(1000)
	if err == nil {
		err = from.Replace(1000, []*wire.Object{first})
	}
	if err != nil {
		return cost, err
	}
	u, client, crossed, stop, err := relayServer(ctx, from)
	if err != nil {
		return cost, err
	}
	defer stop()
	var all []*relay.Relay
	for range readers {
		r, f, err := newReader(u, client(), diff)
		if err != nil {
			return cost, err
		}
		g.Go(func() error { return f.Run(ctx) })
		all = append(all, r)
	}
	arrived := func(version uint64) error {
		for _, r := range all {
			if err := r.WaitVersion(ctx, version); err != nil {
				return err
			}
		}
		return nil
	}
	if err := arrived(1000); err != nil {
		return cost, err
	}
	bytes, cpu := crossed.Load(), spentCPU()
	for i := range uint64(n) {
		o, err := object(1001 + i)
		if err != nil {
			return cost, err
		}
		ev := &wire.Event{Type: wire.Modified, Object: o, Version: o.Version}
		ev.Frame = wire.AppendProtobufFrame(nil, ev.Type, from.Resource().WireKind(), o.Raw)
		if err := errors.Join(from.Apply(ev), arrived(o.Version)); err != nil {
			return cost, err
		}
		if every > 0 {
			select {
			case <-time.After(every):
			case <-ctx.Done():
				return cost, ctx.Err()
			}
		}
	}
	return changeCost{float64(crossed.Load()-bytes) / float64(n*readers), spentCPU() - cpu}, nil
}

func newRelay() (*relay.Relay, error) {
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	if err != nil {
		return nil, err
	}
	return relay.New(relay.Config{Resource: res, Gather: -1})
}

// newReader is a relay that is filled from another one, as differences or not, while the feeder runs.
func newReader(u *url.URL, client *http.Client, diff bool) (*relay.Relay, *source.Feeder, error) {
	r, err := newRelay()
	if err != nil {
		return nil, nil, err
	}
	f, err := source.NewFeeder(source.Config{Relay: r})
	if err != nil {
		return nil, nil, err
	}
	f.Use(upstream(u, client, diff))
	return r, f, nil
}

func upstream(u *url.URL, client *http.Client, diff bool) *hop.Upstream {
	return &hop.Upstream{Name: "relay", URL: u, Client: client, Progress: true, Delta: diff}
}

// relayServer serves a relay over TLS and HTTP/2. crossed counts bytes of all clients' connections, both ways.
func relayServer(ctx context.Context, r *relay.Relay) (
	u *url.URL, client func() *http.Client, crossed *atomic.Int64, stop func(), err error,
) {
	authority, err := testca.NewAuthority("bench")
	if err != nil {
		return nil, nil, nil, nil, err
	}
	pair, err := authority.Issue(testca.Request{CommonName: "relay", Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return nil, nil, nil, nil, err
	}
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, nil, nil, err
	}
	server := &http.Server{
		Handler: &rest.Handler{Source: r}, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13}
	go func() { _ = server.Serve(tls.NewListener(l, config)) }()
	crossed = &atomic.Int64{}
	var clients []*http.Client
	client = func() *http.Client {
		c := &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true, DisableCompression: true,
			TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS13},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return crossing{conn, crossed}, err
			},
		}}
		clients = append(clients, c)
		return c
	}
	stop = func() {
		for _, c := range clients {
			c.CloseIdleConnections()
		}
		_ = server.Close()
	}
	return &url.URL{Scheme: "https", Host: l.Addr().String()}, client, crossed, stop, nil
}

// crossing is a connection whose bytes are counted.
type crossing struct {
	net.Conn
	n *atomic.Int64
}

func (c crossing) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (c crossing) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// spentCPU is what this process has used so far.
func spentCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
