package hub

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/coordinator/pull"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/nodelease"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/source/hop"
)

// fakeCoordinator is as much of a coordinator as a hub sees, behind real TLS: Leases with optimistic concurrency in
// memory, relays that it pulls from the leader, health and status.
type fakeCoordinator struct {
	t      testing.TB
	server *httptest.Server
	ctx    context.Context
	stop   context.CancelFunc
	cert   tls.Certificate
	relays []*relay.Relay
	serve  sync.WaitGroup
	fence  *fence.Fence
	bars   pull.Bars

	beats     *fakeLeases
	documents documents.Store

	mu          sync.Mutex
	incarnation int
	version     uint64
	leases      map[string]*coordinationv1.Lease
	puller      *pull.Puller
	end         context.CancelFunc // of it
	terms       []string           // of leaders that were read, in order
	shuns       string             // the node whose hub cannot be reached
	down        bool
}

func newFakeCoordinator(t testing.TB, ca *authority, resources ...string) *fakeCoordinator {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &fakeCoordinator{t: t, ctx: ctx, stop: cancel, incarnation: 1, version: 10, leases: map[string]*coordinationv1.Lease{}, cert: ca.tls("coordinator")}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET "+contract.StatusPath, c.status)
	mux.HandleFunc("GET "+coordinator.LeasesPath+"/{name}", c.lease)
	mux.HandleFunc("PUT "+coordinator.LeasesPath+"/{name}", c.lease)
	mux.HandleFunc("POST "+coordinator.LeasesPath, c.lease)
	c.beats = newFakeLeases(t, func(req *http.Request) string { return req.TLS.PeerCertificates[0].Subject.CommonName })
	mux.Handle(nodelease.Path+"/", c.beats)
	mux.Handle(nodelease.Path, c.beats)
	mux.HandleFunc("GET "+contract.DocumentsPath, c.document)
	if len(resources) == 0 {
		resources = defaultResources()
	}
	for i, name := range resources {
		res, err := relay.ParseResource(name)
		check(t, err)
		r, err := relay.New(relay.Config{Resource: res})
		check(t, err)
		c.relays = append(c.relays, r)
		c.serve.Go(func() { _ = r.Run(ctx) })
		mux.HandleFunc("GET "+res.Path()+"/"+res.Resource, func(w http.ResponseWriter, req *http.Request) { (&rest.Handler{Source: c.relay(i)}).ServeHTTP(w, req) })
	}
	c.pulls()
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c.mu.Lock()
		down := c.down
		c.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, req)
	}))
	c.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{ca.tls("coordinator")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool(), Time: ca.now, MinVersion: tls.VersionTLS13,
	}
	c.server.EnableHTTP2 = true
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.server.StartTLS()
	t.Cleanup(func() {
		cancel()
		c.server.CloseClientConnections()
		c.server.Close()
		c.serve.Wait()
	})
	return c
}

// pulls runs a real puller, of the relays of now; c.mu is held, or nobody knows c yet.
func (c *fakeCoordinator) pulls() {
	if c.end != nil {
		c.end()
	}
	c.fence = &fence.Fence{Incarnation: strconv.Itoa(c.incarnation)}
	var err error
	c.puller, err = pull.New(pull.Config{
		Relays: slices.Clone(c.relays), Fence: c.fence, Bars: &c.bars, Line: c.line, Leases: c, Majority: func() error { return nil },
		Unready: func(r *relay.Relay) error {
			if s := r.Status(); s.Restored || !s.Fresh(time.Now(), 30*time.Second) {
				return errors.New("not fresh")
			}
			return nil
		},
		Freed: func(string) {}, Refilled: func(_, _ string) {}, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	check(c.t, err)
	c.fence.Moved = c.puller.Moved
	var ctx context.Context
	ctx, c.end = context.WithCancel(c.ctx)
	p := c.puller
	c.serve.Go(func() { _ = p.Run(ctx) })
}

// sees shows the election Lease to the fence; c.mu is held.
func (c *fakeCoordinator) sees(l *coordinationv1.Lease) {
	s := fence.Sighting{Version: c.version, Holder: *l.Spec.HolderIdentity, Address: l.Annotations[contract.PoolAddress]}
	if node := contract.NodeOfIdentity(s.Holder); node != "" && c.fence.Leader().Node != node {
		c.terms = append(c.terms, node)
	}
	c.fence.Follow(s, false)
}

// Free implements pull.Leases.
func (c *fakeCoordinator) Free(_ context.Context, l fence.Leader) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fence.Admit(l); err != nil {
		return err
	}
	c.version++
	free := c.leases[contract.ElectionLease].DeepCopy()
	free.Spec.HolderIdentity, free.ResourceVersion = new(string), strconv.FormatUint(c.version, 10)
	c.leases[contract.ElectionLease] = free
	c.sees(free)
	return nil
}

// Hubs implements pull.Leases.
func (c *fakeCoordinator) Hubs(context.Context) map[string]string {
	c.beats.mu.Lock()
	defer c.beats.mu.Unlock()
	hubs := map[string]string{}
	for node, l := range c.beats.leases {
		if address := l.Annotations[contract.PoolAddress]; address != "" {
			hubs[node] = address
		}
	}
	return hubs
}

// line leads to a hub.
func (c *fakeCoordinator) line(node, address string) *hop.Line {
	return hop.NewLine(hop.LineConfig{
		Name: node, Clock: clock.RealClock{},
		Dial: func(ctx context.Context) (net.Conn, error) {
			shuns := ""
			if c.set(func() { shuns = c.shuns }); node == shuns {
				return nil, errors.New("it cannot be reached")
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		},
		TLS: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{c.cert}, VerifyConnection: func(s tls.ConnectionState) error {
			if name := s.PeerCertificates[0].Subject.CommonName; name != contract.NodeUserPrefix+node {
				return errors.New("it is " + name)
			}
			return nil
		}},
	})
}

// wipe is what the loss of its disk does to a coordinator: Leases are gone, versions come again.
func (c *fakeCoordinator) wipe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.incarnation++
	c.version = 10
	clear(c.leases)
	c.pulls()
}

