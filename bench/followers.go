package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// What one gate sends to many pools. There are no sockets between: their buffers are the kernel's, and a leader's
// connection carries all that its pool shares.
const (
	followersMany   = 1000
	followersApply  = 20   // of them hold what they read, and are compared
	followersSlices = 5000 // of a hundred endpoints, where memory is measured
	followersWarm   = 2000 // changes that fill the ring of recent ones
	followersPaced  = 500  // changes at followersEvery
	followersEvery  = 10 * time.Millisecond
)

// Followers measures what it costs a relay that a thousand others read it as differences.
func Followers(ctx context.Context, rounds int, progress func(string)) ([]Figure, error) {
	cpu := Figure{
		Name: fmt.Sprintf("CPU of a change that %d read as a difference ÷ of one that one reads", followersMany),
		Unit: "ratio",
		Detail: fmt.Sprintf("%d changes a second; each reader is woken and written to, %d of them decode and apply",
			time.Second/followersEvery, followersApply),
	}
	more := Figure{Name: "CPU of a change for one more reader", Unit: "us", Detail: "of the same"}
	memory := Figure{
		Name: fmt.Sprintf("memory of a relay that %d read as differences ÷ of one that one reads", followersMany),
		Unit: "ratio", Limit: followersMemory,
		Detail: fmt.Sprintf("heap and stacks, %d slices of 100 endpoints and a full ring", followersSlices),
	}
	each := Figure{Name: "memory of one more reader", Unit: "kB", Detail: "of the same"}
	sum := Figure{
		Name: fmt.Sprintf("memory of a relay that %d read as differences", followersMany), Unit: "MB", Detail: "of the same",
	}
	for i := range rounds {
		progress(fmt.Sprintf("followers: round %d of %d", i+1, rounds))
		one, err := followersCPU(ctx, 1, 1)
		if err != nil {
			return nil, err
		}
		many, err := followersCPU(ctx, followersMany, followersApply)
		if err != nil {
			return nil, err
		}
		cpu.Samples = append(cpu.Samples, many.Seconds()/one.Seconds())
		more.Samples = append(more.Samples, float64((many-one).Microseconds())/followersPaced/(followersMany-1))
		few, all, err := followersMemories(ctx)
		if err != nil {
			return nil, err
		}
		memory.Samples = append(memory.Samples, float64(all)/float64(few))
		each.Samples = append(each.Samples, float64(all-few)/(followersMany-1)/1000)
		sum.Samples = append(sum.Samples, float64(all)/1e6)
	}
	return []Figure{cpu, more, memory, each, sum}, nil
}

// followed is a relay that others read, and what has been changed in it.
type followed struct {
	*relay.Relay
	slices  []*discoveryv1.EndpointSlice
	version uint64
}

