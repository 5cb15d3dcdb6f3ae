package hub

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/source"
)

// fakeCoordinator is as much of a coordinator as a hub sees, behind real TLS: Leases with optimistic concurrency in
// memory, feeds fenced by term, relays, health and status.
type fakeCoordinator struct {
	t      testing.TB
	server *httptest.Server
	ctx    context.Context
	stop   context.CancelFunc
	relays []*relay.Relay
	serve  sync.WaitGroup

	beats     *fakeLeases
	documents documents.Store

	mu          sync.Mutex
	incarnation int
	version     uint64
	leases      map[string]*coordinationv1.Lease
	feeds       map[string]feeding // by resource
	terms       []string           // of feeds that were accepted, in order
	refuse      int                // if set, the code that answers feeds
	down        bool
}

type feeding struct {
	term   contract.Term
	cancel context.CancelFunc
}

func newFakeCoordinator(t testing.TB, ca *authority, resources ...string) *fakeCoordinator {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &fakeCoordinator{t: t, ctx: ctx, stop: cancel, incarnation: 1, version: 10, leases: map[string]*coordinationv1.Lease{}, feeds: map[string]feeding{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET "+contract.StatusPath, c.status)
	mux.HandleFunc("GET "+leasesPath+"/{name}", c.lease)
	mux.HandleFunc("PUT "+leasesPath+"/{name}", c.lease)
	mux.HandleFunc("POST "+leasesPath, c.lease)
	c.beats = newFakeLeases(t, func(req *http.Request) string { return req.TLS.PeerCertificates[0].Subject.CommonName })
	mux.Handle(nodeLeasesPath+"/", c.beats)
	mux.Handle(nodeLeasesPath, c.beats)
	mux.Handle(contract.DocumentsPath, &c.documents)
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
		mux.HandleFunc("POST "+contract.FeedPath(res.Group, res.Version, res.Resource), func(w http.ResponseWriter, req *http.Request) { c.feed(w, req, c.relay(i)) })
	}
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
		Certificates: []tls.Certificate{ca.tls("coordinator")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool(), MinVersion: tls.VersionTLS13,
	}
	c.server.EnableHTTP2 = true
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.server.StartTLS()
	t.Cleanup(func() {
		cancel()
		c.wipe()
		c.server.CloseClientConnections()
		c.server.Close()
		c.serve.Wait()
	})
	return c
}

// wipe is what the loss of its disk does to a coordinator: Leases are gone, versions come again.
func (c *fakeCoordinator) wipe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.incarnation++
	c.version = 10
	clear(c.leases)
	for _, f := range c.feeds {
		f.cancel()
	}
	clear(c.feeds)
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
	for _, r := range c.relays {
		s, feeder := r.Status(), ""
		if _, fed := c.feeds[r.Resource().String()]; fed {
			feeder = "a node"
		}
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
		writeStatus(w, apierrors.NewAlreadyExists(group, name))
		return
	case req.Method == http.MethodPost:
		in.UID = types.UID(strconv.Itoa(c.incarnation) + name)
	case stored == nil:
		writeStatus(w, apierrors.NewNotFound(group, name))
		return
	case req.Method == http.MethodPut && (in.ResourceVersion != stored.ResourceVersion || in.UID != stored.UID):
		writeStatus(w, apierrors.NewConflict(group, name, errors.New("the object has been modified")))
		return
	}
	if req.Method != http.MethodGet {
		c.version++
		in.ResourceVersion = strconv.FormatUint(c.version, 10)
		c.leases[name], stored = &in, &in
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

// offer takes what a hub holds.
func (c *fakeCoordinator) offer(w http.ResponseWriter, req *http.Request, r *relay.Relay) {
	h, _, err := rest.ParseHistory(req.Header)
	check(c.t, err)
	version, err := strconv.ParseUint(req.Header.Get(contract.OfferHeader), 10, 64)
	check(c.t, err)
	if err := source.TakeOffer(req.Context(), req.Body, r, h, version, req.Context().Err); err != nil {
		writeStatus(w, apierrors.NewGenericServerResponse(http.StatusConflict, "post", schema.GroupResource{}, "", err.Error(), 0, true))
	}
}

func (c *fakeCoordinator) feed(w http.ResponseWriter, req *http.Request, r *relay.Relay) {
	if req.Header.Get(contract.OfferHeader) != "" {
		c.offer(w, req, r)
		return
	}
	term, err := contract.ParseTerm(req.Header.Get(contract.TermHeader))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	node := strings.TrimPrefix(req.TLS.PeerCertificates[0].Subject.CommonName, "system:node:")
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	name := r.Resource().String()
	c.mu.Lock()
	lease, old := c.leases[contract.ElectionLease], c.feeds[name]
	code := c.refuse
	if lease == nil || contract.NodeOfIdentity(*lease.Spec.HolderIdentity) != node || term.Incarnation != strconv.Itoa(c.incarnation) || term.Version < old.term.Version {
		code = http.StatusConflict
	}
	if code == 0 {
		if old.cancel != nil {
			old.cancel()
		}
		c.feeds[name] = feeding{term, cancel}
		c.terms = append(c.terms, node+" "+term.String())
	}
	c.mu.Unlock()
	if code != 0 {
		writeStatus(w, apierrors.NewGenericServerResponse(code, "post", schema.GroupResource{}, "", "feed refused", 0, true))
		return
	}
	ctl := http.NewResponseController(w)
	_ = ctl.EnableFullDuplex()
	s := r.Status()
	w.Header().Set(contract.ReachedHeader, strconv.FormatUint(s.Version, 10))
	w.Header().Set(rest.HistoryHeader, s.History.String())
	w.WriteHeader(http.StatusOK)
	_ = ctl.Flush()
	stop := context.AfterFunc(ctx, func() { _ = req.Body.Close() })
	defer stop()
	history, _, _ := rest.ParseHistory(req.Header)
	_ = source.Receive(ctx, req.Body, r, history, ctx.Err)
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
