package beat

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// briefCloud has one Lease, and answers a patch by metadata as kube-apiserver does, or by a code.
type briefCloud struct {
	t       *testing.T
	lease   *coordinationv1.Lease
	version int
	refuses int // a code for patches; 0: they are taken
	sent    []uplink.Message
	tells   []lease.Along // what goes along with heartbeats
	stood   []lease.Along // on the Lease after each that was taken
}

// along is what goes along with a heartbeat.
func (c *briefCloud) along(beat int) (a lease.Along) {
	if beat < len(c.tells) {
		a = c.tells[beat]
	}
	return a
}

func (*briefCloud) Able() bool      { return true }
func (*briefCloud) Reachable() bool { return true }

func (c *briefCloud) Send(_ context.Context, m uplink.Message) (*uplink.Answer, error) {
	c.sent = append(c.sent, m)
	protobuf := http.Header{"Content-Type": {runtime.ContentTypeProtobuf}}
	switch {
	case m.Method == http.MethodPut:
		l, err := lease.Decode(m.Header.Get("Content-Type"), m.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		c.lease = l
	case c.refuses != 0:
		return &uplink.Answer{Code: c.refuses, Header: protobuf}, nil
	default:
		cleared := bytes.Contains(m.Body, []byte(`"managedFields":[{}]`))
		if err := json.Unmarshal(m.Body, c.lease); err != nil {
			c.t.Fatal(err)
		}
		if cleared {
			c.lease.ManagedFields = nil
		}
	}
	c.stood = append(c.stood, lease.AlongOf(c.lease))
	c.version++
	c.lease.ResourceVersion = strconv.Itoa(100 + c.version)
	a := &uplink.Answer{Code: http.StatusOK, Header: protobuf}
	if m.Method == http.MethodPut {
		_, body, err := lease.Encode(c.lease, runtime.ContentTypeProtobuf)
		a.Body = body
		return a, err
	}
	raw, err := (&metav1.PartialObjectMetadata{ObjectMeta: c.lease.ObjectMeta}).Marshal()
	kind := wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	a.Body = wire.Envelope(kind, raw)
	return a, err
}

// briefly sends heartbeats of a kubelet, each based on the answer to the one before, and returns the last answer.
func briefly(t *testing.T, c *briefCloud, beats int, change func(*coordinationv1.Lease)) *coordinationv1.Lease {
	t.Helper()
	b := NewBeats(BeatsConfig{
		Node: "edge-1", Cloud: c, Pool: Alone{}, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
		Count: func(string) {},
	})
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: "edge-1", Namespace: contract.NodeLeaseNamespace, ResourceVersion: "0", UID: "u",
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")}}},
	}}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr.To("edge-1"), ptr.To[int32](40)
	c.lease = l.DeepCopy()
	for i := range beats {
		lease.SetRenewTime(l, time.Date(2026, 1, 1, 0, 0, 10*i, 0, time.UTC))
		if i > 0 && change != nil {
			change(l)
		}
		want := lease.RenewTime(l)
		_, body, err := lease.Encode(l, runtime.ContentTypeProtobuf)
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequest(http.MethodPut, lease.Path+"/edge-1?timeout=10s", nil)
		req.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
		req.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json")
		beat, ok := b.written(req, body)
		if !ok {
			t.Fatal("it is no heartbeat")
		}
		a, err := b.send(req, body, beat, b.held, c.along(i), false)
		if err != nil {
			t.Fatal(err)
		}
		b.took(beat, a)
		if a.Code != http.StatusOK {
			if a.Code != c.refuses {
				t.Fatalf("heartbeat %d was answered %d", i, a.Code)
			}
			return nil
		}
		if l, err = lease.Decode(a.Header.Get("Content-Type"), a.Body); err != nil {
			t.Fatal(err)
		}
		if !lease.RenewTime(l).Equal(want) || !lease.RenewTime(c.lease).Equal(want) {
			t.Fatalf("heartbeat %d of %v: the kubelet reads %v, the cloud has %v", i, want, lease.RenewTime(l),
				lease.RenewTime(c.lease))
		}
	}
	return l
}

