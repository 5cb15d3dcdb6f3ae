package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/reverse"
	"github.com/weir-edge/weir/impl/testkit"
)

const (
	port = 8443 // of the gate
)

// nodeOf is a Node of a pool with addresses, each "<type> <address>".
func nodeOf(pool, name string, addresses ...string) *corev1.Node {
	n := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{contract.NodePoolLabel: pool}},
	}
	for _, a := range addresses {
		kind, address, _ := strings.Cut(a, " ")
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{
			Type: corev1.NodeAddressType(kind), Address: address,
		})
	}
	return n
}

// toldOf is the metadata of Endpoints that tell spec.reach.
func toldOf(name, reach string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: contract.ManagerNamespace, Annotations: map[string]string{contract.LeaderHubReach: reach},
		},
	}
}

// kube is a kube-apiserver that has Nodes and Endpoints, to list and to watch.
type kube struct {
	*httptest.Server
	t testing.TB

	mu      sync.Mutex
	version int
	objects map[string]map[string]metav1.Object // by resource and name
	events  []event
	changed chan struct{}
	hidden  map[string]bool // resources that are not listed yet
}

type event struct {
	resource, kind string
	version        int
	object         json.RawMessage
}

func newKube(t testing.TB) *kube {
	x := &kube{
		t: t, objects: map[string]map[string]metav1.Object{"nodes": {}, "endpoints": {}}, changed: make(chan struct{}),
		hidden: map[string]bool{},
	}
	x.Server = httptest.NewServer(x)
	t.Cleanup(func() {
		x.CloseClientConnections()
		x.Close()
	})
	return x
}

// set has an object changed or created.
func (x *kube) set(resource string, o metav1.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	kind := "ADDED"
	if x.objects[resource][o.GetName()] != nil {
		kind = "MODIFIED"
	}
	x.objects[resource][o.GetName()] = o
	x.tell(resource, kind, o)
}

func (x *kube) remove(resource, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.objects[resource][name]
	delete(x.objects[resource], name)
	x.tell(resource, "DELETED", o)
}

// tell notes an event; x.mu is held.
func (x *kube) tell(resource, kind string, o metav1.Object) {
	x.version++
	o.SetResourceVersion(fmt.Sprint(x.version))
	text, err := json.Marshal(o)
	if err != nil {
		x.t.Error(err)
	}
	x.events = append(x.events, event{resource, kind, x.version, text})
	close(x.changed)
	x.changed = make(chan struct{})
}

// show has a resource listed from now on, or not.
func (x *kube) show(resource string, listed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hidden[resource] = !listed
}

func (x *kube) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	resource := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	q := req.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.hidden[resource]:
		w.WriteHeader(http.StatusServiceUnavailable)
	case resource == "endpoints" &&
		!strings.HasSuffix(req.URL.Path, "/namespaces/"+contract.ManagerNamespace+"/endpoints"):
		x.t.Errorf("asked for %s", req.URL)
		w.WriteHeader(http.StatusForbidden)
	case q.Get("watch") == "":
		list := map[string]any{"apiVersion": "v1", "kind": "NodeList"}
		if resource == "endpoints" {
			list = map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList"}
		}
		if resource == "servicecidrs" {
			list = map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDRList"}
		}
		items := []metav1.Object{}
		for _, o := range x.objects[resource] {
			items = append(items, o)
		}
		list["items"], list["metadata"] = items, map[string]string{"resourceVersion": fmt.Sprint(x.version)}
		_ = json.NewEncoder(w).Encode(list)
	case q.Get("sendInitialEvents") != "": // not here: it lists
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		})
	default:
		x.watch(w, req, resource, q.Get("resourceVersion"))
	}
}

// watch sends events behind a version; x.mu is held.
func (x *kube) watch(w http.ResponseWriter, req *http.Request, resource, behind string) {
	var version int
	_, _ = fmt.Sscan(behind, &version)
	for req.Context().Err() == nil {
		for _, e := range x.events {
			if e.version > version && e.resource == resource {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": e.kind, "object": e.object})
			}
		}
		version = x.version
		_ = http.NewResponseController(w).Flush()
		changed := x.changed
		x.mu.Unlock()
		select {
		case <-changed:
		case <-req.Context().Done():
		}
		x.mu.Lock()
	}
}

// rules is an authorizer that notes what it is asked.
type rules struct {
	mu     sync.Mutex
	asked  []string        // "<user> <verb> <path>"
	denied map[string]bool // of these
	err    error
}

func (x *rules) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	text := a.GetUser().GetName() + " " + a.GetVerb() + " " + a.GetPath()
	x.asked = append(x.asked, text)
	switch {
	case x.err != nil:
		return authorizer.DecisionNoOpinion, "", x.err
	case a.IsResourceRequest() || x.denied[text]:
		return authorizer.DecisionNoOpinion, "", nil
	}
	return authorizer.DecisionAllow, "", nil
}

func (x *rules) deny(text string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.denied[text], x.err = true, err
}

// last are what was asked since the last call.
func (x *rules) last() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.asked
	x.asked = nil
	return all
}

