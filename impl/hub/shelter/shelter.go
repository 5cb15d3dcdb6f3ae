package shelter

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
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/offline"
	"github.com/weir-edge/weir/impl/offline/writes"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

const (
	// freshEvery is how often the store is told when the cloud was last heard.
	freshEvery = 5 * time.Second
	// prefetchAfter is how long after a start the hub asks for documents that no client has asked for, and prefetchRetry
	// how long after that again.
	prefetchAfter, prefetchRetry = time.Minute, 10 * time.Minute
	// historyDocument is what the store keeps the number of the cloud's history under.
	historyDocument = "weir/history"
)

// Config is what a Shelter is made of. All of it is needed.
type Config struct {
	Node  string
	Store *store.Store
	Judge *identity.Judge
	Cloud *uplink.Cloud
	// to it, of what the node's own certificate writes.
	AsNode http.RoundTripper
	// to it, for documents that the pool has no copy of.
	Control http.RoundTripper
	Shared  func(context.Context, documents.Key) (*documents.Document, error) // the pool's copy; nil: it has none
	// NodeCounts reports whether the certificate by which the hub is the node at the cloud counts now.
	NodeCounts func() bool
	Spread     time.Duration // over which nodes come back to the cloud
	Seed       uint64
	Clock      clock.WithTickerAndDelayedExecution
	Logger     *slog.Logger

	NodeStatusPeriod time.Duration // see BriefConfig
}

// Overlay corrects what the store has. Look tells it that a write waits.
type Overlay interface {
	offline.Corrections
	Look()
}

// mayGetNode reports whether the cloud has allowed the owner of a token to get this Node.
func (c Config) mayGetNode(header http.Header) bool {
	user, err := c.Judge.Verify(header, false)
	if err != nil {
		return false
	}
	ok, _ := c.Judge.Allowed(user, identity.Attributes{Verb: "get", Version: "v1", Resource: "nodes", Name: c.Node})
	return ok
}

// Shelter serves this node's clients while the cloud is away, from what passed while it was there.
type Shelter struct {
	Config
	Offline *offline.Offline
	Writes  *writes.Writes
	Brief   *Brief
	overlay Overlay
	link    *uplink.Link // clients are served from here
	watched watched

	toldLapsed atomic.Int64 // when an expired certificate was last told of
}

// New makes a shelter of what its store holds.
func New(c Config) (*Shelter, error) {
	s := &Shelter{Config: c, watched: watched{owed: map[store.Key]*owed{}}, overlay: flat{}}
	var err error
	s.Writes, err = writes.New(writes.Config{
		Node: c.Node, Store: c.Store, Cloud: c.AsNode, Reach: c.Cloud.Reach, Moved: func() { s.link.Look() },
		Queued: func() { s.overlay.Look() }, MayGet: c.mayGetNode,
		Spread: c.Spread, Allowance: c.Judge.Allowance, Now: c.Judge.Now, Seed: c.Seed, Clock: c.Clock, Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	s.Offline = offline.New(offline.Config{
		Store: c.Store, Overlay: s.Writes, Corrections: func() offline.Corrections { return s.overlay }, Clock: c.Clock,
		Logger: c.Logger,
		Shown: func(r store.Resource, o *wire.Object) {
			if s.Brief.Shown(r, o) {
				s.Store.Hurry()
			}
		},
	})
	s.Brief = NewBrief(BriefConfig{Held: s.Offline.Held, NodeStatusPeriod: c.NodeStatusPeriod, Logger: c.Logger})
	s.link = uplink.NewLink(func() bool { return c.Cloud.Reach() != member.CloudAway && !s.Writes.Holding() })
	c.Cloud.Follow(func() {
		s.Writes.Changed()
		s.link.Look()
	})
	s.link.Look() // something may wait from before
	return s, nil
}

// flat is the Overlay of a node without a pool.
type flat struct{ offline.None }

func (flat) Look() {}

// Lay has what the store has corrected from now on. It must be called before requests come.
func (s *Shelter) Lay(o Overlay) { s.overlay = o }

// Collectors are the metrics of what is kept.
func (s *Shelter) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.Store, s.Offline, s.Writes, s.Brief.Collector()}
}

// Renewing holds writes while credentials change, until done is called.
func (s *Shelter) Renewing() (done func()) { return s.Writes.Renewing() }

