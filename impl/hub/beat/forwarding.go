package beat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/process"
)

const (
	forwardParallel = 16 // forwards under way at a time
	delegatedOnly   = "labelSelector=" + contract.DelegateHeartbeat + "%3D" + contract.Delegated
)

// Forwarding watches the Leases of nodes that are cut off, in the coordinator, and while this hub leads it forwards
// their heartbeats. One goroutine owns the Forwarder; requests and the watch run beside it.
type Forwarding struct {
	ForwardingConfig
	began time.Time

	leads   atomic.Bool
	unread  atomic.Int64 // Leases of the last list
	poke    chan struct{}
	seen    chan sighting
	results chan heartbeat.Result

	mu     sync.Mutex
	status DelegationStatus
}

// errNoLeases is why a leader hub is not asked: it forwards by itself.
var errNoLeases = errors.New("there is no coordinator")

// sighting is something that was seen in the coordinator.
type sighting struct {
	listed []string // names of all delegated nodes, if not nil
	name   string
	lease  heartbeat.Lease
	live   bool // a watch showed it
}

// DelegationStatus is what a leader forwards.
type DelegationStatus struct {
	Nodes     int       `json:"nodes"`     // of the pool that are cut off
	Forwarded int       `json:"forwarded"` // heartbeats, since the start of the hub
	Expired   int       `json:"expired"`   // heartbeats that could not be forwarded in time
	Last      time.Time `json:"last,omitzero"`
	// Unread are Leases of such nodes in the coordinator that cannot be read: nobody speaks for these nodes.
	Unread int `json:"unread,omitempty"`
}

// ForwardingConfig is what a forwarding is made of.
type ForwardingConfig struct {
	Cloud       Cloud // with the forwarder's certificate; nil: there will be none, and nothing is forwarded
	Coordinator Coordinator
	Own         *lease.Store  // of this hub while it is a leader hub: then nodes say there how they are
	Timeout     time.Duration // of a request to the coordinator
	Clock       clock.WithTicker
	Logger      *slog.Logger
	Count       func(step, outcome string)
	Leads       func(yes bool) // told of what Lead says; may be nil
}

// NewForwarding makes what has seen nobody yet.
func NewForwarding(c ForwardingConfig) *Forwarding {
	if u, ok := c.Cloud.(*uplink.Urgent); ok && u == nil { // of a hub that has no certificate for it
		c.Cloud = nil
	}
	return &Forwarding{
		ForwardingConfig: c, began: c.Clock.Now(), poke: make(chan struct{}, 1), seen: make(chan sighting),
		results: make(chan heartbeat.Result),
	}
}

// Lead says whether this hub leads. It never blocks.
func (f *Forwarding) Lead(yes bool) {
	f.leads.Store(yes)
	if f.Leads != nil {
		f.Leads(yes)
	}
	f.Look()
}

// Look says that there is another certificate. It never blocks.
func (f *Forwarding) Look() {
	select {
	case f.poke <- struct{}{}:
	default:
	}
}

// Run watches, and forwards while this hub leads, until ctx ends.
func (f *Forwarding) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.watch(ctx) })
	g.Go(func() error { return f.watchOwn(ctx) })
	forwarder := heartbeat.NewForwarder(forwardParallel)
	for ctx.Err() == nil {
		now := f.Clock.Since(f.began)
		forwarder.Lead(f.leads.Load() && f.Cloud != nil && f.Cloud.Able())
		actions, wake := forwarder.Next(now)
		for _, a := range actions {
			g.Go(func() error {
				r := f.perform(ctx, a)
				select {
				case f.results <- r:
				case <-ctx.Done():
				}
				return nil
			})
		}
		f.publish(forwarder)
		timer := f.Clock.NewTimer(max(wake-now, 0))
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-f.poke:
		case s := <-f.seen:
			f.see(forwarder, s)
		case r := <-f.results:
			forwarder.Done(f.Clock.Since(f.began), r)
		}
		timer.Stop()
	}
	return g.Wait()
}

