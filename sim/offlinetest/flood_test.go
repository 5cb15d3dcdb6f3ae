package offlinetest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/revocation"
	"github.com/weir-edge/weir/sim/link"
)

// stretch is how long a flood lasts: the test is run with -stretch 10s for figures.
var stretch = flag.Duration("stretch", 4*time.Second, "how long a flood lasts")

const (
	floodRate   = 2000    // requests a second
	maxQuiet    = 100_000 // bytes a second in quiet times: the other caller's reads of a few objects
	floodUplink = 10_000  // bytes a second beyond those of quiet times
	maxOpened   = 8       // connections to the cloud
	floodAnon   = 2       // times the RssAnon of quiet times
)

// flood is one way in which a pod takes all that it can.
type flood struct {
	name  string
	token string // "": none
	paths []string
	conns bool // by connections, not by requests
}

// TestFlood: while a pod floods its hub the uplink carries little more, the hub takes little more memory, nobody else
// gets an error, the cloud is not taken to be away, and the kubelet's heartbeats pass. Bytes, memory and connections
// are judged as they are beside those of quiet times of the same run. How long others wait is told, not judged: the hub
// needs a third of a processor for such a flood, but the control plane, the callers and whatever else this machine does
// wait for the same ones.
func TestFlood(t *testing.T) {
	stretch := *stretch
	flags := unread()
	flags["log-level"] = "info"
	b := newBed(t, flags)
	b.fill(2, 10)
	b.fillSlices(50, 20)
	victim, pod := b.account("victim"), b.account("flooder")
	const reads, watches = "/api/v1/namespaces/default/configmaps",
		"/apis/discovery.k8s.io/v1/endpointslices?watch=1&timeoutSeconds=5"
	for _, f := range []flood{
		{name: "no credential", paths: []string{"/version", reads, watches}},
		{name: "random tokens", token: "random", paths: []string{"/version", reads, watches}},
		{name: "one bad token", token: "bad", paths: []string{"/version", reads, watches}},
		{name: "own token", token: pod, paths: []string{"/version"}},
		{name: "connections", conns: true},
	} {
		t.Run(f.name, func(t *testing.T) {
			b.restart() // what one flood leaves in memory is not the next one's
			b.here()
			quiet := b.quiet(stretch, victim)
			connections := b.metric("weir_hub_cloud_connections_total", "class", "node")
			loud := b.stretch(stretch, victim, &f)
			opened := b.metric("weir_hub_cloud_connections_total", "class", "node") - connections
			excess := max(0, loud.uplink-quiet.uplink) / loud.took.Seconds()
			t.Logf("quiet: %s", quiet)
			t.Logf("heap %.1f MB in use, %.1f MB idle, stacks %.1f MB, %.0f goroutines",
				b.metric("go_memstats_heap_inuse_bytes")/1e6,
				(b.metric("go_memstats_heap_idle_bytes")-b.metric("go_memstats_heap_released_bytes"))/1e6,
				b.metric("go_memstats_stack_inuse_bytes")/1e6, b.metric("go_goroutines"))
			t.Logf("%s; %.1f kB/s more than quiet, RssAnon %.2f x, p99 %.2f x, %.0f new connections; answers %v",
				loud, excess/1e3, float64(loud.anon)/float64(quiet.anon), loud.p99.Seconds()/quiet.p99.Seconds(), opened,
				loud.answers)
			// in a short time its burst weighs more.
			if excess > floodUplink && (stretch >= 10*time.Second || f.name != "own token") {
				t.Errorf("the uplink carried %.0f B/s more than in quiet times, want %d", excess, floodUplink)
			}
			if loud.anon > floodAnon*quiet.anon {
				t.Errorf("RssAnon is %d, in quiet times it was %d", loud.anon, quiet.anon)
			}
			if opened > maxOpened {
				t.Errorf("%.0f new connections to the cloud", opened)
			}
			for what, n := range map[string]int64{
				"requests of another caller": loud.failed, "heartbeats of the kubelet": loud.late,
			} {
				if n > 0 {
					t.Errorf("%d %s failed", n, what)
				}
			}
			if n := b.metric("weir_hub_authorizations_total", "outcome", "remembered"); n != 0 {
				t.Errorf("%v verdicts of the time without the cloud were used", n)
			}
			if n := b.metric("weir_hub_requests_total", "route", "store"); n != 0 {
				t.Errorf("%v requests were answered from the store", n)
			}
			if b.metric("weir_hub_cloud_server_healthy") != 1 {
				t.Error("the cloud is taken to be away")
			}
		})
	}
}

// nodeReads lets clients that show the node's certificate read what a hub may: they stand for accounts with these
// rights.
func (b *bed) nodeReads() {
	for _, role := range []string{revocation.HubRole, revocation.TopologyRole} {
		_, err := b.admin.RbacV1().ClusterRoleBindings().Create(b.t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "node:" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: contract.NodeUserPrefix + edge},
			},
		}, metav1.CreateOptions{})
		check(b.t, err)
	}
}

