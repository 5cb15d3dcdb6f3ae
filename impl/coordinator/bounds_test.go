package coordinator_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/limit"
)

// TestBoundsOfALease: what a hub writes of itself is of a size and a shape, and no manager of an apply makes it grow.
// What a hub writes at the longest names passes.
func TestBoundsOfALease(t *testing.T) {
	const nodeLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	long := strings.Repeat(strings.Repeat("n", 49)+".", 5) + "nnn" // 253 bytes, as a node's name may have
	s := newPool(t).start()
	a := s.hub(long)
	body := func(meta, holder string) string {
		return fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{%s"name":%q},`+
			`"spec":{"holderIdentity":%q,"leaseDurationSeconds":40,"renewTime":"2026-11-26T00:00:00.000000Z"}}`, meta, long,
			holder)
	}
	owner := func(uid string) string {
		return fmt.Sprintf(`"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":%q,"uid":%q}],`, long, uid)
	}
	const marked = `"labels":{"openyurt.io/delegate-heartbeat":"true"},` +
		`"annotations":{"openyurt.io/delegate-heartbeat":"true",` +
		`"weir/pool-address":"[2001:db8:1111:2222:3333:4444:5555:6666]:10269"},`
	code, answer, err := a.do(http.MethodPost, nodeLeases,
		body(owner("0b3c0e6e-1111-4222-8333-444455556666")+marked, long))
	check(t, err)
	if code != http.StatusCreated {
		t.Fatalf("the largest Lease that a hub writes: %d %s", code, answer)
	}
	for _, c := range []struct {
		name, body string
		code       int
	}{
		{"a holder of 321 bytes", body("", long+"_"+strings.Repeat("x", limit.MaxHolder-len(long))), 403},
		{"one of another node", body("", "b"), 403},
		{
			"a mark that is none", body(`"annotations":{"openyurt.io/delegate-heartbeat":"`+strings.Repeat("x", 100)+`"},`,
				long), 403,
		},
		{"an owner with a long UID", body(owner(strings.Repeat("u", 65)), long), 403},
		{"a link-local address", body(`"annotations":{"weir/pool-address":"169.254.169.254:80"},`, long), 403},
		{"more than a request may have", body("", strings.Repeat("x", limit.MaxBody)), 413},
		{"nobody", body("", ""), 200},
		{"the node", body("", long), 200},
		{"a hub of the node", body("", long+"_"+strings.Repeat("x", limit.MaxHolder-len(long)-1)), 200},
	} {
		if code, answer, err := a.do(http.MethodPatch, nodeLeases+"/"+long, c.body, "Content-Type",
			"application/merge-patch+json"); err != nil || code != c.code {
			t.Errorf("%s: %d %.300s, %v; want %d", c.name, code, answer, err, c.code)
		}
	}
	for i := range 30 {
		code, answer, err := a.do(http.MethodPatch, fmt.Sprintf("%s/%s?fieldManager=%s%d&force=true", nodeLeases, long,
			strings.Repeat("m", 100), i), body("", long), "Content-Type", "application/apply-patch+yaml")
		if err != nil || code != http.StatusOK {
			t.Fatalf("apply: %d %.300s, %v", code, answer, err)
		}
		if len(answer) > limit.MaxLease {
			t.Fatalf("after %d managers the Lease has %d bytes", i+1, len(answer))
		}
	}
}

// TestWritesOfACaller: who writes more than one may is told when it may again, and others write on.
func TestWritesOfACaller(t *testing.T) {
	const nodeLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	now := &standing{at: time.Now()}
	p := newPool(t)
	p.config.Clock = now
	s := p.start()
	a, b := s.hub("a"), s.hub("b")
	lease := func(node string) string {
		return fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q},`+
			`"spec":{"holderIdentity":%q}}`, node, node)
	}
	for i := range limit.WriteBurst {
		if code, answer, err := a.do(http.MethodPost, nodeLeases, lease("a")); err != nil ||
			code != http.StatusCreated && code != http.StatusConflict {
			t.Fatalf("write %d: %d %s, %v", i+1, code, answer, err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url.String()+nodeLeases,
		strings.NewReader(lease("a")))
	check(t, err)
	resp, err := a.http.Do(req)
	check(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
	if code, answer, err := a.do(http.MethodGet, nodeLeases, ""); err != nil || code != http.StatusOK {
		t.Errorf("it reads: %d %s, %v", code, answer, err)
	}
	if code, answer, err := b.do(http.MethodPost, nodeLeases, lease("b")); err != nil || code != http.StatusCreated {
		t.Errorf("another one writes: %d %s, %v", code, answer, err)
	}
	now.pass(time.Second / limit.WriteRate)
	for i, want := range []int{http.StatusConflict, http.StatusTooManyRequests} {
		if code, answer, err := a.do(http.MethodPost, nodeLeases, lease("a")); err != nil || code != want {
			t.Errorf("write %d after the time of one: %d %s, %v; want %d", i+1, code, answer, err, want)
		}
	}
}

// standing is the real clock, but for its time: that passes when a test says so.
type standing struct {
	clock.RealClock
	mu sync.Mutex
	at time.Time
}

func (c *standing) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *standing) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *standing) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
