package ownwatch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cloud answers watches as kube-apiserver does: it compresses those that begin as a list, each event by itself.
type cloud struct {
	t      *testing.T
	opened chan *opened
	plain  bool     // it compresses nothing
	code   int      // of all answers; 0: 200
	atOnce []string // what comes with an answer
}

// opened is a watch at the cloud.
type opened struct {
	*http.Request
	t      *testing.T
	to     *flow
	packed bool
}

func (c *cloud) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	to := &flow{}
	to.came.L = &to.mu
	o := &opened{Request: req, t: c.t, to: to}
	resp := &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json;stream=watch"}}, Body: to,
		ContentLength: -1, Request: req,
	}
	if c.code != 0 {
		resp.StatusCode, resp.ContentLength = c.code, 2
		resp.Body = io.NopCloser(strings.NewReader("no"))
		return resp, nil
	}
	if !c.plain && req.URL.Query().Get("sendInitialEvents") == "true" && req.Header.Get("Accept-Encoding") == "gzip" {
		o.packed = true
		resp.Header.Set("Content-Encoding", "gzip")
	}
	context.AfterFunc(req.Context(), func() { to.finish(req.Context().Err()) })
	o.send(c.atOnce...)
	c.opened <- o
	return resp, nil
}

// flow is the body of an answer that holds what was not read.
type flow struct {
	mu   sync.Mutex
	came sync.Cond
	held bytes.Buffer
	end  error
}

// Write implements io.Writer.
func (f *flow) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.came.Broadcast()
	if f.end != nil {
		return 0, f.end
	}
	return f.held.Write(p)
}

// Read implements io.Reader.
func (f *flow) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.held.Len() == 0 && f.end == nil {
		f.came.Wait()
	}
	if f.held.Len() > 0 {
		return f.held.Read(p)
	}
	return 0, f.end
}

// Close implements io.Closer.
func (f *flow) Close() error {
	f.finish(io.ErrClosedPipe)
	return nil
}

func (f *flow) finish(end error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.came.Broadcast()
	if f.end == nil {
		f.end = end
	}
}

// send sends frames.
func (o *opened) send(frames ...string) {
	o.t.Helper()
	for _, f := range frames {
		check(o.t, o.sends(f))
	}
}

func (o *opened) sends(frame string) error {
	if !o.packed {
		_, err := io.WriteString(o.to, frame)
		return err
	}
	z := gzip.NewWriter(o.to)
	if _, err := io.WriteString(z, frame); err != nil {
		return err
	}
	if err := z.Flush(); err != nil {
		return err
	}
	return z.Close()
}

// gone waits until the hub has left the watch.
func (o *opened) gone() {
	o.t.Helper()
	testkit.Until(o.t, 10*time.Second, "the hub to leave a watch", func() bool { return o.Context().Err() != nil })
}

// pod is a frame with a pod at a version.
func pod(typ string, version int, more ...string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"a",`+
		`"uid":"u","resourceVersion":"%d"},"x":%q}}`+"\n", typ, version, strings.Join(more, ""))
}

func bookmark(version int, annotations ...string) string {
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"%d",`+
		`"annotations":{%s}}}}`+"\n", version, strings.Join(annotations, ","))
}

func listed(version int) string { return bookmark(version, `"k8s.io/initial-events-end":"true"`) }

// site is a hub's Watches between clients and a cloud.
type site struct {
	*Watches
	t     *testing.T
	cloud *cloud
	clock *clocktesting.FakeClock
	place int
}

func newSite(t *testing.T) *site {
	s := &site{
		t: t, cloud: &cloud{t: t, opened: make(chan *opened, 8)},
		clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)),
	}
	s.Watches = New(Config{
		Node: "edge-1", Cloud: s.cloud, Place: func() any { return s.place }, Clock: s.clock,
		Logger: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { check(t, s.Run(ctx)) })
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
	return s
}

const (
	itsPods = "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&fieldSelector=spec.nodeName%3Dedge-1"
	asList  = itsPods + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
)

