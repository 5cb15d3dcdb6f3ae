package beat

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// rollCloud is a cloud with the Leases of two nodes and of their pool, and a weir-manager.
type rollCloud struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	began   time.Time
	key     *pki.Authority
	account *heartbeat.Account // nil: weir-manager is dead
	refuses int                // a code for reports; 0: they are taken
	papers  string             // the sum of documents in receipts
	cut     bool               // nothing reaches it
	leases  map[string]*coordinationv1.Lease
	version int
	direct  map[string]int
	calm    map[string]int // of those, the ones that may go over a connection that is open
	bodies  []string
}

func (*rollCloud) Able() bool      { return true }
func (*rollCloud) Reachable() bool { return true }

// wrote gives a Lease its next version.
func (c *rollCloud) wrote(l *coordinationv1.Lease) {
	c.version++
	l.ResourceVersion = strconv.Itoa(c.version)
}

func (c *rollCloud) Send(_ context.Context, m uplink.Message) (*uplink.Answer, error) {
	name := m.URI[strings.LastIndexByte(m.URI, '/')+1:]
	name, _, _ = strings.Cut(name, "?")
	l := c.leases[name]
	ours := strings.HasPrefix(name, contract.HeardPrefix)
	c.bodies = append(c.bodies, string(m.Body))
	switch {
	case c.cut:
		return nil, uplink.ErrNoServer
	case ours && c.refuses != 0:
		return &uplink.Answer{Code: c.refuses, Header: http.Header{}}, nil
	case m.Method == http.MethodPut:
		put, err := lease.Decode(m.Header.Get("Content-Type"), m.Body)
		if err != nil {
			return nil, err
		}
		c.leases[name], l = put, put
	default:
		var version struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := json.Unmarshal(m.Body, &version); err != nil {
			return nil, err
		}
		if v := version.Metadata.ResourceVersion; v != "" && v != l.ResourceVersion {
			c.t.Errorf("%s is written at version %s, and is at %s", name, v, l.ResourceVersion)
		}
		before := lease.RenewTime(l)
		if err := json.Unmarshal(m.Body, l); err != nil {
			return nil, err
		}
		for k, v := range l.Annotations { // of a null encoding/json makes an empty one
			if v == "" {
				delete(l.Annotations, k)
			}
		}
		if cleared := strings.Contains(string(m.Body), `"managedFields":[{}]`); cleared {
			l.ManagedFields = nil
		}
		if !ours && !lease.RenewTime(l).After(before) {
			c.t.Errorf("%s does not grow: %v after %v", name, lease.RenewTime(l), before)
		}
	}
	c.wrote(l)
	if !ours {
		if c.direct[name]++; m.Calm {
			c.calm[name]++
		}
	}
	a := &uplink.Answer{Code: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf}}}
	raw, err := (&metav1.PartialObjectMetadata{ObjectMeta: l.ObjectMeta}).Marshal()
	if err != nil {
		return nil, err
	}
	kind := wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	a.Body = wire.Envelope(kind, raw)
	if m.Method == http.MethodPut {
		if _, a.Body, err = lease.Encode(l, runtime.ContentTypeProtobuf); err != nil {
			return nil, err
		}
	}
	if ours && c.account != nil {
		c.judge(l)
	}
	return a, nil
}

// judge is weir-manager.
func (c *rollCloud) judge(l *coordinationv1.Lease) {
	r, err := heartbeat.ParseReport(*l.Spec.HolderIdentity)
	if err != nil {
		c.t.Fatal(err)
	}
	now, renewed := c.clock.Since(c.began), make([]bool, len(r.Entries))
	for i, v := range c.account.Judge(now, r, func(node string) (heartbeat.Anchor, bool) {
		a, err := heartbeat.ParseAnchor(c.leases[node].Annotations[contract.AnchorAnnotation])
		return a, err == nil
	}) {
		if renewed[i] = v == heartbeat.Renew; renewed[i] {
			of := c.leases[r.Entries[i].Node]
			lease.SetRenewTime(of, heartbeat.Onward(lease.RenewTime(of), 10*time.Second))
			c.wrote(of)
		}
	}
	receipt := c.account.Receipt(now, c.clock.Now(), r, renewed)
	receipt.Documents = c.papers
	text, err := receipt.Sign(c.key, "shop")
	if err != nil {
		c.t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, contract.ReceiptAnnotation, text)
}

