package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
)

const (
	forwardParallel = 16 // forwards under way at a time
	delegatedOnly   = "labelSelector=" + contract.DelegateHeartbeat + "%3D" + contract.Delegated
)

// forwarding watches the Leases of nodes that are cut off, in the coordinator, and while this hub leads it forwards their heartbeats. One goroutine owns the
// Forwarder; requests and the watch run beside it.
type forwarding struct {
	cloud       *urgent // with the forwarder's certificate; nil: there is none, and nothing is forwarded
	coordinator *coordinator
	timeout     time.Duration // of a request to the coordinator
	clock       clock.WithTicker
	began       time.Time
	logger      *slog.Logger
	metrics     *metrics

	leads   atomic.Bool
	poke    chan struct{}
	seen    chan sighting
	results chan heartbeat.Result

	mu     sync.Mutex
	status DelegationStatus
}

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
}

func newForwarding(c *coordinator, cloud *urgent, timeout time.Duration, clk clock.WithTicker, logger *slog.Logger, m *metrics) *forwarding {
	return &forwarding{
		cloud: cloud, coordinator: c, timeout: timeout, clock: clk, began: clk.Now(), logger: logger, metrics: m,
		poke: make(chan struct{}, 1), seen: make(chan sighting), results: make(chan heartbeat.Result),
	}
}

// lead says whether this hub leads. It never blocks.
func (f *forwarding) lead(yes bool) {
	f.leads.Store(yes)
	select {
	case f.poke <- struct{}{}:
	default:
	}
}

// run watches, and forwards while this hub leads, until ctx ends.
func (f *forwarding) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.watch(ctx) })
	forwarder := heartbeat.NewForwarder(forwardParallel)
	told := false
	for ctx.Err() == nil {
		now := f.clock.Since(f.began)
		forwarder.Lead(f.leads.Load() && f.cloud != nil)
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
		if f.cloud == nil && f.leads.Load() && forwarder.Delegated() > 0 && !told {
			told = true
			f.logger.Warn("this hub leads and forwards no heartbeats: it has no certificate for that; set --delegate-client-cert-file and --delegate-client-key-file")
		}
		timer := f.clock.NewTimer(max(wake-now, 0))
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-f.poke:
		case s := <-f.seen:
			f.see(forwarder, s)
		case r := <-f.results:
			forwarder.Done(f.clock.Since(f.began), r)
		}
		timer.Stop()
	}
	return g.Wait()
}

func (f *forwarding) see(forwarder *heartbeat.Forwarder, s sighting) {
	now := f.clock.Since(f.began)
	switch {
	case s.listed != nil:
		forwarder.Listed(now, s.listed)
	case s.lease.Delegated:
		forwarder.See(now, s.name, s.lease, s.live)
	default:
		forwarder.Gone(now, s.name)
	}
}

