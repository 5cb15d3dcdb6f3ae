package bubble

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/sim/pki"
)

// Coordinator is as much of weir-coordinator as a hub sees, in memory: Leases with optimistic concurrency and a watch, the real
// fence, a real relay that is fed by the real source.Receive, and the pulse. What it lacks is etcd, which needs a disk and sockets.
type Coordinator struct {
	relay *relay.Relay
	fence *fence.Fence
	life  string

	tenure fence.Tenure

	mu      sync.Mutex
	version uint64
	leases  map[string]*coordinationv1.Lease
	changed chan struct{} // closed and replaced at each write of a Lease
	feed    context.CancelFunc
	beats   int // of the pulse; grows with each
}

// NewCoordinator serves at "coordinator:10270" until stop is called. Each one has lost its disk.
func NewCoordinator(n *Network, ca *pki.Authority, life int) (c *Coordinator, stop func(), err error) {
	c = &Coordinator{life: strconv.Itoa(life), version: 10, leases: map[string]*coordinationv1.Lease{}, changed: make(chan struct{})}
	if c.relay, err = newRelay(); err != nil {
		return nil, nil, err
	}
	c.fence = &fence.Fence{Incarnation: c.life, Moved: c.enforce}
	c.fence.Follow(fence.Sighting{Version: c.version}, true)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.relay.Run(ctx) })
	res := c.relay.Resource()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET "+contract.StatusPath, c.status)
	mux.HandleFunc("GET "+leasesPath, c.watch)
	mux.HandleFunc("GET "+leasesPath+"/{name}", c.lease)
	mux.HandleFunc("PUT "+leasesPath+"/{name}", c.lease)
	mux.HandleFunc("POST "+leasesPath, c.lease)
	mux.HandleFunc("GET "+nodeLeasesPath, noNodes)
	mux.Handle("GET "+res.Path()+"/"+res.Resource, &rest.Handler{Source: c.relay})
	mux.HandleFunc("POST "+contract.FeedPath(res.Group, res.Version, res.Resource), c.take)
	mux.HandleFunc("POST "+contract.PulsePath, c.hear)
	end, err := serve(n.Host("coordinator"), "10270", ca, mux)
	return c, func() {
		cancel()
		running.Wait()
		end()
	}, err
}

const (
	leasesPath     = "/apis/coordination.k8s.io/v1/namespaces/" + contract.LeaseNamespace + "/leases"
	nodeLeasesPath = "/apis/coordination.k8s.io/v1/namespaces/" + contract.NodeLeaseNamespace + "/leases"
)

// noNodes lists and watches Leases of nodes: there are no kubelets, so there are none.
func noNodes(w http.ResponseWriter, req *http.Request) {
	if req.URL.Query().Has("watch") {
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		return
	}
	_ = json.NewEncoder(w).Encode(coordinationv1.LeaseList{})
}

func (c *Coordinator) status(w http.ResponseWriter, _ *http.Request) {
	s := c.relay.Status()
	type one struct {
		Resource string `json:"resource"`
		Synced   bool   `json:"synced"`
		Version  uint64 `json:"version"`
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"incarnation": c.life, "ready": s.Fresh(time.Now(), 30*time.Second),
		"resources": []one{{c.relay.Resource().String(), s.Synced, s.Version}},
	})
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: message})
}

