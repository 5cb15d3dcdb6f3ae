package bubble

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	authorizationv1 "k8s.io/api/authorization/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/sim/testca"
)

// Cloud is a kube-apiserver with one resource, in memory, behind real TLS and HTTP/2: a relay that is written to.
type Cloud struct {
	relay *relay.Relay
	lists atomic.Int64 // complete states that were sent

	mu      sync.Mutex
	version uint64
	state   map[string]uint64
}

// NewCloud serves at "cloud:443" until stop is called.
func NewCloud(n *Network, ca *testca.Authority) (c *Cloud, stop func(), err error) {
	c = &Cloud{version: 100, state: map[string]uint64{}}
	if c.relay, err = newRelay(); err != nil {
		return nil, nil, err
	}
	if err := c.relay.Replace(c.version, nil); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.relay.Run(ctx) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(authorizationv1.SelfSubjectAccessReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
				Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: true},
			})
		})
	mux.HandleFunc("GET /apis/discovery.k8s.io/v1/", func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		question := q.Get("fieldSelector") != "" || q.Get("limit") == "1" // about one object, or how many there are
		if !question && (q.Get("watch") == "" || q.Get("sendInitialEvents") != "") {
			c.lists.Add(1)
		}
		(&rest.Handler{Source: c.relay}).ServeHTTP(w, req)
	})
	end, err := serve(n.Host("cloud"), "443", ca, mux)
	return c, func() {
		cancel()
		running.Wait()
		end()
	}, err
}

// Write makes or changes an object and returns its version.
func (c *Cloud) Write(name string) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: wire.FormatVersion(c.version),
	}}
	typ := wire.Added
	if c.state["ns/"+name] > 0 {
		typ = wire.Modified
	}
	raw, err := s.Marshal()
	if err != nil {
		return 0, err
	}
	o, err := wire.ParseObject(wire.Protobuf, raw)
	if err != nil {
		return 0, err
	}
	c.state["ns/"+name] = c.version
	return c.version, c.relay.Apply(&wire.Event{Type: typ, Object: o, Version: o.Version})
}

// Holds tells how a state differs from the cloud's, "" if it does not.
func (c *Cloud) Holds(state map[string]uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if fmt.Sprint(state) == fmt.Sprint(c.state) {
		return ""
	}
	return fmt.Sprintf("%v, the cloud has %v", state, c.state)
}