// localDesk is a desk without a network.
type localDesk struct{ *exchange.RollCall }

func (d localDesk) HandIn(_ context.Context, e heartbeat.Entry) (heartbeat.Notice, error) {
	return d.RollCall.HandIn(e)
}

func (d localDesk) Exchange(_ context.Context, n heartbeat.Notice) []heartbeat.Entry {
	all, _ := d.RollCall.Exchange(n)
	return all
}

// confirmation is what a hub was told of the documents of its pool, and how old that was.
type confirmation struct {
	documents string
	age       time.Duration
}

// rollBed is a pool of two hubs.
type rollBed struct {
	confirmed map[string][]confirmation // by node
	*rollCloud
	hubs     map[string]*Beats
	kubelets map[string]*coordinationv1.Lease // as kubelets have theirs
	reporter *Reporter
	caller   heartbeat.Caller
	outcomes map[string]int
	reports  []string
	digest   digest.Digest
}

func newRollBed(t *testing.T) *rollBed {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	key, err := pki.NewPoolAuthority("shop", clk.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := &rollCloud{
		t: t, clock: clk, began: clk.Now(), key: key, account: heartbeat.NewAccount(0), direct: map[string]int{},
		calm: map[string]int{},
		leases: map[string]*coordinationv1.Lease{
			"weir-heard-shop": {ObjectMeta: metav1.ObjectMeta{
				Namespace: contract.KeyNamespace, Name: "weir-heard-shop",
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "weir-manager"}},
			}},
		},
	}
	b := &rollBed{
		confirmed: map[string][]confirmation{}, rollCloud: c, hubs: map[string]*Beats{},
		kubelets: map[string]*coordinationv1.Lease{}, outcomes: map[string]int{},
	}
	d, log := localDesk{&exchange.RollCall{}}, slog.New(slog.DiscardHandler)
	trusted := func() []*x509.Certificate { return []*x509.Certificate{key.Cert()} }
	for _, node := range []string{"edge-1", "edge-2"} {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: contract.NodeLeaseNamespace}}
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr.To(node), ptr.To[int32](40)
		l.ResourceVersion = "0"
		c.leases[node], b.kubelets[node] = l.DeepCopy(), l
		b.hubs[node] = NewBeats(BeatsConfig{
			Node: node, Cloud: c, Pool: Alone{}, Clock: clk, Logger: log,
			Count: func(outcome string) { b.outcomes[outcome]++ },
			Roll: NewRollCall(RollCallConfig{
				Node: node, Pool: "shop", Desk: d, Trusted: trusted, Clock: clk, Logger: log,
				Confirm: func(documents string, after time.Time) {
					b.confirmed[node] = append(b.confirmed[node], confirmation{documents, clk.Since(after)})
				},
			}),
			Tell:  func() digest.Digest { return b.digest },
			Reads: func() digest.Reads { return digest.Reads{} },
		})
	}
	b.reporter = NewReporter(ReporterConfig{
		Pool: "shop", Cloud: c, Desks: d, Trusted: trusted, Period: b.hubs["edge-1"].Roll.Period, Clock: clk, Logger: log,
		Count: func(outcome string) { b.reports = append(b.reports, outcome) },
	})
	return b
}

