package hub

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/offline"
	"github.com/weir-edge/weir/impl/offline/writes"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

const (
	// connectPatience is how long a read waits for a connection to a cloud of which nothing is known yet, if the store can answer.
	connectPatience = 200 * time.Millisecond
	// doubtfulWatch is how long a watch from the store lasts while the cloud is not known to be away.
	doubtfulWatch = 10 * time.Second
	// freshEvery is how often the store is told when the cloud was last heard.
	freshEvery = 5 * time.Second
	// prefetchAfter is how long after a start the hub asks for documents that no client has asked for, and prefetchRetry how long after that again.
	prefetchAfter, prefetchRetry = time.Minute, 10 * time.Minute
	// historyDocument is what the store keeps the number of the cloud's history under.
	historyDocument = "weir/history"
)

// errGivenUp is why a request to the cloud was left: the store answers it.
var errGivenUp = errors.New("the cloud does not answer: the store does")

// shelter serves this node's clients while the cloud is away, from what passed while it was there.
type shelter struct {
	*offline.Offline
	store  *store.Store
	judge  *identity.Judge
	writes *writes.Writes
	link   *link // clients are served from here
	gone   *link // the cloud itself is away
	cloud  *cloud
	shared func(context.Context, documents.Key) (*documents.Document, error) // the pool's copy; nil: it has none
	asHub  http.RoundTripper                                                 // for documents that the pool has no copy of
	clock  clock.WithTicker
	logger *slog.Logger

	toldLapsed atomic.Int64 // when an expired certificate was last told of
}

// attempt is one request on its way to the cloud.
type attempt struct {
	req       *http.Request
	asked     *request.Request
	who       caller
	component string
	via       http.RoundTripper
	settled   atomic.Bool // an answer has come, or the store answers
	left      atomic.Bool // the latter
}

// attemptKey carries the *attempt of a request to its answer.
type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// read tells whether the store might answer.
func (a *attempt) read() bool {
	return a.asked.Method == http.MethodGet && !a.asked.Upgrade
}

// serve sends a request to the cloud by next, and answers it from the store if the cloud is away.
func (s *shelter) serve(w http.ResponseWriter, req *http.Request, asked *request.Request, who caller, via http.RoundTripper, next http.Handler) {
	a := &attempt{req: req, asked: asked, who: who, component: componentOf(req, who), via: via}
	away, until := s.link.state()
	if away && a.read() && (!s.writes.Holding() || s.canAnswer(a)) {
		s.answer(until, w, a)
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(req.Context(), attemptKey{}, a))
	defer cancel()
	leave := func() {
		if a.settled.CompareAndSwap(false, true) {
			a.left.Store(true)
			cancel()
		}
	}
	if a.read() {
		stop := context.AfterFunc(until, func() {
			if away, _ := s.link.state(); away {
				leave()
			}
		})
		defer stop()
	}
	if a.read() && !s.cloud.healthy() { // nothing is known of it
		ctx = impatient(ctx, s.clock, func() bool { return s.canAnswer(a) }, leave)
	}
	next.ServeHTTP(w, req.WithContext(ctx))
}

// impatient is the context of a request to a cloud of which nothing is known. If it has no connection within connectPatience, and somebody else can answer,
// leave is called.
func impatient(ctx context.Context, c clock.WithTicker, other func() bool, leave func()) context.Context {
	var connected atomic.Bool
	timer := c.NewTimer(connectPatience)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			if !connected.Load() && other() {
				leave()
			}
		case <-ctx.Done():
		}
	}()
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
}

// canAnswer tells whether the store has an answer for this caller.
func (s *shelter) canAnswer(a *attempt) bool {
	return s.mayRead(a) == nil && s.Knows(a.component, a.req, a.asked)
}

// take answers a write that is not the cloud's to do, see package writes. Else the request that is returned goes to the cloud.
func (s *shelter) take(w *recorder, req *http.Request, asked *request.Request, who caller) (*http.Request, bool) {
	if s == nil {
		return req, false
	}
	req, taken := s.writes.Take(w, req, asked, who.kind == thisNode, isLapsed(req.Context()))
	if taken {
		w.route = "queue"
	}
	return req, taken
}

// observe sees each answer of the cloud before its client.
func (s *shelter) observe(resp *http.Response) error {
	a := attemptOf(resp.Request.Context())
	if a == nil {
		return nil
	}
	if !a.settled.CompareAndSwap(false, true) {
		return errGivenUp
	}
	if attributes, ok := identity.AttributesOf(a.asked); ok {
		s.judge.Learn(resp.Request.Header, a.who.kind == thisNode, attributes, resp.StatusCode)
	}
	s.writes.Observe(resp)
	s.Observe(a.component, resp, a.asked, a.via)
	return nil
}

