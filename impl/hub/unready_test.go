package hub

import (
	"net/http"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/member"
)

// setReady sets what a cloud answers to GET /readyz.
func (c *fakeCloud) setReady(code int) { c.set(func() { c.ready = code }) }

// probed waits until a cloud was asked some times whether it is ready.
func (c *fakeCloud) probed(b *bed, times int) {
	b.t.Helper()
	count := func() (n int) {
		c.set(func() {
			for _, s := range c.seen {
				if s.path == "/readyz" {
					n++
				}
			}
		})
		return n
	}
	before := count()
	eventually(b.t, "probes", func() bool {
		b.hub.cloud.Ask()
		return count() >= before+times
	})
}

// TestUnready: a kube-apiserver that says that it is not ready, and answers everything else, is not away. Heartbeats,
// passed requests and reads of tokens go on; the status says what the server says of itself. Seen where a KMS plugin or
// one hook of kube-apiserver is down.
func TestUnready(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	p.start("edge-1")
	b, cloud := p.hubs["edge-1"], p.clouds[0]
	eventually(t, "edge-1 to lead", func() bool { return b.hub.Status().Role == "Leader" })
	k := b.kubelet()
	k.beats(http.StatusNotFound, http.StatusCreated)
	cloud.setReady(http.StatusInternalServerError)
	cloud.probed(b, 2*b.config.HeartbeatFailedRetry)
	if s := b.hub.Status(); !s.Cloud[0].Healthy || s.Cloud[0].Unready == "" || s.Role != "Leader" {
		t.Errorf("the cloud is judged %+v, the hub is %s", s.Cloud[0], s.Role)
	}
	for range 3 {
		k.beats(http.StatusOK)
	}
	if s := b.hub.Status().Heartbeat; s.CutOff || s.Count != 4 {
		t.Errorf("heartbeats: %+v", s)
	}
	if l := cloud.leases.get("edge-1"); l == nil || l.Spec.RenewTime.Sub(k.now).Abs() > time.Second {
		t.Errorf("the Lease in the cloud is %+v, want it renewed at %s", l, k.now)
	}
	if resp, body := do(t, b.client(nil), http.MethodPost, b.url()+"/echo/x", []byte("payload"),
		alice...); resp.StatusCode != http.StatusOK {
		t.Errorf("a passed request: %d %s", resp.StatusCode, body)
	}
	if resp, body := get(t, b.client(nil), b.url()+"/api/v1/endpoints", alice...); resp.StatusCode != http.StatusOK {
		t.Errorf("a read: %d %s", resp.StatusCode, body)
	}
	cloud.setReady(http.StatusOK)
	eventually(t, "the hub to see that the cloud is ready",
		func() bool { b.hub.cloud.Ask(); return b.hub.Status().Cloud[0].Unready == "" })
}

// TestServesNothing: a kube-apiserver that answers each request by a server error, as without its etcd, is away.
func TestServesNothing(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	eventually(t, "the cloud to be there", func() bool { return b.hub.cloud.Reach() == member.CloudHere })
	cloud := b.clouds[0]
	cloud.set(func() { cloud.broken = http.StatusInternalServerError })
	eventually(t, "the hub to see that the cloud is away",
		func() bool { b.hub.cloud.Ask(); return b.hub.cloud.Reach() == member.CloudAway })
	cloud.set(func() { cloud.broken = 0 })
	eventually(t, "the hub to see that the cloud is back",
		func() bool { b.hub.cloud.Ask(); return b.hub.cloud.Reach() == member.CloudHere })
}

// TestUnreadyForChoice: of two servers that answer the one is used that is ready; of two that are not, the one that is
// in use.
func TestUnreadyForChoice(t *testing.T) {
	b := newBed(t, 2)
	b.start()
	inUse := func(i int) func() bool {
		return func() bool { b.hub.cloud.Ask(); return b.hub.cloud.Status()[i].InUse }
	}
	eventually(t, "the first server to be used", inUse(0))
	b.clouds[0].setReady(http.StatusInternalServerError)
	eventually(t, "the server that is ready to be used", inUse(1))
	b.clouds[1].setReady(http.StatusInternalServerError)
	b.clouds[1].probed(b, 2*b.config.HeartbeatFailedRetry)
	if s := b.hub.cloud.Status(); !s[1].InUse || !s[1].Healthy {
		t.Errorf("none is ready: %+v", s)
	}
	b.clouds[0].setReady(http.StatusOK)
	eventually(t, "the server that is ready again to be used", inUse(0))
}

// TestReadyzHangs: a kube-apiserver whose /readyz does not answer, since one of its checks waits, and which answers
// everything else, is not away.
func TestReadyzHangs(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	eventually(t, "the cloud to be there", func() bool { return b.hub.cloud.Reach() == member.CloudHere })
	cloud := b.clouds[0]
	cloud.setReady(hangs)
	cloud.probed(b, 2*b.config.HeartbeatFailedRetry)
	if s := b.hub.cloud.Status()[0]; !s.Healthy || s.Unready == "" {
		t.Errorf("the cloud is judged %+v", s)
	}
	cloud.setReady(http.StatusOK)
}