func newFollowed(slices int) (*followed, error) {
	r, err := newRelay()
	if err != nil {
		return nil, err
	}
	x := &followed{Relay: r, version: 1000}
	var all []*wire.Object
	for i := range slices {
		x.version++ // no two objects have the same
		x.slices = append(x.slices, slice(i, 0))
		o, err := x.object(i)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return x, r.Replace(x.version, all)
}

// object is a slice as it is at the version reached.
func (x *followed) object(i int) (*wire.Object, error) {
	s := x.slices[i]
	s.ResourceVersion = wire.FormatVersion(x.version)
	raw, err := s.Marshal()
	if err != nil {
		return nil, err
	}
	return wire.ParseObject(wire.Protobuf, raw)
}

// change changes one endpoint of a slice.
func (x *followed) change() error {
	x.version++
	i, at := int(x.version)%len(x.slices), int(x.version/7)%100
	ready := !*x.slices[i].Endpoints[at].Conditions.Ready
	x.slices[i].Endpoints[at].Conditions.Ready = &ready
	o, err := x.object(i)
	if err != nil {
		return err
	}
	ev := &wire.Event{Type: wire.Modified, Object: o, Version: o.Version}
	ev.Frame = wire.AppendProtobufFrame(nil, ev.Type, x.Resource().WireKind(), o.Raw)
	return x.Apply(ev)
}

// changes makes some, at a pace.
func (x *followed) changes(ctx context.Context, n int, every time.Duration) error {
	next := time.Now()
	for range n {
		if err := x.change(); err != nil {
			return err
		}
		next = next.Add(every)
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// crowd are readers that count what they get.
type crowd struct {
	wg    sync.WaitGroup
	bytes []atomic.Int64
	open  atomic.Int64
}

// join adds readers from the version reached.
func (c *crowd) join(ctx context.Context, x *followed, n int) error {
	c.bytes = make([]atomic.Int64, n)
	target := url.URL{
		Path: x.Resource().Path() + "/" + x.Resource().Resource,
		RawQuery: url.Values{
			"watch": {"1"}, "resourceVersion": {wire.FormatVersion(x.version)}, "timeoutSeconds": {"3600"},
		}.Encode(),
	}
	for i := range n {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", wire.DeltaMedia+";stream=watch, application/vnd.kubernetes.protobuf;stream=watch")
		w := &sink{header: http.Header{}, taken: &c.bytes[i], open: &c.open}
		c.wg.Go(func() { (&rest.Handler{Source: x.Relay}).ServeHTTP(w, req) })
	}
	return until(ctx, func() bool { return c.open.Load() == int64(n) })
}

// same waits until all have the same bytes, as many as have come since.
func (c *crowd) same(ctx context.Context) error {
	return until(ctx, func() bool {
		first := c.bytes[0].Load()
		for i := range c.bytes {
			if c.bytes[i].Load() != first {
				return false
			}
		}
		return first > 0
	})
}

func until(ctx context.Context, is func() bool) error {
	for !is() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// sink is an http.ResponseWriter that counts.
type sink struct {
	header http.Header
	taken  *atomic.Int64
	open   *atomic.Int64
	once   sync.Once
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(int) { s.once.Do(func() { s.open.Add(1) }) }

func (s *sink) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	s.taken.Add(int64(len(p)))
	return len(p), nil
}

// Flush implements http.Flusher.
func (s *sink) Flush() { s.WriteHeader(http.StatusOK) }

// SetWriteDeadline is what http.ResponseController asks for.
func (s *sink) SetWriteDeadline(time.Time) error { return nil }

// inProcess is an http.RoundTripper to a handler of this process.
type inProcess struct{ h http.Handler }

// RoundTrip implements http.RoundTripper.
func (x inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	body, w := io.Pipe()
	answer := &piped{PipeWriter: w, header: http.Header{}, began: make(chan int, 1)}
	go func() {
		x.h.ServeHTTP(answer, req)
		answer.WriteHeader(http.StatusOK)
		_ = w.Close()
	}()
	stop := context.AfterFunc(req.Context(), func() { _ = w.CloseWithError(req.Context().Err()) })
	select {
	case code := <-answer.began:
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Header: answer.header.Clone(), Body: body, Request: req,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		}, nil
	case <-req.Context().Done():
		stop()
		return nil, req.Context().Err()
	}
}

// piped is an http.ResponseWriter into a pipe.
type piped struct {
	*io.PipeWriter
	header http.Header
	began  chan int
	once   sync.Once
}

func (p *piped) Header() http.Header { return p.header }

func (p *piped) WriteHeader(code int) { p.once.Do(func() { p.began <- code }) }

func (p *piped) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.PipeWriter.Write(b)
}

// Flush implements http.Flusher.
func (p *piped) Flush() { p.WriteHeader(http.StatusOK) }

// SetWriteDeadline is what http.ResponseController asks for.
func (p *piped) SetWriteDeadline(time.Time) error { return nil }

// followersCPU is what the changes of a round cost all, with so many readers, of which some apply what they read.
func followersCPU(ctx context.Context, readers, apply int) (cost time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var c crowd
	var feeders sync.WaitGroup
	defer func() {
		cancel()
		c.wg.Wait()
		feeders.Wait()
	}()
	x, err := newFollowed(100)
	if err != nil {
		return 0, err
	}
	var held []*relay.Relay
	for range apply {
		client := &http.Client{Transport: inProcess{&rest.Handler{Source: x.Relay}}}
		r, f, err := newReader(&url.URL{Scheme: "http", Host: "relay"}, client, true)
		if err != nil {
			return 0, err
		}
		feeders.Go(func() { _ = f.Run(ctx) })
		held = append(held, r)
	}
	arrived := func() error {
		var all []error
		for _, r := range held {
			all = append(all, r.WaitVersion(ctx, x.version))
		}
		return errors.Join(all...)
	}
	if err := errors.Join(arrived(), c.join(ctx, x, max(1, readers-apply))); err != nil {
		return 0, err
	}
	began := spentCPU()
	if err := errors.Join(x.changes(ctx, followersPaced, followersEvery), arrived(), c.same(ctx)); err != nil {
		return 0, err
	}
	cost = spentCPU() - began
	for i, r := range held {
		if err := alike(x.Relay, r); err != nil {
			return 0, fmt.Errorf("reader %d: %w", i, err)
		}
	}
	return cost, nil
}

// alike compares what two relays hold, byte by byte.
func alike(a, b *relay.Relay) error {
	n := 0
	for o := range a.Objects() {
		n++
		if p := b.Object(o.Key); p == nil || !bytes.Equal(p.Raw, o.Raw) {
			return fmt.Errorf("%s is not what was changed", o.Key)
		}
	}
	if s := b.Status(); s.Objects != n {
		return fmt.Errorf("%d objects, want %d", s.Objects, n)
	}
	return nil
}

// followersMemories are heap and stacks of this process with one reader and with many, less what there was before.
func followersMemories(ctx context.Context) (one, many uint64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var first, rest crowd
	defer func() {
		cancel()
		first.wg.Wait()
		rest.wg.Wait()
	}()
	before := held()
	x, err := newFollowed(followersSlices)
	if err != nil {
		return 0, 0, err
	}
	if err := errors.Join(first.join(ctx, x, 1), x.changes(ctx, followersWarm, 0), first.same(ctx)); err != nil {
		return 0, 0, err
	}
	one = held() - before
	if err := errors.Join(rest.join(ctx, x, followersMany-1), x.changes(ctx, followersPaced, followersEvery),
		rest.same(ctx)); err != nil {
		return 0, 0, err
	}
	many = held() - before
	runtime.KeepAlive(x)
	return one, many, nil
}

// held is what heap and stacks of this process have in use.
func held() uint64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