// TestBriefHeartbeat: a heartbeat goes as a patch of its renewTime once the hub knows what the cloud holds, and the
// kubelet reads the whole Lease.
func TestBriefHeartbeat(t *testing.T) {
	c := &briefCloud{t: t}
	l := briefly(t, c, 4, nil)
	if l.ResourceVersion != "104" || l.UID != "u" || *l.Spec.HolderIdentity != "edge-1" || len(l.ManagedFields) != 0 {
		t.Errorf("the kubelet reads %+v", l)
	}
	for i, m := range c.sent {
		if brief := m.Method == http.MethodPatch; brief != (i > 0) {
			t.Errorf("heartbeat %d is a %s", i, m.Method)
		} else if !brief {
			continue
		}
		if m.Header.Get("Content-Type") != string(types.MergePatchType) || m.Header.Get("Accept") != lease.AcceptMetadata {
			t.Errorf("heartbeat %d: %v", i, m.Header)
		}
		if n := len(m.Body); n > 100 && i > 1 { // the first one takes managedFields away
			t.Errorf("heartbeat %d has %d bytes: %s", i, n, m.Body)
		}
	}
}

// TestWholeHeartbeat: what changes more than the renewTime goes as it is, and so do all after a patch was refused. That
// somebody else wrote the Lease is the kubelet's business.
func TestWholeHeartbeat(t *testing.T) {
	for name, x := range map[string]struct {
		refuses int
		change  func(*coordinationv1.Lease)
		methods string
	}{
		"duration": {change: func(l *coordinationv1.Lease) { *l.Spec.LeaseDurationSeconds++ }, methods: "PUT PUT PUT "},
		"label": {
			change:  func(l *coordinationv1.Lease) { l.Labels = map[string]string{l.ResourceVersion: ""} },
			methods: "PUT PUT PUT ",
		},
		"no version":  {change: func(l *coordinationv1.Lease) { l.ResourceVersion = "" }, methods: "PUT PUT PUT "},
		"forbidden":   {refuses: http.StatusForbidden, methods: "PUT PATCH PUT PUT "},
		"unknown":     {refuses: http.StatusUnsupportedMediaType, methods: "PUT PATCH PUT PUT "},
		"conflict":    {refuses: http.StatusConflict, methods: "PUT PATCH "},
		"unavailable": {refuses: http.StatusTooManyRequests, methods: "PUT PATCH "},
	} {
		t.Run(name, func(t *testing.T) {
			c := &briefCloud{t: t, refuses: x.refuses}
			briefly(t, c, 3, x.change)
			got := ""
			for _, m := range c.sent {
				got += m.Method + " "
			}
			if got != x.methods {
				t.Errorf("got %s, want %s", got, x.methods)
			}
		})
	}
}

// TestAlong: what is told goes along with one heartbeat, and stands on the Lease until the next one, however that is
// sent.
func TestAlong(t *testing.T) {
	tells := []lease.Along{{Reads: "r1"}, {Digest: "d1"}, {Reads: "r2"}, {}, {}}
	for name, c := range map[string]*briefCloud{
		"briefly": {t: t}, "as a whole": {t: t, refuses: http.StatusForbidden},
	} {
		c.tells = tells
		briefly(t, c, len(tells), nil)
		if !slices.Equal(c.stood, tells) {
			t.Errorf("%s: on the Lease stood %+v, want %+v", name, c.stood, tells)
		}
	}
	const none = `{"openyurt.io/delegate-heartbeat":null,"weir.dev/anchor":null,"weir.dev/digest":null,` +
		`"weir.dev/reads":null}`
	for along, want := range map[lease.Along]string{
		{}: none, {Reads: "r1"}: strings.Replace(none, `reads":null`, `reads":"r1"`, 1),
	} {
		got, err := stripPatch([]byte(`{"metadata":{"annotations":{"weir.dev/reads":"r0"}}}`), time.Unix(0, 0), along)
		if err != nil || !strings.Contains(string(got), `"annotations":`+want) {
			t.Errorf("a patch becomes %s, %v, want %s", got, err, want)
		}
	}
}