// beat is one heartbeat of a kubelet.
func (b *rollBed) beat(node string) {
	b.t.Helper()
	l := b.kubelets[node]
	lease.SetRenewTime(l, b.clock.Now())
	_, body, err := lease.Encode(l, runtime.ContentTypeProtobuf)
	if err != nil {
		b.t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPut, lease.Path+"/"+node+"?timeout=10s", strings.NewReader(string(body)))
	req.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json")
	w := httptest.NewRecorder()
	answers := answer.NewStalls(b.clock, func() {}, &answer.Served{}, slog.New(slog.DiscardHandler))
	b.hubs[node].Serve(answers.Record(w), req, &request.Request{Verb: "update", Name: node})
	got, err := lease.Decode(w.Header().Get("Content-Type"), w.Body.Bytes())
	if err != nil || w.Code != http.StatusOK || !lease.RenewTime(got).Equal(lease.RenewTime(l)) ||
		*got.Spec.LeaseDurationSeconds != 40 {
		b.t.Fatalf("%s was answered %d, %v, %v", node, w.Code, err, got)
	}
	b.kubelets[node] = got
}

// rounds are ten seconds each: a report, and a heartbeat of each node.
func (b *rollBed) rounds(n int, nodes ...string) {
	b.t.Helper()
	for range n {
		if b.caller.Due() <= b.reporter.now() {
			b.reporter.report(b.t.Context(), &b.caller)
		}
		for _, node := range nodes {
			b.clock.Step(time.Second)
			b.beat(node)
		}
		b.clock.Step(10*time.Second - time.Duration(len(nodes))*time.Second)
	}
}

// TestRollCall: heartbeats of a quiet pool go to the cloud in reports, and by themselves once in half an hour, without
// a version, whoever wrote the Lease meanwhile. When nobody answers reports, all go by themselves again.
func TestRollCall(t *testing.T) {
	b := newRollBed(t)
	b.rounds(10, "edge-1", "edge-2")
	clear(b.direct)
	clear(b.calm)
	clear(b.outcomes)
	b.rounds(178, "edge-1", "edge-2")
	if got := fmt.Sprint(b.direct, b.calm, b.outcomes); got !=
		"map[edge-1:1 edge-2:1] map[edge-1:1 edge-2:1] map[passed:2 pooled:354]" {
		t.Errorf("in 178 periods: %s", got)
	}
	for node, l := range b.leases {
		if age := b.clock.Since(lease.RenewTime(l)); strings.HasPrefix(node, "edge") && (age < 0 || age > 25*time.Second) {
			t.Errorf("the renewTime of %s is %v old", node, age)
		}
	}
	if r := b.hubs["edge-2"].Status(); r.Pooled.IsZero() || r.CutOff || b.clock.Since(r.Pooled) > heartbeat.Lapse {
		t.Errorf("status: %+v", r)
	}
	managed := 0
	for _, body := range b.bodies {
		if strings.Contains(body, "holderIdentity") && strings.Contains(body, "managedFields") {
			managed++
		}
	}
	if managed != 1 || len(b.leases["weir-heard-shop"].ManagedFields) > 0 {
		t.Errorf("%d reports take the managedFields away: %v", managed, b.leases["weir-heard-shop"].ManagedFields)
	}
	b.account = nil // weir-manager dies
	b.rounds(3, "edge-1", "edge-2")
	clear(b.direct)
	clear(b.calm)
	b.rounds(10, "edge-1", "edge-2")
	if n := b.direct["edge-1"]; n < 9 || len(b.calm) > 0 {
		t.Errorf("weir-manager is dead for 13 periods, and %d heartbeats went by themselves, calm ones: %v", n, b.calm)
	}
	sent := len(b.reports)
	b.rounds(30, "edge-1", "edge-2")
	if n := len(b.reports) - sent; n > 8 {
		t.Errorf("%d reports in five minutes in which nobody answers", n)
	}
	b.account = heartbeat.NewAccount(0)
	b.rounds(40, "edge-1", "edge-2")
	clear(b.direct)
	b.rounds(20, "edge-1", "edge-2")
	if n := b.direct["edge-1"]; n > 2 {
		t.Errorf("weir-manager is back, and %d of 20 heartbeats went by themselves", n)
	}
}