func (f *forwarding) publish(forwarder *heartbeat.Forwarder) {
	s := DelegationStatus{Nodes: forwarder.Delegated(), Forwarded: forwarder.Forwarded, Expired: forwarder.Expired}
	if forwarder.Last > 0 {
		s.Last = f.began.Add(forwarder.Last).UTC()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if before := f.status.Nodes; before != s.Nodes && f.leads.Load() {
		f.logger.Info("nodes of the pool that are cut off from the cloud", "nodes", s.Nodes, "were", before)
	}
	f.status = s
}

func (f *forwarding) current() DelegationStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// perform does an action.
func (f *forwarding) perform(ctx context.Context, a heartbeat.Action) heartbeat.Result {
	r := heartbeat.Result{Kind: a.Kind, Node: a.Node}
	var code int
	var err error
	switch a.Kind {
	case heartbeat.ReadPool:
		code, err = f.readPool(ctx, &r)
	case heartbeat.ReadCloud:
		code, err = f.ask(ctx, message{method: http.MethodGet}, &r)
	case heartbeat.Write:
		var body []byte
		if body, err = forwardPatch(a); err == nil {
			code, err = f.ask(ctx, message{method: http.MethodPatch, body: body, header: http.Header{"Content-Type": {string(types.MergePatchType)}}}, &r)
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
	f.metrics.forwards.WithLabelValues(a.Kind.String(), r.Outcome.String()).Inc()
	if r.Outcome != heartbeat.OK {
		level := slog.LevelDebug
		if r.Outcome == heartbeat.Refused {
			level = slog.LevelWarn
		}
		f.logger.Log(ctx, level, "a heartbeat could not be forwarded", "of", a.Node, "step", a.Kind.String(), "outcome", r.Outcome.String(), "code", code, "err", err)
	}
	return r
}

func (f *forwarding) readPool(ctx context.Context, r *heartbeat.Result) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var l coordinationv1.Lease
	code, err = f.coordinator.do(ctx, http.MethodGet, nodeLeasesPath+"/"+r.Node, nil, &l)
	r.Lease = beatOf(&l)
	return code, err
}

// ask asks the cloud about the Lease of a node, which is in the answer.
func (f *forwarding) ask(ctx context.Context, m message, r *heartbeat.Result) (code int, err error) {
	m.uri = nodeLeasesPath + "/" + url.PathEscape(r.Node)
	if m.header == nil {
		m.header = http.Header{}
	}
	m.header.Set("Accept", mediaProtobuf)
	m.header.Set("User-Agent", userAgent)
	a, err := f.cloud.send(ctx, m)
	if err != nil {
		return 0, err
	}
	if a.code > 299 {
		return a.code, fmt.Errorf("%s %s: %w", m.method, m.uri, decodeStatus(&http.Response{StatusCode: a.code, Header: a.header}, a.body))
	}
	l, err := decodeLease(a.header.Get("Content-Type"), a.body)
	if err != nil {
		return 0, err
	}
	r.Lease = beatOf(l)
	return a.code, nil
}

// forwardPatch is all of a forward: what changes, on condition of the version.
func forwardPatch(a heartbeat.Action) ([]byte, error) {
	type meta struct {
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	}
	type spec struct {
		RenewTime metav1.MicroTime `json:"renewTime"`
	}
	patch := struct {
		Metadata meta `json:"metadata"`
		Spec     spec `json:"spec"`
	}{meta{ResourceVersion: a.Lease.Version}, spec{metav1.NewMicroTime(a.Lease.Renew)}}
	if a.Annotate {
		patch.Metadata.Annotations = map[string]string{contract.DelegateHeartbeat: contract.Delegated}
	}
	return json.Marshal(patch)
}

// watch tells of the Leases of nodes that are cut off until ctx ends: what there is, then what changes, again when the watch breaks.
func (f *forwarding) watch(ctx context.Context) error {
	for wait := firstLeasesRetry; ctx.Err() == nil; wait = min(2*wait, maxLeasesRetry) {
		began := f.clock.Now()
		err := f.look(ctx)
		f.logger.Debug("the watch of delegated leases ended", "err", err)
		if f.clock.Since(began) > maxLeasesRetry {
			wait = firstLeasesRetry
		}
		_, resting, cancel := f.coordinator.with(ctx)
		sleep(resting, f.clock, wait)
		cancel()
	}
	return nil
}

func (f *forwarding) look(ctx context.Context) error {
	r, ctx, cancel := f.coordinator.with(ctx)
	defer cancel()
	list, err := r.leases(ctx, f.timeout)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
		f.saw(ctx, sighting{name: list.Items[i].Name, lease: beatOf(&list.Items[i])})
	}
	f.saw(ctx, sighting{listed: names})
	return r.watchLeases(ctx, nodeLeasesPath, delegatedOnly+"&resourceVersion="+list.ResourceVersion, func(kind string, l *coordinationv1.Lease) {
		s := sighting{name: l.Name, lease: beatOf(l), live: true}
		if kind == "DELETED" {
			s.lease.Delegated = false
		}
		f.saw(ctx, s)
	})
}

// leases lists those of nodes that are cut off.
func (r *replica) leases(ctx context.Context, timeout time.Duration) (*coordinationv1.LeaseList, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var list coordinationv1.LeaseList
	_, err := r.doQuery(ctx, http.MethodGet, nodeLeasesPath, delegatedOnly, nil, &list)
	list.Items = slices.DeleteFunc(list.Items, func(l coordinationv1.Lease) bool { return !isName(l.Name) })
	return &list, err
}

func (f *forwarding) saw(ctx context.Context, s sighting) {
	select {
	case f.seen <- s:
	case <-ctx.Done():
	}
}