// Attempt is one request on its way to the cloud. nil is one in which the store has no part.
type Attempt struct {
	*Shelter
	req       *http.Request
	asked     *request.Request
	who       access.Caller
	component string
	w         http.ResponseWriter // of its client
	via       http.RoundTripper
	trip      *Trip           // nil: the request is sent as it came
	until     context.Context // ends when it changes whether the store answers
	settled   atomic.Bool     // an answer has come, or the store answers
	left      atomic.Bool     // the latter, or a write was not sent since the cloud is away
	unsent    atomic.Bool     // nothing of a read went to the cloud
	code      atomic.Int64    // of the cloud's answer; 0: there is none
}

// Try begins an attempt to have the cloud answer a request.
func (s *Shelter) Try(req *http.Request, asked *request.Request, who access.Caller, via http.RoundTripper) *Attempt {
	return &Attempt{Shelter: s, req: req, asked: asked, who: who, component: componentOf(req, who), via: via}
}

// Way is what the request is sent to the cloud by.
func (a *Attempt) Way() http.RoundTripper {
	if a.who.Kind == access.ThisNode && !access.Impersonates(a.req.Header) {
		a.trip = TripOf(a.Brief, a.component, a.asked, a.req.Header, a.via)
	}
	if a.trip == nil {
		return a.via
	}
	return a.trip
}

// read reports whether the store might answer.
func (a *Attempt) read() bool {
	return a.asked.Method == http.MethodGet && !a.asked.Upgrade
}

// Served answers from the store if the cloud is away, or if a watch shows what is asked; false: the cloud has to be
// asked.
func (a *Attempt) Served(w http.ResponseWriter) bool {
	away, until := a.link.State()
	a.until = until
	a.w = w
	if !away && a.watchShows() {
		a.route("watch")
		a.Offline.Serve(a.req.Context(), a.component, w, a.req, a.asked)
		return true
	}
	if !away && a.read() && a.req.Header.Get(contract.ConsistentHeader) != "true" {
		if until, away = a.Offline.Corrected(a.component, a.req, a.asked); away {
			away = a.mayRead() == nil
		}
	}
	if !away || !a.read() || a.Writes.Holding() && !a.canAnswer() {
		return false
	}
	a.unsent.Store(true)
	a.answer(until, w)
	return true
}

// route notes who has answered.
func (a *Attempt) route(by string) {
	if rec, ok := a.w.(*answer.Recorder); ok {
		rec.Route = by
	}
}

// Begin is the context of the request to the cloud: it ends when the store is to answer in its place, see Rescue. done
// is to be called when the request is over.
func (a *Attempt) Begin() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(a.req.Context())
	over := a.follows()
	if !a.read() {
		ctx, stop := a.queued(ctx, cancel)
		return ctx, func() {
			over()
			stop()
			cancel()
		}
	}
	leave := func() {
		if a.settled.CompareAndSwap(false, true) {
			a.left.Store(true)
			cancel()
		}
	}
	stop := context.AfterFunc(a.until, func() {
		if away, _ := a.link.State(); away {
			leave()
		}
	})
	if !a.Cloud.Healthy() { // nothing is known of it
		ctx = uplink.Impatient(ctx, a.Clock, a.canAnswer, func() {
			a.unsent.Store(true)
			leave()
		})
	}
	return ctx, func() {
		over()
		stop()
		cancel()
	}
}

// onAway calls leave when the cloud is found to be away, if it is not. The link may be away before that, for what waits
// to be pushed: that the cloud is away as well changes nothing of it.
func (a *Attempt) onAway(leave func()) (stop func() bool) {
	_, until := a.Cloud.IsAway()
	return context.AfterFunc(until, func() {
		if away, _ := a.Cloud.IsAway(); away {
			leave()
		}
	})
}

// States of a write on its way to the cloud.
const (
	waits int32 = iota // for a connection
	sends
	leaves // nothing of it was sent, and nothing will be
)

// queued has a write that the queue could take leave when the cloud is away and no connection has come about for it.
// Connections to a cloud that does not answer are tried one after the other: a kubelet that starts would wait for each.
func (a *Attempt) queued(ctx context.Context, cancel context.CancelFunc) (_ context.Context, stop func() bool) {
	if !a.Writes.Takes(a.req) {
		return ctx, func() bool { return true }
	}
	var state atomic.Int32
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if !state.CompareAndSwap(waits, sends) && state.Load() == leaves {
				_ = i.Conn.Close()
			}
		}}), a.onAway(func() {
			if state.CompareAndSwap(waits, leaves) {
				a.left.Store(true)
				cancel()
			}
		})
}