// TestConfirmed: each receipt that says that a node was renewed says what documents the pool has, as of that heartbeat.
// A leader that shows receipts of before again confirms nothing, and one that drops the node neither.
func TestConfirmed(t *testing.T) {
	b := newRollBed(t)
	b.papers = "AAAAAAAA"
	b.rounds(10, "edge-1", "edge-2")
	got := b.confirmed["edge-2"]
	if len(got) < 5 {
		t.Fatalf("%d confirmations in ten periods", len(got))
	}
	for _, c := range got {
		if c.documents != "AAAAAAAA" || c.age < 0 || c.age > 30*time.Second {
			t.Errorf("confirmed: %+v", c)
		}
	}
	call := b.hubs["edge-2"].Roll
	old := call.heard
	b.papers = "BBBBBBBB"
	b.rounds(5, "edge-1", "edge-2")
	newest := call.heard
	if got := b.confirmed["edge-2"]; got[len(got)-1].documents != "BBBBBBBB" {
		t.Errorf("confirmed last: %+v", got[len(got)-1])
	}
	n := len(b.confirmed["edge-2"])
	for range 3 {
		call.hear(old)
		call.hear(newest)
	}
	if got := b.confirmed["edge-2"][n:]; len(got) > 0 {
		t.Errorf("receipts of before confirm: %+v", got)
	}
	b.rounds(10, "edge-1") // edge-2 is not in these reports, and hears their receipts
	call.hear(b.hubs["edge-1"].Roll.heard)
	if got := b.confirmed["edge-2"][n:]; len(got) > 1 {
		t.Errorf("receipts for others confirm: %+v", got)
	}
}

// TestRollCallTellsMore: a heartbeat that has more to say than that the node lives goes by itself, and so does the next
// one, which takes that away.
func TestRollCallTellsMore(t *testing.T) {
	b := newRollBed(t)
	b.rounds(10, "edge-1", "edge-2")
	clear(b.direct)
	clear(b.calm)
	b.digest = digest.Digest{Version: "v2", Role: digest.Follower, Started: b.clock.Now()}
	b.rounds(1, "edge-1")
	if b.direct["edge-1"] != 1 || b.leases["edge-1"].Annotations[contract.DigestAnnotation] == "" {
		t.Errorf("a digest went by itself %d times: %v", b.direct["edge-1"], b.leases["edge-1"].Annotations)
	}
	b.rounds(1, "edge-1")
	if b.direct["edge-1"] != 2 || b.leases["edge-1"].Annotations[contract.DigestAnnotation] != "" {
		t.Errorf("the next heartbeat: %d, %v", b.direct["edge-1"], b.leases["edge-1"].Annotations)
	}
	if n := b.calm["edge-1"]; n != 2 {
		t.Errorf("the pool brings this node's heartbeats to the cloud, and %d of 2 go over the connection that is open", n)
	}
	b.kubelets["edge-2"].Spec.LeaseDurationSeconds = ptr.To[int32](40)
	b.kubelets["edge-2"].Labels = map[string]string{"a": "b"}
	b.beat("edge-2")
	if b.leases["edge-2"].Labels["a"] != "b" {
		t.Error("a label of the kubelet does not reach the cloud")
	}
}

// TestNobodyTakesReports: a leader whose cloud has no Lease for its pool asks rarely.
func TestNobodyTakesReports(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusNotFound} {
		b := newRollBed(t)
		b.refuses = code
		b.rounds(180, "edge-1")
		if n := len(b.reports); n > 6 || b.reports[0] != "refused" {
			t.Errorf("%d: %d reports in half an hour: %q", code, n, b.reports)
		}
		if b.direct["edge-1"] != 180 {
			t.Errorf("%d of 180 heartbeats reached the cloud", b.direct["edge-1"])
		}
	}
}

// TestForgedReceipt: what no authority of the pool has signed covers nobody.
func TestForgedReceipt(t *testing.T) {
	b := newRollBed(t)
	b.rounds(10, "edge-1", "edge-2")
	other, err := pki.NewPoolAuthority("shop", b.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	b.key = other
	clear(b.direct)
	b.rounds(8, "edge-1", "edge-2")
	if b.direct["edge-2"] < 4 {
		t.Errorf("%d of 8 heartbeats went by themselves", b.direct["edge-2"])
	}
}