func ask(uri string) *http.Request {
	path, query, _ := strings.Cut(uri, "?")
	req := httptest.NewRequest(http.MethodGet, "https://hub/", nil)
	req.URL = &url.URL{Scheme: "https", Host: "cloud", Path: path, RawQuery: query}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("User-Agent", "kubelet")
	return req
}

func (s *site) question(uri string) *question { return s.questionOf(ask(uri)) }

func (s *site) questionOf(req *http.Request) *question {
	return questionOf(req, request.Parse(req), s.Node, s.clock.Now())
}

func (s *site) RoundTrip(req *http.Request) (*http.Response, error) {
	return s.For(request.Parse(req)).RoundTrip(req)
}

// client is a watch of the node's own.
type client struct {
	t      *testing.T
	body   io.ReadCloser
	events *wire.EventReader
}

func (s *site) watch(uri string) *client {
	s.t.Helper()
	resp, err := s.RoundTrip(ask(uri))
	check(s.t, err)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "" || resp.ContentLength >= 0 {
		s.t.Fatalf("the answer is %d, %d bytes, %v", resp.StatusCode, resp.ContentLength, resp.Header)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return &client{s.t, resp.Body, wire.NewEventReader(resp.Body, wire.JSON, wire.Kind{})}
}

// on is a watch that goes on at a version.
func (s *site) on(version int) *client {
	s.t.Helper()
	return s.watch(fmt.Sprintf("%s&resourceVersion=%d", itsPods, version))
}

// sees compares what the client is shown next, as types and versions.
func (c *client) sees(want ...string) {
	c.t.Helper()
	for _, w := range want {
		ev, err := c.events.Next()
		check(c.t, err)
		if got := fmt.Sprintf("%s %d", ev.Type, ev.Version); got != w {
			c.t.Fatalf("the client sees %s, want %s", got, w)
		}
	}
}

// ends waits for the end of a watch, which shows nothing before that.
func (c *client) ends(want error) {
	c.t.Helper()
	if ev, err := c.events.Next(); !errors.Is(err, want) {
		c.t.Fatalf("the watch goes on with %v, and ends by %v, want %v", ev, err, want)
	}
}

// leaves ends the watch.
func (c *client) leaves() { check(c.t, c.body.Close()) }

// asked is the next watch that was opened at the cloud.
func (s *site) asked() *opened {
	s.t.Helper()
	return testkit.Value(s.t, 10*time.Second, "the cloud to be asked", s.cloud.opened)
}

// spared checks that the cloud was not asked.
func (s *site) spared() {
	s.t.Helper()
	select {
	case o := <-s.cloud.opened:
		s.t.Fatalf("the cloud is asked for %s", o.URL)
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.of {
		if k.begins {
			s.t.Fatal("the hub lists")
		}
	}
}

func (s *site) wants(way string, n int) {
	s.t.Helper()
	if got := testutil.ToFloat64(s.count.WithLabelValues("pods", way)); got != float64(n) {
		s.t.Errorf("%s: %v, want %d", way, got, n)
	}
}

// opens has a client open a stream, which lists a pod at version 5 and is complete at 10.
func (s *site) opens() (*client, *opened) {
	s.t.Helper()
	c := s.watch(asList)
	o := s.asked()
	o.send(pod("ADDED", 5), listed(10))
	c.sees("ADDED 5", "BOOKMARK 10")
	s.reaches(10)
	return c, o
}

// reaches waits until the stream that can be joined has a version.
func (s *site) reaches(version uint64) {
	s.t.Helper()
	testkit.Until(s.t, 10*time.Second, "the stream", func() bool {
		of := s.streamOf(s.key())
		if of == nil {
			return false
		}
		of.mu.Lock()
		defer of.mu.Unlock()
		return of.base > 0 && of.last >= version
	})
}

func (s *site) key() string { return s.question(itsPods + "&resourceVersion=10").key }
