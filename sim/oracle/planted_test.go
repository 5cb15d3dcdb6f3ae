package oracle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// flaw stands in each object in protobuf and JSON alike, and mistaken is what a wrong encoder makes of it.
const flaw, mistaken = "ünïcödé", "ünïcödè"

// planted is a bug between a relay and the oracle.
type planted struct {
	name string
	// requests that must find it, from a version on: all of them, half of them when they are sent in turn, or one at least
	// in five rounds.
	requests func(version uint64) []Request
	find     find
	// frames is what a watch makes of a frame; the last call of a stream ends it with io.EOF or goes on in silence.
	frames func() func(*wire.Event) (frame []byte, err error)
	// body is what becomes of each other answer that is no watch.
	body func(n int, body []byte) []byte
}

type find string

const (
	byAll  find = ""
	byHalf find = "half"
	bySome find = "some"
)

var (
	errSilence = io.ErrNoProgress // of a stream that stays open
	protobuf   = "application/vnd.kubernetes.protobuf"
)

func watches(version uint64) (all []Request) {
	from := strconv.FormatUint(version, 10)
	for _, accept := range []string{protobuf, "application/json"} {
		for _, q := range []url.Values{
			{"resourceVersion": {from}}, {"resourceVersion": {from}, "labelSelector": {"tier"}}, {},
			{"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}},
		} {
			q.Set("watch", "true")
			q.Set("timeoutSeconds", strconv.Itoa(watchSeconds))
			q.Set("allowWatchBookmarks", "true")
			all = append(all, Request{Path: "/apis/discovery.k8s.io/v1/endpointslices", Query: q, Accept: accept})
		}
	}
	return all
}

// streaming are those of watches that begin with initial events.
func streaming(version uint64) (all []Request) {
	for _, r := range watches(version) {
		if r.initial() {
			all = append(all, r)
		}
	}
	return all
}

func reads(path string, n int) func(uint64) []Request {
	return func(uint64) (all []Request) {
		for i := range n {
			all = append(all, Request{Path: path, Query: url.Values{}, Accept: []string{protobuf, "application/json"}[i%2]})
		}
		return all
	}
}

// object is one that the churn of this test leaves alone.
const object = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/still"

var bugs = []planted{
	{name: "no bug", requests: func(v uint64) []Request {
		return append(watches(v), append(reads(object, 4)(v), reads("/apis/discovery.k8s.io/v1/endpointslices", 4)(v)...)...)
	}},
	{name: "a watch is silent after one event", requests: watches, frames: func() func(*wire.Event) ([]byte, error) {
		events := 0
		return func(e *wire.Event) ([]byte, error) {
			if events++; events > 1 {
				return nil, errSilence
			}
			return e.Frame, nil
		}
	}},
	{
		name: "a watch is silent after its bookmark", requests: watches, find: bySome,
		frames: func() func(*wire.Event) ([]byte, error) {
			silent := false
			return func(e *wire.Event) ([]byte, error) {
				if silent {
					return nil, errSilence
				}
				silent = e.Type == wire.Bookmark && !e.InitialEnd
				return e.Frame, nil
			}
		},
	},
	{name: "a watch ends after one event", requests: watches, frames: func() func(*wire.Event) ([]byte, error) {
		events := 0
		return func(e *wire.Event) ([]byte, error) {
			if events++; events > 1 {
				return nil, io.EOF
			}
			return e.Frame, nil
		}
	}},
	{name: "no bookmark is sent", requests: watches, frames: func() func(*wire.Event) ([]byte, error) {
		return func(e *wire.Event) ([]byte, error) {
			if e.Type == wire.Bookmark && !e.InitialEnd {
				return nil, nil
			}
			return e.Frame, nil
		}
	}},
	{name: "the initial events do not end", requests: streaming, frames: func() func(*wire.Event) ([]byte, error) {
		return func(e *wire.Event) ([]byte, error) {
			if e.InitialEnd {
				return nil, nil
			}
			return e.Frame, nil
		}
	}},
	{name: "the twentieth event is lost", requests: watches, frames: func() func(*wire.Event) ([]byte, error) {
		events := 0
		return func(e *wire.Event) ([]byte, error) {
			if e.Type != wire.Bookmark {
				events++
			}
			if events == 20 && e.Type != wire.Bookmark {
				return nil, nil
			}
			return e.Frame, nil
		}
	}},
	{
		name: "an encoder of watches is wrong half the time", requests: watches,
		frames: func() func(*wire.Event) ([]byte, error) {
			events := 0
			return func(e *wire.Event) ([]byte, error) {
				if events++; events%2 == 0 {
					return bytes.ReplaceAll(e.Frame, []byte(flaw), []byte(mistaken)), nil
				}
				return e.Frame, nil
			}
		},
	},
	{
		name: "an encoder of objects is wrong half the time", requests: reads(object, 4), find: byHalf,
		body: wrongHalfTheTime,
	},
	{
		name: "an encoder of lists is wrong half the time", requests: reads("/apis/discovery.k8s.io/v1/endpointslices", 4),
		find: byHalf, body: wrongHalfTheTime,
	},
}

func wrongHalfTheTime(n int, body []byte) []byte {
	if n%4 < 2 { // of both encodings
		return body
	}
	return bytes.ReplaceAll(body, []byte(flaw), []byte(mistaken))
}

// TestPlantedBugs puts bugs between a relay and the oracle, which must find each of them.
func TestPlantedBugs(t *testing.T) {
	seed := seeded(t)
	config := testCloud(t).RESTConfig()
	config.QPS = -1
	prepare(t, config)
	w := newChurn(t, config, subjects[0], seed)
	w.fill(t.Context(), t)
	w.writeStill(t)
	honest, version := startRelay(t.Context(), t, config, subjects[0])
	from := version()
	var wg sync.WaitGroup
	churning, stop := context.WithCancel(t.Context())
	wg.Go(func() { w.run(churning, t) })
	defer wg.Wait()
	defer stop()
	waitFor(t, "some churn", func() bool { return version() > from+50 })

	var all sync.WaitGroup
	for _, bug := range bugs {
		pair := honest
		pair.Relay = bug.before(t, honest.Relay)
		all.Go(func() { bug.test(t, pair, bug.requests(from)) })
	}
	all.Wait()
}

func (p planted) test(t *testing.T, pair Pair, requests []Request) {
	var found atomic.Int64
	ask := func(r Request) {
		err := pair.Compare(t.Context(), r)
		switch {
		case err != nil && (!IsMismatch(err) || p.harmless()):
			t.Errorf("%s: %v", p.name, err)
		case err != nil:
			found.Add(1)
		case p.find == byAll && !p.harmless():
			t.Errorf("%s: %v does not find it", p.name, r)
		}
	}
	rounds := 1
	if p.find == bySome { // what shows the bug may not happen while they look, on a busy machine
		rounds = 5
	}
	for ; rounds > 0 && (p.find != bySome || found.Load() == 0); rounds-- {
		var all sync.WaitGroup
		for _, r := range requests {
			if p.find == byHalf {
				ask(r)
			} else {
				all.Go(func() { ask(r) })
			}
		}
		all.Wait()
	}
	switch n := int(found.Load()); {
	case p.find == byHalf && n != len(requests)/2, p.find == bySome && n == 0:
		t.Errorf("%s: %d of %d requests find it", p.name, n, len(requests))
	}
}

// writeStill creates an object that nobody changes.
func (c *churn) writeStill(t *testing.T) {
	t.Helper()
	quiet := *c
	quiet.rnd = rand.New(rand.NewPCG(1, 1))
	o := quiet.object(3)
	meta := o["metadata"].(map[string]any)
	meta["name"] = "still"
	delete(meta, "labels")
	createObject(t, c.client.Namespace("shop"), o)
}

func (p planted) harmless() bool { return p.frames == nil && p.body == nil }

// before puts the bug before a relay.
func (p planted) before(t *testing.T, s Side) Side {
	t.Helper()
	if p.harmless() {
		return s
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	answers := &atomic.Int64{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, Transport: s.Client.Transport, FlushInterval: -1,
		ModifyResponse: func(resp *http.Response) error {
			if resp.Request.URL.Query().Get("watch") != "" {
				if p.frames != nil {
					resp.Body = p.stream(resp)
				}
				return nil
			}
			if p.body == nil {
				return nil
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			resp.Body = io.NopCloser(bytes.NewReader(p.body(int(answers.Add(1)-1), body)))
			return err
		},
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	return Side{Name: "relay with " + p.name, URL: srv.URL, Client: srv.Client()}
}

// stream passes a watch on, frame by frame, as the bug has it.
func (p planted) stream(resp *http.Response) io.ReadCloser {
	enc := wire.JSON
	if strings.HasPrefix(resp.Header.Get("Content-Type"), protobuf) {
		enc = wire.Protobuf
	}
	in, change := wire.NewEventReader(resp.Body, enc, wire.Kind{}), p.frames()
	r, w := io.Pipe()
	source := resp.Body
	go func() {
		defer source.Close()
		for {
			e, err := in.Next()
			if err != nil {
				_ = w.CloseWithError(err)
				return
			}
			frame, err := change(e)
			if err == nil {
				_, err = w.Write(frame)
			} else if errors.Is(err, errSilence) {
				if _, err = io.Copy(io.Discard, source); err == nil { // as long as the relay's own watch lasts
					err = io.EOF
				}
			}
			if err != nil {
				_ = w.CloseWithError(err)
				return
			}
		}
	}()
	return r
}