// canAnswer reports whether the store has an answer for this caller.
func (a *Attempt) canAnswer() bool {
	return a.mayRead() == nil && a.Offline.Knows(a.component, a.req, a.asked)
}

// watchShows reports whether a get is answered from the watch that the node's kubelet has open.
func (a *Attempt) watchShows() bool {
	k, ok := ofPod(a.asked)
	return ok && a.who.Kind == access.ThisNode && !access.Impersonates(a.req.Header) &&
		!a.watched.owes(k, a.Store.Version(ofPods, k, store.Protobuf)) &&
		a.Offline.Watches(a.component, a.req, a.asked) && a.mayRead() == nil
}

// follows notes that a pod is read or written at the cloud. done is to be called when the store has the answer.
func (a *Attempt) follows() (done func()) {
	k, ok := ofPod(a.asked)
	if !ok {
		return func() {}
	}
	if a.read() {
		done := a.watched.reads(k)
		return func() {
			if a.code.Load() == http.StatusOK && a.Offline.Watches(a.component, a.req, a.asked) {
				done()
			}
		}
	}
	before, wrote := a.Store.Version(ofPods, k, store.Protobuf), a.watched.writes(k)
	return func() {
		code := a.code.Load()
		refused := code >= 400 && code < 500 && code != http.StatusRequestTimeout
		shown := code >= 200 && code < 300 && a.asked.Method != http.MethodDelete &&
			a.Store.Version(ofPods, k, store.Protobuf) > before
		wrote(refused || shown, a.trip.Version())
		a.watched.tidy(func(k store.Key) bool { return len(a.Store.Holders(ofPods, k)) == 0 })
	}
}

// Take answers a write that is not the cloud's to do, see package writes. Else the request that is returned goes to the
// cloud.
func (s *Shelter) Take(w *answer.Recorder, req *http.Request, asked *request.Request, who access.Caller) (
	*http.Request, bool) {
	req, taken := s.Writes.Take(w, req, asked, who.Kind == access.ThisNode, uplink.IsLapsed(req.Context()))
	if taken {
		w.Route = "queue"
		if k, ok := ofPod(asked); ok {
			s.watched.writes(k)(false, 0)
		}
	}
	return req, taken
}

// Observe sees the cloud's answer before its client.
func (a *Attempt) Observe(resp *http.Response) error {
	if a == nil {
		return nil
	}
	if !a.settled.CompareAndSwap(false, true) {
		return uplink.ErrGivenUp
	}
	a.code.Store(int64(resp.StatusCode))
	if a.trip.Kept() { // the cloud was not asked
		a.route("watch")
		return nil
	}
	if attributes, ok := identity.AttributesOf(a.asked); ok {
		a.Judge.Learn(resp.Request.Header, a.who.Kind == access.ThisNode, attributes, resp.StatusCode)
	}
	a.Writes.Observe(resp)
	if a.trip.Version() == 0 { // else the cloud has not said all of it
		a.Offline.Observe(a.component, resp, a.asked, a.via)
		a.Offline.Begin(a.component, resp, a.asked)
	}
	return nil
}

// Rescue answers a request that did not reach the cloud; false if it has to be told so.
func (a *Attempt) Rescue(w http.ResponseWriter, err error) bool {
	if a == nil || a.req.Context().Err() != nil {
		return false
	}
	if !a.read() {
		return (uplink.Unsent(err) || a.left.Load()) && a.Writes.Fallback(w, a.req)
	}
	if !a.left.Load() && !a.Cloud.AwayBy(err) {
		return false
	}
	away, until := a.link.State()
	if !away {
		var cancel context.CancelFunc
		until, cancel = context.WithTimeout(until, uplink.DoubtfulWatch)
		defer cancel()
	}
	a.answer(until, w)
	return true
}

// answer answers a read from the store.
func (a *Attempt) answer(until context.Context, w http.ResponseWriter) {
	a.route("store")
	access.AdmissionOf(a.req.Context()).Stays(a.unsent.Load())
	if refusal := a.mayRead(); refusal != nil {
		if a.asked.GoesOn() {
			refusal = answer.ComeAgain(refusal)
		}
		answer.Write(w, refusal)
		return
	}
	a.Offline.Serve(until, a.component, w, a.req, a.asked)
}