// rescue answers a request that did not reach the cloud; false if it has to be told so.
func (s *shelter) rescue(ctx context.Context, w http.ResponseWriter, err error) bool {
	a := attemptOf(ctx)
	if a == nil || a.req.Context().Err() != nil {
		return false
	}
	if !a.read() {
		var connect *connectError
		return (errors.Is(err, errNoServer) || errors.As(err, &connect)) && s.writes.Fallback(w, a.req)
	}
	if !a.left.Load() && !s.cloud.awayBy(err) {
		return false
	}
	away, until := s.link.state()
	if !away {
		var cancel context.CancelFunc
		until, cancel = context.WithTimeout(until, doubtfulWatch)
		defer cancel()
	}
	s.answer(until, w, a)
	return true
}

// answer answers a read from the store.
func (s *shelter) answer(until context.Context, w http.ResponseWriter, a *attempt) {
	if rec, ok := w.(*recorder); ok {
		rec.route = "store"
	}
	if refusal := s.mayRead(a); refusal != nil {
		writeStatus(w, refusal)
		return
	}
	s.Serve(until, a.component, w, a.req, a.asked)
}

// mayRead tells whether the caller may read what the store holds. It never fails open.
func (s *shelter) mayRead(a *attempt) *apierrors.StatusError {
	attributes, ok := identity.AttributesOf(a.asked)
	if !ok {
		return unavailable("the cloud is away, and only it can tell who may read this")
	}
	user, refusal := s.judge.Authorize(a.req.Header, a.who.kind == thisNode, attributes)
	if refusal == nil || refusal.ErrStatus.Code != http.StatusServiceUnavailable || attributes.Verb != "get" || attributes.Resource == "" || attributes.Subresource != "" {
		return refusal
	}
	// Who may read a collection may read what is in it: so a node may get the pods that it watches.
	for _, in := range s.store.Holders(a.asked.Resource, offline.KeyOf(a.asked)) {
		attributes.Verb, attributes.Name, attributes.Namespace = "list", "", in.Namespace
		attributes.FieldSelector, attributes.LabelSelector = in.Fields, in.Labels
		if ok, _ := s.judge.Allowed(user, attributes); ok {
			return nil
		}
	}
	return refusal
}

func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

// componentOf names who asks in the store. It belongs to whom the cloud has authenticated, whatever name the caller
// takes besides.
func componentOf(req *http.Request, who caller) string {
	owner := ""
	switch who.kind {
	case anonymous:
		owner = "anonymous"
	case bearer:
		if owner = serviceAccountOf(req.Header); owner == "" {
			owner = "token"
		}
	}
	as := ""
	if impersonates(req.Header) {
		as = cmp.Or(req.Header.Get("Impersonate-User"), "nobody")
	}
	return store.ComponentOf(req.UserAgent(), owner, as)
}

// run tells the store what is known of the cloud, and the cloud what was written without it, until ctx ends.
func (s *shelter) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.writes.Run(ctx) })
	g.Go(func() error { return s.inform(ctx) })
	return g.Wait()
}

func (s *shelter) inform(ctx context.Context) error {
	fresh := s.clock.NewTicker(freshEvery)
	defer fresh.Stop()
	fetch := s.clock.NewTimer(prefetchAfter)
	defer fetch.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-fresh.C():
			if s.cloud.healthy() {
				s.store.Fresh(s.cloud.lastHeard())
			}
		case <-fetch.C():
			if err := s.prefetch(ctx); err != nil {
				s.logger.Debug("cannot keep API discovery", "err", err)
				fetch.Reset(prefetchRetry)
			}
		}
	}
}

// prefetch keeps what every kubectl asks for first, unless a client has asked.
func (s *shelter) prefetch(ctx context.Context) error {
	for _, k := range kept {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud"+k.Path, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", k.Accept)
		req.Header.Set("User-Agent", userAgent)
		asked := request.Parse(req)
		if s.Knows(userAgent, req, asked) {
			continue
		}
		resp, err := s.document(req, k)
		if err != nil {
			return err
		}
		s.Observe(userAgent, resp, asked, s.asHub)
		_, err = io.Copy(io.Discard, resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return fmt.Errorf("read %s: %w", k.Path, err)
		}
	}
	return nil
}

// document asks the pool, then the cloud.
func (s *shelter) document(req *http.Request, k documents.Key) (*http.Response, error) {
	if d, err := s.shared(req.Context(), k); err == nil && d != nil {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {d.ContentType}, "Etag": {d.ETag}}, Request: req,
			Body: io.NopCloser(bytes.NewReader(d.Body)), ContentLength: int64(len(d.Body)),
		}, nil
	}
	resp, err := s.asHub.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	s.judge.Learn(req.Header, true, identity.Attributes{Verb: "get", Path: k.Path}, resp.StatusCode)
	return resp, nil
}

// history tells the store in which history the cloud is.
func (s *shelter) history(number uint64) {
	d, _ := s.store.Document(historyDocument)
	if known, _ := strconv.ParseUint(string(d.Body), 10, 64); number == known {
		return
	}
	s.store.NewHistory()
	if err := s.store.PutDocument(historyDocument, store.Document{Body: strconv.AppendUint(nil, number, 10), At: s.clock.Now()}); err != nil {
		s.logger.Error("cannot keep the number of the cloud's history", "err", err)
	}
}