func (f *Forwarding) see(forwarder *heartbeat.Forwarder, s sighting) {
	now := f.Clock.Since(f.began)
	switch {
	case s.listed != nil:
		forwarder.Listed(now, s.listed)
	case s.lease.Delegated:
		forwarder.See(now, s.name, s.lease, s.live)
	default:
		forwarder.Gone(now, s.name)
	}
}

func (f *Forwarding) publish(forwarder *heartbeat.Forwarder) {
	s := DelegationStatus{
		Unread: int(f.unread.Load()), Nodes: forwarder.Delegated(), Forwarded: forwarder.Forwarded,
		Expired: forwarder.Expired,
	}
	if forwarder.Last > 0 {
		s.Last = f.began.Add(forwarder.Last).UTC()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if before := f.status.Nodes; before != s.Nodes && f.leads.Load() {
		f.Logger.Info("nodes of the pool that are cut off from the cloud", "nodes", s.Nodes, "were", before)
	}
	f.status = s
}

// Status is what was forwarded so far.
func (f *Forwarding) Status() DelegationStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// perform does an action.
func (f *Forwarding) perform(ctx context.Context, a heartbeat.Action) heartbeat.Result {
	r := heartbeat.Result{Kind: a.Kind, Node: a.Node}
	var code int
	var err error
	switch a.Kind {
	case heartbeat.ReadPool:
		code, err = f.readPool(ctx, &r)
	case heartbeat.ReadCloud:
		code, err = f.ask(ctx, uplink.Message{Method: http.MethodGet}, &r)
	case heartbeat.Write:
		var body []byte
		if body, err = forwardPatch(a); err == nil {
			code, err = f.ask(ctx, uplink.Message{
				Method: http.MethodPatch, Body: body, Header: http.Header{"Content-Type": {string(types.MergePatchType)}},
			}, &r)
			r.Lease.Renew = a.Lease.Renew // of what was written only the metadata come back
		}
	}
	switch {
	case err == nil && code < 300:
		r.Outcome = heartbeat.OK
	case code == http.StatusConflict:
		r.Outcome = heartbeat.Conflict
	case code == http.StatusNotFound:
		r.Outcome = heartbeat.Absent
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests:
		r.Outcome = heartbeat.Refused
	default:
		r.Outcome = heartbeat.Failed
	}
	f.Count(a.Kind.String(), r.Outcome.String())
	if r.Outcome != heartbeat.OK {
		level := slog.LevelDebug
		if r.Outcome == heartbeat.Refused {
			level = slog.LevelWarn
		}
		f.Logger.Log(ctx, level, "a heartbeat could not be forwarded", "of", a.Node, "step", a.Kind.String(), "outcome",
			r.Outcome.String(), "code", code, "err", err)
	}
	return r
}

func (f *Forwarding) readPool(ctx context.Context, r *heartbeat.Result) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	if f.Own.IsOpen() {
		l := f.Own.Of(r.Node)
		if l == nil {
			return http.StatusNotFound, nil
		}
		r.Lease = beatOf(l)
		return http.StatusOK, nil
	}
	var l coordinationv1.Lease
	code, err = f.Coordinator.Do(ctx, http.MethodGet, lease.Path+"/"+r.Node, nil, &l)
	r.Lease = beatOf(&l)
	return code, err
}

// ask asks the cloud about the Lease of a node, which is in the answer.
func (f *Forwarding) ask(ctx context.Context, m uplink.Message, r *heartbeat.Result) (code int, err error) {
	m.URI = lease.Path + "/" + url.PathEscape(r.Node)
	if m.Header == nil {
		m.Header = http.Header{}
	}
	m.Header.Set("Accept", runtime.ContentTypeProtobuf)
	if m.Method == http.MethodPatch {
		m.Header.Set("Accept", lease.AcceptMetadata)
	}
	m.Header.Set("User-Agent", contract.UserAgent)
	a, err := f.Cloud.Send(ctx, m)
	if err != nil {
		return 0, err
	}
	if a.Code > 299 {
		return a.Code,
			fmt.Errorf("%s %s: %w", m.Method, m.URI, answer.Decode(&http.Response{StatusCode: a.Code, Header: a.Header}, a.Body))
	}
	l, err := lease.Decode(a.Header.Get("Content-Type"), a.Body)
	if err != nil {
		return 0, err
	}
	r.Lease = beatOf(l)
	return a.Code, nil
}

