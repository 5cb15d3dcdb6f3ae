package hub

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
)

// testKubelet renews the Lease of a node through its hub, as a kubelet does, when a test says so.
type testKubelet struct {
	b      *bed
	node   string
	client *http.Client
	lease  *coordinationv1.Lease // as it has it
	now    time.Time
}

func (b *bed) kubelet() *testKubelet {
	node := b.config.NodeName
	cert := b.ca.tls("system:node:"+node, "system:nodes")
	return &testKubelet{b: b, node: node, client: b.client(&cert), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// send sends a Lease, or nothing, in protobuf; it returns the Lease of the answer.
func (k *testKubelet) send(method string, l *coordinationv1.Lease) (int, *coordinationv1.Lease) {
	k.b.t.Helper()
	var body []byte
	path := lease.Path
	if method != http.MethodPost {
		path += "/" + k.node
	}
	if l != nil {
		var err error
		_, body, err = lease.Encode(l, runtime.ContentTypeProtobuf)
		check(k.b.t, err)
	}
	resp, answer := do(k.b.t, k.client, method, k.b.url()+path+"?timeout=10s", body,
		"Content-Type", runtime.ContentTypeProtobuf, "Accept", "application/vnd.kubernetes.protobuf,application/json",
		"User-Agent", "kubelet/v1")
	if resp.StatusCode > 299 {
		return resp.StatusCode, nil
	}
	out, err := lease.Decode(resp.Header.Get("Content-Type"), []byte(answer))
	check(k.b.t, err)
	return resp.StatusCode, out
}

// beat renews once as client-go's lease controller: from what it has, else from what it reads or creates. It tells the
// codes that it saw.
func (k *testKubelet) beat() (codes []int) {
	k.b.t.Helper()
	k.now = k.now.Add(10 * time.Second)
	for range 5 {
		if k.lease == nil {
			code, l := k.send(http.MethodGet, nil)
			codes = append(codes, code)
			if code == http.StatusNotFound {
				l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: contract.NodeLeaseNamespace, Name: k.node}}
				l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &k.node, ptr.To[int32](40)
				lease.SetRenewTime(l, k.now)
				code, k.lease = k.send(http.MethodPost, l)
				return append(codes, code)
			}
			k.lease = l
			continue
		}
		l := k.lease.DeepCopy()
		lease.SetRenewTime(l, k.now)
		var code int
		code, k.lease = k.send(http.MethodPut, l)
		if codes = append(codes, code); code == http.StatusOK {
			return codes
		}
	}
	return codes
}

func (k *testKubelet) beats(want ...int) {
	k.b.t.Helper()
	if got := k.beat(); !slices.Equal(got, want) {
		k.b.t.Fatalf("a heartbeat was answered with %v, want %v", got, want)
	}
}

// mirrored waits until the coordinator has the heartbeat that was sent last.
func (p *poolBed) mirrored(k *testKubelet, delegated bool) {
	p.t.Helper()
	eventually(p.t, "the heartbeat of "+k.node+" in the coordinator, delegated "+strconv.FormatBool(delegated),
		func() bool {
			l := p.coordinator.leases.get(k.node)
			return l != nil && lease.RenewTime(l).Sub(k.now).Abs() < time.Millisecond &&
				lease.IsDelegated(l) == delegated
		})
}

// linked puts a link between a hub and the cloud.
func (p *poolBed) linked(node string) *cut {
	link := newCut(p.t, p.clouds[0].server.Listener.Addr().String())
	p.hubs[node].config.CloudServers = []string{link.url()}
	return link
}

// TestHeartbeat: what the kubelet sends arrives in the cloud as it came, over connections of its class, and in the
// coordinator; what it has read of a delegation does not go back, and a clock that was set back costs no growth.
func TestHeartbeat(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	p.start("edge-1")
	b, cloud := p.hubs["edge-1"], p.clouds[0].leases
	k := b.kubelet()
	k.beats(http.StatusNotFound, http.StatusCreated) // made
	p.mirrored(k, false)
	eventually(t, "the coordinator's word for it", func() bool { return !b.hub.Status().Heartbeat.Mirrored.IsZero() })
	k.beats(http.StatusOK)
	l := cloud.get("edge-1")
	if !lease.RenewTime(l).Equal(k.now) || *l.Spec.HolderIdentity != "edge-1" || lease.IsDelegated(l) {
		t.Errorf("in the cloud: %+v", l)
	}
	if w := cloud.written(); w[len(w)-1].user != "system:node:edge-1" {
		t.Errorf("renewed by %s", w[len(w)-1].user)
	}
	if s := b.hub.Status(); s.Bytes[uplink.ClassHeartbeat].Connections != 1 || s.Heartbeat.Count != 2 ||
		s.Heartbeat.CutOff {
		t.Errorf("status: %+v, bytes %+v", s.Heartbeat, s.Bytes[uplink.ClassHeartbeat])
	}

	// A leader forwarded it, a minute ahead.
	forwarded := l.DeepCopy()
	lease.SetDelegated(forwarded, true)
	lease.SetRenewTime(forwarded, k.now.Add(time.Minute))
	_, err := cloud.Update(t.Context(), "weir:forwarder:pool-a", forwarded)
	check(t, err)
	k.beats(http.StatusConflict, http.StatusOK, http.StatusOK)
	l = cloud.get("edge-1")
	if lease.IsDelegated(l) || !lease.RenewTime(l).Equal(k.now.Add(50*time.Second+time.Microsecond)) {
		t.Errorf("returned: annotations %v, renewed %v at %v", l.Annotations, lease.RenewTime(l), k.now)
	}
	if n := len(p.coordinator.leases.written()); n != 1 {
		t.Errorf("while the cloud takes its heartbeats, %d were mirrored, want the first one", n)
	}

	// Any client may patch, or use JSON.
	code, _ := do(t, k.client, http.MethodPatch, b.url()+lease.Path+"/edge-1",
		[]byte(`{"spec":{"renewTime":"2027-01-01T00:00:00.000000Z"}}`),
		"Content-Type", "application/merge-patch+json", "Accept", "application/json")
	if l := cloud.get("edge-1"); code.StatusCode != http.StatusOK || lease.RenewTime(l).Year() != 2027 {
		t.Errorf("patched: %d, %v", code.StatusCode, lease.RenewTime(l))
	}
}

