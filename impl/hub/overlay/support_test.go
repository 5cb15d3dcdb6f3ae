package overlay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bed is a pool with one desk.
type bed struct {
	t         *testing.T
	clock     *testingclock.FakeClock
	authority *pki.Authority
	desk      exchange.Moved
	forge     func(moved.Signed) moved.Signed // what the desk makes of what it gives; nil: nothing
	hubs      map[string]*hub
}

// hub is one of them. It is the way to the desk, too.
type hub struct {
	*Overlay
	bed      *bed
	node     string
	dir      string
	boot     string
	unknown  bool // nothing is known of the cloud yet
	relay    *relay.Relay
	away     bool
	alone    bool // it does not reach the desk
	bare     bool // it has no relay, and clients read from the store
	pods     *relay.Relay
	statuses map[string]string
	known    map[string]string // of statuses, what the cloud has
	since    map[string]time.Time
	version  string            // of its pods; "": those of showed
	showed   map[string]uint64 // versions of the pods that it has
	asked    int               // how often it did
	said     int               // statements that it handed in
	bytes    int               // that went to the desk and came from it, as JSON
	read     struct {
		desk         string
		after        uint64
		begun, whole bool
	}
}

func newBed(t *testing.T, nodes ...string) *bed {
	t.Helper()
	b := &bed{t: t, clock: testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), hubs: map[string]*hub{}}
	b.desk.Clock = b.clock
	var err error
	b.authority, err = pki.NewPoolAuthority("harbour", b.clock.Now())
	check(t, err)
	for _, n := range nodes {
		res, err := relay.ParseResource(slicesOf)
		check(t, err)
		h := &hub{
			bed: b, node: n, dir: t.TempDir(), statuses: map[string]string{}, known: map[string]string{},
			since: map[string]time.Time{}, showed: map[string]uint64{},
		}
		h.relay, err = relay.New(relay.Config{Resource: res, Clock: b.clock, Gather: -1})
		check(t, err)
		check(t, h.relay.Replace(1<<21, []*wire.Object{
			slice(t, "web", 1<<21-1, "a 10.0.0.1"), slice(t, "other", 1<<21-2, "b 10.0.0.2"),
		}))
		b.hubs[n] = h
		h.restart()
	}
	return b
}

// slice is one with one endpoint, "node address", or "node address not" if it is not ready. The pod has the uid of its
// node.
func slice(t testing.TB, name string, version uint64, point string) *wire.Object {
	t.Helper()
	node, address, _ := strings.Cut(point, " ")
	address, _, not := strings.Cut(address, " ")
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: wire.FormatVersion(version)},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{address}, NodeName: &node, TargetRef: &corev1.ObjectReference{Kind: "Pod", UID: types.UID(node)},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(!not), Serving: ptr.To(!not)},
		}},
	}
	raw, err := s.Marshal()
	check(t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(t, err)
	return o
}

// apply has the cloud change a slice, and a hub hear of it.
func (h *hub) apply(o *wire.Object) {
	h.bed.t.Helper()
	ev := &wire.Event{Type: wire.Modified, Object: o, Version: o.Version}
	ev.Frame = wire.AppendProtobufFrame(nil, ev.Type, h.relay.Resource().WireKind(), o.Raw)
	check(h.bed.t, h.relay.Apply(ev))
}