func (c *fakeCoordinator) relay(i int) *relay.Relay {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.relays[i]
}

// empty is a restart without the disk: what was copied is gone as well.
func (c *fakeCoordinator) empty() {
	c.server.CloseClientConnections()
	c.wipe()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range c.relays {
		fresh, err := relay.New(relay.Config{Resource: r.Resource()})
		check(c.t, err)
		c.relays[i] = fresh
		c.serve.Go(func() { _ = fresh.Run(c.ctx) })
	}
	c.pulls()
}

func (c *fakeCoordinator) status(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	type resource struct {
		Resource string `json:"resource"`
		Synced   bool   `json:"synced"`
		Ready    bool   `json:"ready"`
		Version  uint64 `json:"version"`
		History  uint64 `json:"history"`
		Feeder   string `json:"feeder"`
	}
	out := struct {
		Incarnation string     `json:"incarnation"`
		Ready       bool       `json:"ready"`
		Resources   []resource `json:"resources"`
	}{Incarnation: strconv.Itoa(c.incarnation)}
	for i, r := range c.relays {
		s := r.Status()
		feeder, _ := c.puller.Feeder(i)
		out.Resources = append(out.Resources, resource{r.Resource().String(), s.Synced, s.Fresh(time.Now(), 30*time.Second), s.Version, s.History.Number, feeder})
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (c *fakeCoordinator) lease(w http.ResponseWriter, req *http.Request) {
	var in coordinationv1.Lease
	if req.Method != http.MethodGet && !received(c.t, req, &in) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	group := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	name := req.PathValue("name")
	if name == "" {
		name = in.Name
	}
	stored := c.leases[name]
	switch {
	case req.Method == http.MethodPost && stored != nil:
		answer.Write(w, apierrors.NewAlreadyExists(group, name))
		return
	case req.Method == http.MethodPost:
		in.UID = types.UID(strconv.Itoa(c.incarnation) + name)
	case stored == nil:
		answer.Write(w, apierrors.NewNotFound(group, name))
		return
	case req.Method == http.MethodPut && (in.ResourceVersion != stored.ResourceVersion || in.UID != stored.UID):
		answer.Write(w, apierrors.NewConflict(group, name, errors.New("the object has been modified")))
		return
	case req.Method != http.MethodGet && name == contract.ElectionLease && *in.Spec.HolderIdentity != "" && c.bars.Hold(contract.NodeOfIdentity(*in.Spec.HolderIdentity), time.Now()):
		answer.Write(w, apierrors.NewConflict(group, name, errors.New("it could not be read")))
		return
	}
	if req.Method != http.MethodGet {
		c.version++
		in.ResourceVersion = strconv.FormatUint(c.version, 10)
		c.leases[name], stored = &in, &in
		if name == contract.ElectionLease {
			c.sees(&in)
		}
	}
	_ = json.NewEncoder(w).Encode(stored)
}

// received decodes what a request carries; false: its sender has left.
func received(t testing.TB, req *http.Request, into any) bool {
	t.Helper()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return false
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Errorf("%s %s: %v", req.Method, req.URL, err)
		return false
	}
	return true
}

// document shows what the leader shows, or showed last.
func (c *fakeCoordinator) document(w http.ResponseWriter, req *http.Request) {
	k, err := documents.ParseKey(req.URL.Query())
	check(c.t, err)
	c.pullDocument(req.Context(), k)
	c.documents.ServeHTTP(w, req)
}

func (c *fakeCoordinator) pullDocument(ctx context.Context, k documents.Key) *documents.Document {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var p *pull.Puller
	c.set(func() { p = c.puller })
	if up := p.Upstream(); up != nil {
		if d, err := documents.Fetch(ctx, up.Client.Transport, up.URL.JoinPath(contract.DocumentsPath), k); err == nil {
			c.documents.Put(k, d)
		}
	}
	return c.documents.Get(k)
}

func (c *fakeCoordinator) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *fakeCoordinator) holder(lease string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.leases[lease]; l != nil {
		return contract.NodeOfIdentity(*l.Spec.HolderIdentity)
	}
	return "nobody"
}