// account makes a service account that may read a little, and returns a token of it.
func (b *bed) account(name string) string {
	t, ctx := b.t, b.t.Context()
	_, err := b.admin.CoreV1().ServiceAccounts("default").Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	check(t, err)
	_, err = b.admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
			{
				APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"},
				Verbs: []string{"get", "list", "watch"},
			},
		},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = b.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name,
		},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}},
	}, metav1.CreateOptions{})
	check(t, err)
	token, err := b.admin.CoreV1().ServiceAccounts("default").CreateToken(ctx, name, &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	check(t, err)
	return token.Status.Token
}

// stretched is what a stretch of time was like.
type stretched struct {
	took         time.Duration
	p50, p99     time.Duration // of requests of the other caller
	uplink       float64       // bytes, both directions
	anon         int64         // the most that RssAnon was
	failed, late int64
	sent         int64 // requests of the flood
	answers      map[string]int64
}

func (s stretched) String() string {
	return fmt.Sprintf("p50 %v, p99 %v, uplink %.1f kB/s, RssAnon %.1f MB, flood %.0f/s",
		s.p50.Round(100*time.Microsecond), s.p99.Round(100*time.Microsecond),
		s.uplink/1e3/s.took.Seconds(), float64(s.anon)/1e6, float64(s.sent)/s.took.Seconds())
}

// stretch lets a caller and the kubelet work for a while, beside a flood if there is one.
func (b *bed) stretch(d time.Duration, token string, f *flood) (s stretched) {
	t := b.t
	t.Helper()
	var stop func() flooded
	if f != nil {
		u, err := url.Parse(b.url)
		check(t, err)
		pod := flooder{Address: u.Host, Host: u.Hostname(), CA: b.ca, Token: f.token, Paths: f.paths}
		if !f.conns {
			pod.Rate = floodRate
		}
		stop = b.startFlood(pod)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var failed, late atomic.Int64
	var mu sync.Mutex
	var waits []time.Duration
	var wg sync.WaitGroup
	client := b.bare()
	for _, path := range []string{
		"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?limit=500",
		"/api/v1/namespaces/default/configmaps/file-001",
	} {
		wg.Go(func() {
			each(ctx, 150*time.Millisecond, func() {
				began := time.Now()
				code, _ := ask(t.Context(), client, b.url+path, "Bearer "+token)
				mu.Lock()
				waits = append(waits, time.Since(began))
				mu.Unlock()
				if code != http.StatusOK {
					failed.Add(1)
					t.Logf("%s: %d", path, code)
				}
			})
		})
	}
	kubelet, err := kubernetes.NewForConfig(b.kubelet("kubelet", "application/json"))
	check(t, err)
	wg.Go(func() {
		leases := kubelet.CoordinationV1().Leases("kube-node-lease")
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: edge}}
		each(ctx, time.Second, func() {
			now, holder, long := metav1.NowMicro(), edge, int32(40)
			lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &long, RenewTime: &now}
			got, err := leases.Get(t.Context(), edge, metav1.GetOptions{})
			if err == nil {
				got.Spec = lease.Spec
				_, err = leases.Update(t.Context(), got, metav1.UpdateOptions{})
			} else {
				_, err = leases.Create(t.Context(), lease, metav1.CreateOptions{})
			}
			if err != nil {
				late.Add(1)
				t.Log(err)
			}
		})
	})
	wg.Go(func() {
		each(ctx, 250*time.Millisecond, func() {
			if u, err := b.hub.Usage(); err == nil {
				s.anon = max(s.anon, u.RSSAnon)
			}
		})
	})
	before, began := b.crossed(), time.Now()
	wg.Wait()
	if f != nil {
		done := stop()
		s.sent, s.answers = done.Sent, done.Answers
	}
	s.took = time.Since(began)
	s.uplink = b.crossed() - before
	slices.Sort(waits)
	s.p50, s.p99 = waits[len(waits)/2], waits[len(waits)*99/100]
	s.failed, s.late = failed.Load(), late.Load()
	client.CloseIdleConnections()
	return s
}

// here waits until the hub has all, and knows that the cloud is there.
func (b *bed) here() {
	eventually(b.t, "the hub to be there", func() bool {
		return b.metric("weir_hub_cloud_server_healthy") == 1 &&
			b.metric("weir_relay_objects", "resource", endpointSlices) >= 50
	})
}

// quiet is a stretch without a flood. What a start costs belongs to none.
func (b *bed) quiet(d time.Duration, token string) stretched {
	b.stretch(time.Second, token, nil)
	for range 5 {
		if s := b.stretch(d, token, nil); s.uplink/s.took.Seconds() < maxQuiet {
			return s
		}
	}
	b.t.Fatal("the uplink does not become quiet")
	return stretched{}
}

// each calls f so often until ctx ends, also if it takes longer.
func each(ctx context.Context, every time.Duration, f func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// crossed are the bytes that crossed the link.
func (b *bed) crossed() float64 {
	return float64(link.Sum(b.link.Counters(), func(link.Counter) bool { return true }))
}

// bare is a client without a credential.
func (b *bed) bare() *http.Client {
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: b.ca}})
	check(b.t, err)
	tr := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, MaxConnsPerHost: 4}
	b.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

// ask gets something, and says why there was no answer.
func ask(ctx context.Context, c *http.Client, url, authorization string) (code int, why string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, " request"
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, " no answer"
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, ""
}