// restart makes another process.
func (h *hub) restart() {
	b := h.bed
	b.t.Helper()
	template, err := pki.Must(pki.Hub).Template(pki.Subject{Pool: "harbour", Node: h.node}, b.clock.Now(), time.Hour)
	check(b.t, err)
	pair, err := b.authority.Issue(template)
	check(b.t, err)
	cert := &tls.Certificate{}
	cert.PrivateKey, err = pki.ParseKey(pair.KeyPEM)
	check(b.t, err)
	for rest := pair.CertPEM; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert.Certificate = append(cert.Certificate, block.Bytes)
	}
	h.Overlay = New(Config{
		Node: h.node, Pool: "harbour", Dir: h.dir, Boot: h.boot, Ways: h, Statuses: h.waiting, Pods: h.atCloud,
		Cert: held{cert},
		Verify: func(chain []*x509.Certificate) error {
			return pki.Must(pki.Hub).Verify(chain, []*x509.Certificate{b.authority.Cert()}, b.clock.Now())
		},
		Away:    func() (bool, context.Context) { return h.away, nil },
		Unknown: func() bool { return h.unknown },
		Relay: func(resource string) *relay.Relay {
			if resource == pods && h.pods != nil {
				return h.pods
			}
			if resource == slicesOf && !h.bare {
				return h.relay
			}
			return nil
		},
		Now: b.clock.Now, Clock: b.clock, Logger: slog.New(slog.DiscardHandler),
	})
	h.Forget()
}

type held struct{ cert *tls.Certificate }

func (h held) Get() *tls.Certificate { return h.cert }

// waiting are the statuses that the cloud does not know, by uid: "address", "address not" of one that is not ready, or
// "address marked" of one that the cloud has made so.
func (h *hub) waiting(yield func(*corev1.Pod, *corev1.PodStatus) bool) {
	for uid, status := range h.statuses {
		if !yield(h.pod(uid, ""), &h.pod(uid, status).Status) {
			return
		}
	}
}

// atCloud are the pods of the node as the cloud has them.
func (h *hub) atCloud(yield func(*corev1.Pod) bool) {
	for uid, status := range h.known {
		if !yield(h.pod(uid, status)) {
			return
		}
	}
}

func (h *hub) pod(uid, status string) *corev1.Pod {
	address, not, _ := strings.Cut(status, " ")
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			UID: types.UID(uid), ResourceVersion: cmp.Or(h.version, wire.FormatVersion(h.showed[uid])),
		},
		Spec:   corev1.PodSpec{NodeName: h.node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address},
	}
	ready := corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(h.since[uid]),
	}
	containers := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}
	switch not {
	case "":
		ready.Status = corev1.ConditionTrue
	case "not":
		containers.Status, ready.Reason = corev1.ConditionFalse, "ContainersNotReady"
	}
	p.Status.Conditions = append(p.Status.Conditions, ready, containers)
	return p
}

// Exchange implements Ways.
func (h *hub) Exchange(_ context.Context, say func(bool) *moved.Signed) (all []moved.Signed, ok bool) {
	if h.asked++; h.alone {
		return nil, false
	}
	ask := exchange.MovedAsk{Desk: h.read.desk, After: h.read.after, Statement: say(h.read.whole || !h.read.begun)}
	if ask.Statement != nil {
		h.said++
	}
	got, err := h.bed.desk.Exchange(h.node, ask)
	check(h.bed.t, err)
	var a exchange.MovedAnswer
	h.sends(ask, &exchange.MovedAsk{})
	h.sends(got, &a)
	h.read.desk, h.read.after, h.read.whole, h.read.begun = a.Desk, a.At, a.Whole, true
	if h.bed.forge != nil {
		for i, s := range a.Statements {
			a.Statements[i] = h.bed.forge(s)
		}
	}
	return a.Statements, true
}

// sends has a message cross the pool.
func (h *hub) sends(message, into any) {
	text, err := json.Marshal(message)
	check(h.bed.t, err)
	h.bytes += len(text)
	check(h.bed.t, json.Unmarshal(text, into))
}

// Behind implements Ways.
func (h *hub) Behind() bool { return h.read.whole }

// Forget implements Ways.
func (h *hub) Forget() { h.read.desk, h.read.after, h.read.whole, h.read.begun = "", 0, false, false }

// passes has time pass, in steps of the loop of all hubs that run.
func (b *bed) passes(d time.Duration, running ...string) {
	b.t.Helper()
	for end := b.clock.Now().Add(d); b.clock.Now().Before(end); b.clock.Step(readEvery) {
		b.steps(running...)
	}
	b.steps(running...)
}