// bed is a gate whose callers say who they are by where they call from.
type bed struct {
	*httptest.Server
	t     testing.TB
	kube  *kube
	way   *wayIn
	rules *rules
	clock *clocktesting.FakeClock

	mu    sync.Mutex
	users map[string]string // by the address of the caller
}

// newBed is a gate that knows the node edge-1 of the pool harbour, edge-2 of the pool mill, and spec.reach of harbour.
func newBed(t testing.TB) *bed {
	t.Helper()
	b := &bed{
		t: t, kube: newKube(t), rules: &rules{denied: map[string]bool{}}, users: map[string]string{},
		clock: clocktesting.NewFakeClock(time.Now()),
	}
	b.kube.set("nodes", nodeOf("harbour", "edge-1", "InternalIP 10.0.0.7"))
	b.kube.set("nodes", nodeOf("mill", "edge-2", "InternalIP 10.0.0.8"))
	b.kube.set("endpoints", toldOf("leader-hub-harbour", "10.244.0.0/16:8080"))
	var err error
	b.way, err = newWayIn(wayInConfig{
		Cluster: &rest.Config{Host: b.kube.URL}, Port: port, Clock: b.clock, Logger: slog.New(slog.DiscardHandler),
	})
	check(t, err)
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "next") })
	b.Server = httptest.NewServer(b.way.Around(next, authorizer.AuthorizerFunc(b.rules.Authorize), b.filters))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.way.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		b.Close()
	})
	testkit.Until(t, patience, "nodes to be known", func() bool {
		in, err := b.way.places.of("edge-1")
		return err == nil && in.Pool != ""
	})
	return b
}

// filters do as those of the generic server: they know who calls, and ask whether he may.
func (b *bed) filters(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b.mu.Lock()
		name := b.users[req.RemoteAddr]
		b.mu.Unlock()
		if name == "" {
			inner.ServeHTTP(w, req)
			return
		}
		u := &user.DefaultInfo{Name: name}
		may, _, _ := b.rules.Authorize(req.Context(), authorizer.AttributesRecord{
			User: u, Verb: strings.ToLower(req.Method), Path: req.URL.Path,
		})
		if may != authorizer.DecisionAllow {
			http.Error(w, "forbidden by the filters", http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, req.WithContext(genericrequest.WithUser(req.Context(), u)))
	})
}

// as connects as a user; "": as nobody.
func (b *bed) as(name string) net.Conn {
	b.t.Helper()
	c, err := (&net.Dialer{}).DialContext(b.t.Context(), "tcp", b.Listener.Addr().String())
	check(b.t, err)
	b.mu.Lock()
	b.users[c.LocalAddr().String()] = name
	b.mu.Unlock()
	return c
}

// asks sends the head of a request, and returns the code of the answer and its text, and the connection.
func (b *bed) asks(name, line string) (code int, text string, _ net.Conn) {
	b.t.Helper()
	c := b.as(name)
	b.t.Cleanup(func() { _ = c.Close() })
	_, err := io.WriteString(c, line+" HTTP/1.1\r\nHost: gate\r\nConnection: Upgrade\r\nUpgrade: weir-reverse\r\n\r\n")
	check(b.t, err)
	var head []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); {
		_, err := io.ReadFull(c, one)
		check(b.t, err)
		head = append(head, one...)
	}
	_, err = fmt.Sscanf(string(head), "HTTP/1.1 %d", &code)
	check(b.t, err)
	text = string(head)
	if code != http.StatusOK && code != http.StatusSwitchingProtocols {
		rest, _ := io.ReadAll(io.LimitReader(c, int64(lengthOf(text))))
		text += string(rest)
	}
	return code, text, c
}

func lengthOf(head string) (n int) {
	_, after, _ := strings.Cut(head, "Content-Length: ")
	_, _ = fmt.Sscan(after, &n)
	return n
}

// lead runs the hub of a node of the pool harbour, which finds an echo at each address that it dials.
func (b *bed) lead(node string) {
	b.t.Helper()
	l, err := reverse.NewLeader(reverse.LeaderConfig{
		Gate: b.Listener.Addr().String(),
		Dial: func(context.Context) (net.Conn, error) { return b.as(contract.HubUserPrefix + "harbour:" + node), nil },
		Reach: func(_ context.Context, name string) (reverse.Reach, error) {
			if name == "edge-1" {
				return reverse.Reach{Nodes: []netip.Addr{netip.MustParseAddr("10.0.0.7")}}, nil
			}
			return reverse.Reach{}, nil
		},
		Connect: func(context.Context, netip.AddrPort) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				_, _ = io.Copy(far, far)
			}()
			return near, nil
		},
	})
	check(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.Run(ctx)
	}()
	b.t.Cleanup(func() {
		cancel()
		<-ended
	})
	testkit.Until(b.t, patience, "the way through "+node, func() bool { return slices.Contains(b.leads(), node) })
}

// leads are the nodes whose hubs have a connection.
func (b *bed) leads() (all []string) {
	for _, w := range b.way.ways.State().Ways {
		all = append(all, w.Node)
	}
	return all
}
