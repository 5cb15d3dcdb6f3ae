package bubble

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/coordinator/pull"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/sim/pki"
)

// Coordinator is as much of weir-coordinator as a hub sees, in memory: Leases with optimistic concurrency and a watch, the real
// fence, and a real relay that is fed by the real puller. What it lacks is etcd, which needs a disk and sockets.
type Coordinator struct {
	relay *relay.Relay
	fence *fence.Fence
	life  string

	tenure fence.Tenure

	mu      sync.Mutex
	version uint64
	leases  map[string]*coordinationv1.Lease
	changed chan struct{} // closed and replaced at each write of a Lease
	bars    pull.Bars
}

// NewCoordinator serves at "coordinator:10270" until stop is called. Each one has lost its disk.
func NewCoordinator(n *Network, ca *pki.Authority, life int) (c *Coordinator, stop func(), err error) {
	c = &Coordinator{life: strconv.Itoa(life), version: 10, leases: map[string]*coordinationv1.Lease{}, changed: make(chan struct{})}
	if c.relay, err = newRelay(); err != nil {
		return nil, nil, err
	}
	c.fence = &fence.Fence{Incarnation: c.life}
	line, err := liner(n.Host("coordinator"), ca)
	if err != nil {
		return nil, nil, err
	}
	puller, err := pull.New(pull.Config{
		Relays: []*relay.Relay{c.relay}, Fence: c.fence, Bars: &c.bars, Line: line, Leases: c, Majority: func() error { return nil },
		Unready: func(r *relay.Relay) error {
			if s := r.Status(); s.Restored || !s.Fresh(time.Now(), fresh) {
				return errors.New("not fresh")
			}
			return nil
		},
		Freed: func(string) {}, Refilled: func(_, _ string) {}, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, err
	}
	c.fence.Moved = puller.Moved
	c.fence.Follow(fence.Sighting{Version: c.version}, true)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = puller.Run(ctx) })
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
	end, err := serve(n.Host("coordinator"), "10270", ca, mux)
	return c, func() {
		cancel()
		running.Wait()
		end()
	}, err
}

// fresh is for how long a relay is ready after the last sign of its source.
const fresh = 30 * time.Second

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
		Feeder   string `json:"feeder"`
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"incarnation": c.life, "ready": s.Fresh(time.Now(), fresh),
		"resources": []one{{c.relay.Resource().String(), s.Synced, s.Version, c.fence.Leader().Node}},
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
	case req.Method != http.MethodGet && (!c.admits(name, nodeOf(req)) || name == contract.ElectionLease && c.bars.Hold(nodeOf(req), time.Now())):
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
		s := fence.Sighting{Version: c.version, Address: l.Annotations[contract.PoolAddress]}
		if h := l.Spec.HolderIdentity; h != nil {
			s.Holder = *h
		}
		c.fence.Follow(s, false)
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

// Hubs implements pull.Leases: there are no kubelets, so no Leases of nodes.
func (c *Coordinator) Hubs(context.Context) map[string]string { return nil }

// Free implements pull.Leases.
func (c *Coordinator) Free(_ context.Context, who fence.Leader) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fence.Admit(who); err != nil {
		return err
	}
	free := c.leases[contract.ElectionLease].DeepCopy()
	free.Spec.HolderIdentity = new(string)
	c.store(contract.ElectionLease, free)
	return nil
}

// liner makes lines from the coordinator to hubs.
func liner(from Host, ca *pki.Authority) (func(node, address string) *hop.Line, error) {
	pair, err := ca.Issue(pki.Request{CommonName: from.name, Hosts: []string{from.name}})
	if err != nil {
		return nil, err
	}
	cert, err := pair.TLS()
	if err != nil {
		return nil, err
	}
	return func(node, address string) *hop.Line {
		return hop.NewLine(hop.LineConfig{
			Name: node, Clock: clock.RealClock{},
			Dial: func(ctx context.Context) (net.Conn, error) { return from.DialContext(ctx, "tcp", address) },
			TLS: &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true, //nolint:gosec // hubs are known by their nodes
				VerifyConnection: func(s tls.ConnectionState) error {
					if name := s.PeerCertificates[0].Subject.CommonName; name != contract.NodeUserPrefix+node {
						return errors.New("it is " + name)
					}
					return nil
				},
			},
		})
	}, nil
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