func (b *bed) steps(running ...string) {
	for _, n := range running {
		b.hubs[n].step(b.t.Context())
	}
}

// cut has the cloud be away for all, or not.
func (b *bed) cut(yes bool) {
	for _, h := range b.hubs {
		h.away = yes
	}
}

// shows is what clients of a hub list of a slice: "address state", with * if that is not what the cloud has.
func (h *hub) shows(name string) string {
	h.bed.t.Helper()
	o := h.relay.Object("shop/" + name)
	x := o
	if over := h.Over(h.relay); over != nil {
		x = over.Show(o)
	}
	return told(h.bed.t, x) + map[bool]string{true: "*"}[x != o]
}

func told(t testing.TB, x *wire.Object) string {
	t.Helper()
	var s discoveryv1.EndpointSlice
	if bytes.HasPrefix(x.Raw, []byte("{")) {
		check(t, json.Unmarshal(x.Raw, &s))
	} else {
		check(t, s.Unmarshal(x.Raw))
	}
	if len(s.Endpoints) == 0 {
		return "none"
	}
	e := s.Endpoints[0]
	return e.Addresses[0] + map[bool]string{true: " ready", false: " not ready"}[*e.Conditions.Ready]
}

// want compares what hubs show of web.
func (b *bed) want(what, want string, nodes ...string) {
	b.t.Helper()
	for _, n := range nodes {
		if got := b.hubs[n].shows("web"); got != want {
			b.t.Errorf("%s: %s shows %q, want %q", what, n, got, want)
		}
	}
}

// client has an open watch.
type client struct {
	*wire.EventReader
	leaves func()
}

// watches opens a watch of a client of a hub.
func (h *hub) watches(query string) client {
	t := h.bed.t
	t.Helper()
	srv := httptest.NewServer(&rest.Handler{Source: h.relay, Overlay: h.Over(h.relay)})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		srv.URL+"/apis/discovery.k8s.io/v1/endpointslices?watch=1&"+query, nil)
	check(t, err)
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	resp, err := srv.Client().Do(req)
	check(t, err)
	t.Cleanup(func() { cancel(); resp.Body.Close(); srv.Close() })
	return client{wire.NewEventReader(resp.Body, wire.Protobuf, h.relay.Resource().WireKind()), cancel}
}

// hears compares the next events of a watch: "TYPE name address state", with * if the version is not the cloud's, or
// "BOOKMARK version", "END version", "EOF".
func (h *hub) hears(what string, c client, events ...string) {
	t := h.bed.t
	t.Helper()
	for _, want := range events {
		late := time.AfterFunc(time.Minute, c.leaves)
		ev, err := c.Next()
		late.Stop()
		got := "EOF"
		switch {
		case err != nil:
		case ev.Object == nil && ev.InitialEnd:
			got = fmt.Sprint("END ", ev.Version)
		case ev.Object == nil:
			got = fmt.Sprint("BOOKMARK ", ev.Version)
		default:
			now := h.relay.Object(ev.Object.Key)
			got = ev.Type + " " + ev.Object.Name + " " + told(t, ev.Object)
			if now == nil || now.Version != ev.Version {
				got += "*"
			}
		}
		if got != want {
			t.Fatalf("%s: got %q, want %q", what, got, want)
		}
	}
}

// ends reads a watch to its end. Until then comes what time brings: bookmarks at a version, or none.
func (h *hub) ends(what string, c client, version uint64) {
	t := h.bed.t
	t.Helper()
	for {
		late := time.AfterFunc(time.Minute, c.leaves)
		ev, err := c.Next()
		if !late.Stop() {
			t.Fatalf("%s: the watch does not end", what)
		}
		if err != nil {
			return
		}
		if ev.Object != nil || ev.Version != version {
			t.Fatalf("%s: %s at %d", what, ev.Type, ev.Version)
		}
	}
}