// TestHeartbeatCutOff: without the cloud the hub answers its kubelet, and says so in the coordinator, which it
// withdraws before anything reaches the cloud again.
func TestHeartbeatCutOff(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	link := p.linked("edge-1")
	b := p.hubs["edge-1"]
	// Nothing is forwarded: a hub that leads as soon as the cloud is back may forward the last heartbeat before its
	// kubelet sends the next one, which then conflicts.
	p.clouds[0].signer.signs(nil, nil)
	p.start("edge-1")
	k := b.kubelet()
	k.beats(http.StatusNotFound, http.StatusCreated)
	p.mirrored(k, false)

	link.set(true)
	k.beats(http.StatusOK)
	p.mirrored(k, true)
	k.beats(http.StatusOK)
	p.mirrored(k, true)
	if s := b.hub.Status().Heartbeat; !s.CutOff || s.Count != 3 {
		t.Errorf("status: %+v", s)
	}
	code, l := k.send(http.MethodGet, nil)
	if code != http.StatusOK || lease.IsDelegated(l) || !lease.RenewTime(l).Equal(k.now) {
		t.Errorf("read without the cloud: %d %+v", code, l)
	}
	patch := []byte(`{"spec":{"renewTime":"2027-01-01T00:00:00.000000Z"}}`)
	resp, _ := do(t, k.client, http.MethodPatch, b.url()+lease.Path+"/edge-1", patch, "Content-Type",
		"application/merge-patch+json", "Accept", "application/json")
	if resp.StatusCode != http.StatusOK {
		t.Errorf("patched without the cloud: %s", resp.Status)
	}

	link.set(false)
	eventually(t, "the cloud to be healthy", b.hub.cloud.Healthy)
	before := len(p.clouds[0].leases.written())
	k.beats(http.StatusOK)
	p.mirrored(k, false)
	in := p.clouds[0].leases.written()[before:]
	var out, last leaseWrite
	for _, w := range p.coordinator.leases.written() {
		if w.order < in[0].order {
			last = w
		}
		if !w.delegated && w.order < in[0].order {
			out = w
		}
	}
	if len(in) != 1 || in[0].delegated || last.delegated || out.order == 0 ||
		out.lease.Spec.RenewTime.Equal(in[0].lease.Spec.RenewTime) {
		t.Errorf("what it had said was not taken back before: %+v, %+v", out, in)
	}
	if b.hub.Status().Heartbeat.CutOff {
		t.Error("it is still cut off")
	}
}

// TestHeartbeatStartsCutOff: hub and kubelet both start without the cloud; the kubelet gets what its heartbeats need.
func TestHeartbeatStartsCutOff(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	link := p.linked("edge-1")
	link.set(true)
	p.start("edge-1")
	k := p.hubs["edge-1"].kubelet()
	k.beats(http.StatusNotFound, http.StatusCreated)
	p.mirrored(k, true)
	p.stops["edge-1"]()
	p.start("edge-1") // what it held is gone, but not in the coordinator
	k = p.hubs["edge-1"].kubelet()
	k.now = k.now.Add(time.Hour)
	k.beats(http.StatusOK, http.StatusOK)
	p.mirrored(k, true)
	_, err := p.clouds[0].leases.Create(t.Context(), "somebody", k.lease)
	check(t, err)
	link.set(false)
	eventually(t, "the cloud to be healthy", p.hubs["edge-1"].hub.cloud.Healthy)
	k.beats(http.StatusConflict, http.StatusOK, http.StatusOK)
	p.mirrored(k, false)
}

// TestHeartbeatAlone: also without a coordinator, a kubelet does not wait for a cloud that is away.
func TestHeartbeatAlone(t *testing.T) {
	b := newBed(t, 1)
	link := newCut(t, b.clouds[0].server.Listener.Addr().String())
	b.config.CloudServers = []string{link.url()}
	b.start()
	k := b.kubelet()
	k.beats(http.StatusNotFound, http.StatusCreated)
	link.set(true)
	k.beats(http.StatusOK)
	if s := b.hub.Status().Heartbeat; !s.CutOff {
		t.Errorf("status: %+v", s)
	}
}