// forwardPatch is all of a forward: what changes, on condition of the version. A Lease without managedFields gets the
// entry of this write, from which the policy weir-forwarders takes the server's clock: see package manager. One with
// others than that entry loses them, since all of them would come back with each answer.
func forwardPatch(a heartbeat.Action) ([]byte, error) {
	patch := lease.Renewal(a.Lease.Version, a.Lease.Renew)
	if a.Annotate {
		patch.Annotate(contract.DelegateHeartbeat, contract.Delegated)
	}
	if !a.Lease.Managed {
		patch.Manage(contract.UserAgent)
	}
	return json.Marshal(patch)
}

// watch tells of the Leases of nodes that are cut off until ctx ends: what there is, then what changes, again when the
// watch breaks.
func (f *Forwarding) watch(ctx context.Context) error {
	for wait := coordinator.FirstLeasesRetry; ctx.Err() == nil; wait = min(2*wait, coordinator.MaxLeasesRetry) {
		began := f.Clock.Now()
		err := f.look(ctx)
		f.Logger.Debug("the watch of delegated leases ended", "err", err)
		if f.Clock.Since(began) > coordinator.MaxLeasesRetry {
			wait = coordinator.FirstLeasesRetry
		}
		_, resting, cancel := f.Coordinator.With(ctx)
		process.Pause(resting, f.Clock, wait)
		cancel()
	}
	return nil
}

// watchOwn does the same of those that nodes write here, while this is a leader hub.
func (f *Forwarding) watchOwn(ctx context.Context) error {
	for f.Own.Opened(ctx) {
		f.Own.Delegated(ctx, func(names []string) {
			f.saw(ctx, sighting{listed: names})
		}, func(node string, l *coordinationv1.Lease) {
			s := sighting{name: node, live: true}
			if l != nil {
				s.lease = beatOf(l)
			}
			f.saw(ctx, s)
		})
	}
	return nil
}

func (f *Forwarding) look(ctx context.Context) error {
	r, ctx, cancel := f.Coordinator.With(ctx)
	defer cancel()
	if r.Node != "" {
		return errNoLeases
	}
	limit, stop := context.WithTimeout(ctx, f.Timeout)
	list, err := r.ListLeases(limit, lease.Path, delegatedOnly)
	stop()
	if err != nil {
		return err
	}
	if n := int64(list.Unread); f.unread.Swap(n) != n && n > 0 {
		f.Logger.Warn("Leases of nodes that are cut off cannot be read: nobody speaks for these nodes", "leases", n,
			"read", len(list.Items), "coordinator", r.URL.Host)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
		f.saw(ctx, sighting{name: list.Items[i].Name, lease: beatOf(&list.Items[i])})
	}
	f.saw(ctx, sighting{listed: names})
	return r.WatchLeases(ctx, lease.Path, delegatedOnly+"&resourceVersion="+list.Version,
		func(kind string, l *coordinationv1.Lease) {
			s := sighting{name: l.Name, lease: beatOf(l), live: true}
			if kind == "DELETED" {
				s.lease.Delegated = false
			}
			f.saw(ctx, s)
		})
}

func (f *Forwarding) saw(ctx context.Context, s sighting) {
	select {
	case f.seen <- s:
	case <-ctx.Done():
	}
}

// beatOf is what decisions need of a Lease.
func beatOf(l *coordinationv1.Lease) heartbeat.Lease {
	return heartbeat.Lease{
		Version: l.ResourceVersion, Renew: lease.RenewTime(l), Delegated: lease.IsDelegated(l), Managed: lease.Managed(l),
	}
}