func (c *Coordinator) lease(w http.ResponseWriter, req *http.Request) {
	var in coordinationv1.Lease
	if req.Method != http.MethodGet {
		if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	name := req.PathValue("name")
	if name == "" {
		name = in.Name
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := c.leases[name]
	switch {
	case req.Method == http.MethodPost && stored != nil:
		refuse(w, http.StatusConflict, "it exists")
		return
	case req.Method == http.MethodPost:
		in.UID = types.UID(c.life + name)
	case stored == nil:
		refuse(w, http.StatusNotFound, "there is none")
		return
	case req.Method == http.MethodPut && (in.ResourceVersion != stored.ResourceVersion || in.UID != stored.UID):
		refuse(w, http.StatusConflict, "it was changed")
		return
	case req.Method != http.MethodGet && !c.admits(name, nodeOf(req)):
		refuse(w, http.StatusConflict, "another holds it")
		return
	}
	if req.Method != http.MethodGet {
		c.store(name, &in)
		stored = &in
	}
	_ = json.NewEncoder(w).Encode(stored)
}

// admits tells whether a node may write a Lease: the election's if it is free, its own or expired, the other one if it leads; c.mu is held.
func (c *Coordinator) admits(name, node string) bool {
	l := c.leases[contract.ElectionLease]
	switch {
	case l == nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "":
		return name == contract.ElectionLease
	case contract.NodeOfIdentity(*l.Spec.HolderIdentity) == node:
		return true
	}
	version, _ := strconv.ParseUint(l.ResourceVersion, 10, 64)
	return name == contract.ElectionLease && c.tenure.Age(version, time.Now()) >= time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second
}

func nodeOf(req *http.Request) string {
	return strings.TrimPrefix(req.TLS.PeerCertificates[0].Subject.CommonName, contract.NodeUserPrefix)
}

// store stores a Lease; c.mu is held.
func (c *Coordinator) store(name string, l *coordinationv1.Lease) {
	c.version++
	l.Name, l.Namespace, l.ResourceVersion = name, contract.LeaseNamespace, strconv.FormatUint(c.version, 10)
	c.leases[name] = l
	if name == contract.ElectionLease {
		c.tenure.Saw(c.version, time.Now())
		s := fence.Sighting{Version: c.version}
		if h := l.Spec.HolderIdentity; h != nil {
			s.Holder = *h
		}
		go c.fence.Follow(s, false) // it may call back
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// watch shows both Leases as they are and as they change.
func (c *Coordinator) watch(w http.ResponseWriter, req *http.Request) {
	shown := uint64(0)
	for req.Context().Err() == nil {
		c.mu.Lock()
		changed, now := c.changed, c.version
		var out []*coordinationv1.Lease
		for _, name := range []string{contract.ElectionLease, contract.InformerSync} {
			if l := c.leases[name]; l != nil {
				if v, _ := strconv.ParseUint(l.ResourceVersion, 10, 64); v > shown {
					out = append(out, l)
				}
			}
		}
		c.mu.Unlock()
		for _, l := range out {
			if json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": l}) != nil {
				return
			}
		}
		_ = http.NewResponseController(w).Flush()
		shown = now
		select {
		case <-changed:
		case <-req.Context().Done():
		}
	}
}

func (c *Coordinator) knock(w http.ResponseWriter, req *http.Request) (contract.Term, string, bool) {
	term, err := contract.ParseTerm(req.Header.Get(contract.TermHeader))
	if err != nil || len(req.TLS.PeerCertificates) == 0 {
		refuse(w, http.StatusBadRequest, fmt.Sprint("who, and under which term? ", err))
		return term, "", false
	}
	node := nodeOf(req)
	if err := c.fence.Open(term, node); err != nil {
		refuse(w, http.StatusConflict, err.Error())
		return term, "", false
	}
	return term, node, true
}

// take takes a feed.
func (c *Coordinator) take(w http.ResponseWriter, req *http.Request) {
	term, node, ok := c.knock(w, req)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	c.mu.Lock()
	if c.feed != nil {
		c.feed()
	}
	c.feed = cancel
	c.mu.Unlock()
	history, _, err := rest.ParseHistory(req.Header)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	s := c.relay.Status()
	w.Header().Set(contract.ReachedHeader, strconv.FormatUint(s.Version, 10))
	w.Header().Set(rest.HistoryHeader, s.History.String())
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	defer context.AfterFunc(ctx, func() { _ = req.Body.Close() })()
	_ = source.Receive(ctx, req.Body, c.relay, history, func() error { return errors.Join(ctx.Err(), c.fence.Admit(term, node)) })
}

// enforce ends the feed of a leader that was: the fence would refuse what it brings, but one that is idle would not ask.
func (c *Coordinator) enforce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.feed != nil {
		c.feed()
	}
}

// hear frees the election Lease when the leader's pulse breaks or falls silent.
func (c *Coordinator) hear(w http.ResponseWriter, req *http.Request) {
	term, node, ok := c.knock(w, req)
	if !ok {
		return
	}
	_ = http.NewResponseController(w).Flush()
	c.mu.Lock()
	c.beats++
	mine := c.beats
	c.mu.Unlock()
	buf := make([]byte, 64)
	for {
		silent := time.AfterFunc(contract.PulseSilence, func() { _ = req.Body.Close() })
		_, err := req.Body.Read(buf)
		silent.Stop()
		if err != nil {
			break
		}
	}
	time.Sleep(250 * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.leases[contract.ElectionLease]; c.beats == mine && l != nil && c.fence.Admit(term, node) == nil {
		free := l.DeepCopy()
		free.Spec.HolderIdentity = new(string)
		c.store(contract.ElectionLease, free)
	}
}

// Leader is the node that holds the election Lease, "" if none does.
func (c *Coordinator) Leader() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.leases[contract.ElectionLease]; l != nil && l.Spec.HolderIdentity != nil {
		return contract.NodeOfIdentity(*l.Spec.HolderIdentity)
	}
	return ""
}