// mayRead reports whether the caller may read what the store holds. It never fails open.
func (a *Attempt) mayRead() *apierrors.StatusError {
	attributes, ok := identity.AttributesOf(a.asked)
	if !ok {
		return answer.Unavailable("the cloud is away, and only it can tell who may read this")
	}
	user, refusal := a.Judge.Authorize(a.req.Header, a.who.Kind == access.ThisNode, attributes)
	if refusal == nil || refusal.ErrStatus.Code != http.StatusServiceUnavailable || attributes.Verb != "get" ||
		attributes.Resource == "" || attributes.Subresource != "" {
		return refusal
	}
	// Who may read a collection may read what is in it: so a node may get the pods that it watches.
	for _, in := range a.Store.Holders(a.asked.Resource, offline.KeyOf(a.asked)) {
		attributes.Verb, attributes.Name, attributes.Namespace = "list", "", in.Namespace
		attributes.FieldSelector, attributes.LabelSelector = in.Fields, in.Labels
		if ok, _ := a.Judge.Allowed(user, attributes); ok {
			return nil
		}
	}
	return refusal
}

// componentOf names who asks in the store. It belongs to whom the cloud has authenticated, whatever name the caller
// takes besides.
func componentOf(req *http.Request, who access.Caller) string {
	owner := ""
	switch who.Kind {
	case access.Anonymous:
		owner = "anonymous"
	case access.Bearer:
		if owner = who.Account(req.Header); owner == "" {
			owner = "token"
		}
	}
	as := ""
	if access.Impersonates(req.Header) {
		as = cmp.Or(req.Header.Get("Impersonate-User"), "nobody")
	}
	return store.ComponentOf(req.UserAgent(), owner, as)
}

// Run tells the store what is known of the cloud, and the cloud what was written without it, until ctx ends. served
// waits for the last request: the store is written after it.
func (s *Shelter) Run(ctx context.Context, served func()) error {
	storing, stored := context.WithCancel(context.WithoutCancel(ctx))
	defer stored()
	var whole errgroup.Group
	whole.Go(func() error { return s.Store.Run(storing) })
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.Writes.Run(ctx) })
	g.Go(func() error { return s.inform(ctx) })
	err := g.Wait()
	served()
	s.Offline.Wait()
	stored()
	return errors.Join(err, whole.Wait())
}

func (s *Shelter) inform(ctx context.Context) error {
	fresh := s.Clock.NewTicker(freshEvery)
	defer fresh.Stop()
	fetch := s.Clock.NewTimer(prefetchAfter)
	defer fetch.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-fresh.C():
			if s.Cloud.Healthy() {
				s.Store.Fresh(s.Cloud.LastHeard())
			}
		case <-fetch.C():
			if err := s.Prefetch(ctx); err != nil {
				s.Logger.Debug("cannot keep API discovery", "err", err)
				fetch.Reset(prefetchRetry)
			}
		}
	}
}

// Prefetch keeps what every kubectl asks for first, unless a client has asked.
func (s *Shelter) Prefetch(ctx context.Context) error {
	for _, k := range documents.Kept[:len(documents.Kept)-1] { // keys come when a token needs them
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud"+k.Path, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", k.Accept)
		req.Header.Set("User-Agent", contract.UserAgent)
		asked := request.Parse(req)
		if s.Offline.Knows(contract.UserAgent, req, asked) {
			continue
		}
		resp, err := s.document(req, k)
		if err != nil {
			return err
		}
		s.Offline.Observe(contract.UserAgent, resp, asked, s.Control)
		_, err = io.Copy(io.Discard, resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return fmt.Errorf("read %s: %w", k.Path, err)
		}
	}
	return nil
}

// document asks the pool, then the cloud.
func (s *Shelter) document(req *http.Request, k documents.Key) (*http.Response, error) {
	if d, err := s.Shared(req.Context(), k); err == nil && d != nil {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {d.ContentType}, "Etag": {d.ETag}}, Request: req,
			Body: io.NopCloser(bytes.NewReader(d.Body)), ContentLength: int64(len(d.Body)),
		}, nil
	}
	resp, err := s.Control.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	s.Judge.Learn(req.Header, true, identity.Attributes{Verb: "get", Path: k.Path}, resp.StatusCode)
	return resp, nil
}

// History tells the store in which history the cloud is.
func (s *Shelter) History(number uint64) {
	d, _ := s.Store.Document(historyDocument)
	if known, _ := strconv.ParseUint(string(d.Body), 10, 64); number == known {
		return
	}
	s.Store.NewHistory()
	if err := s.Store.PutDocument(historyDocument, store.Document{
		Body: strconv.AppendUint(nil, number, 10), At: s.Clock.Now(),
	}); err != nil {
		s.Logger.Error("cannot keep the number of the cloud's history", "err", err)
	}
}
