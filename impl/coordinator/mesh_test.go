package coordinator_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// knock asks for the etcd of a replica as somebody with a certificate would.
type knock struct {
	t      testing.TB
	client *http.Client
	url    string
}

func (r *replica) knock(certPEM, keyPEM []byte) *knock {
	t := r.pool.t
	t.Helper()
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	check(t, err)
	tr := &http.Transport{
		TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &knock{t: t, client: &http.Client{Transport: tr}, url: "https://" + r.peer}
}

// heard reports whether it is let in.
func (k *knock) heard() bool {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet, k.url+contract.MeshPath, nil)
	check(k.t, err)
	resp, err := k.client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusNoContent
}

// hold is a request that etcd's handler reads on, and what ends when its connection does.
func (k *knock) hold() (ended <-chan struct{}) {
	k.t.Helper()
	body, w := io.Pipe()
	k.t.Cleanup(func() { w.Close() })
	req, err := http.NewRequestWithContext(k.t.Context(), http.MethodPost, k.url+"/raft/snapshot", body)
	check(k.t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := k.client.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	return done
}

// writing renews the Lease of a node at a replica until stop is called, which tells how often it did. A write that
// fails is a failure of the test.
func (r *replica) writing(node string, by *authority, roots ...*authority) (stop func() int) {
	t := r.pool.t
	t.Helper()
	c := r.asIssuedBy(by, contract.NodeUserPrefix+node, contract.HubGroup, contract.PoolGroupPrefix+"p")
	c.config.CAData = nil
	for _, a := range roots {
		c.config.CAData = append(c.config.CAData, a.pem...)
	}
	leases := c.leases(contract.NodeLeaseNamespace)
	lease, err := leases.Create(t.Context(), newLease(node, node), metav1.CreateOptions{})
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan int)
	go func() {
		n := 0
		defer func() { written <- n }()
		for ctx.Err() == nil {
			now := metav1.NowMicro()
			lease.Spec.RenewTime = &now
			// A write that has begun is not broken off.
			if lease, err = leases.Update(context.WithoutCancel(ctx), lease, metav1.UpdateOptions{}); err != nil {
				t.Errorf("at replica %s: %v", r.name, err)
				return
			}
			n++
		}
	}()
	return func() int { cancel(); return <-written }
}

// shown names the certificate of a replica as its logs do.
func (r *replica) shown() string {
	text, err := os.ReadFile(r.cert)
	check(r.pool.t, err)
	_, text = pem.Decode(text) // the key
	block, _ := pem.Decode(text)
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:8])
}

// etcd is a client of the etcd of a replica. The caller closes it.
func (r *replica) etcd() *clientv3.Client {
	r.pool.t.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + filepath.Join(r.dir, "etcd.sock")}, DialTimeout: patience, Logger: zap.NewNop(),
	})
	check(r.pool.t, err)
	return c
}

func running(all []*replica) []*replica {
	for _, r := range all {
		r.run()
	}
	for _, r := range all {
		r.healthy()
	}
	return all
}

// TestReplicasRotate: the authority of the pool is replaced under writes at each of three replicas, etcd's connections
// included. None is restarted, no write fails, and the leader stays. Afterwards who has a certificate of the former one
// is not let in, and what he had open has ended.
func TestReplicasRotate(t *testing.T) {
	now := time.Now()
	fresh := func() *pki.Authority {
		a, err := pki.NewPoolAuthority("p", now.Add(-2*time.Hour))
		check(t, err)
		return a
	}
	first, next := fresh(), fresh()
	former, latter := of(t, first), of(t, next)
	all := running(trioOf(t, newPoolOf(t, former)))
	hub := all[0].hub("a")
	term := hub.elect("a_1")
	thief := all[0].knock(all[1].pair(former, now.Add(-time.Hour), now.Add(time.Hour)))
	if !thief.heard() {
		t.Fatal("the certificate of a replica is not let in")
	}
	stranger := all[0].knock(all[1].pair(latter, now.Add(-time.Hour), now.Add(time.Hour)))
	if stranger.heard() {
		t.Fatal("the next authority counts before anybody told so")
	}
	var stops []func() int
	for _, r := range all {
		stops = append(stops, r.writing("before-"+r.name, former, former, latter))
	}
	var text []byte
	tell := func(s *pki.Succession, by *authority) {
		t.Helper()
		var err error
		text, err = trust.Publish(text, "p", s, 0, now)
		check(t, err)
		c := all[0].asIssuedBy(by, contract.NodeUserPrefix+"a", contract.HubGroup, contract.PoolGroupPrefix+"p")
		c.want(http.StatusNoContent, http.MethodPost, contract.TrustPath, string(text))
		for _, r := range all {
			c.url = r.url
			eventually(t, "replica "+r.name+" to know", func() bool {
				code, got, err := c.do(http.MethodGet, contract.TrustPath, "")
				return err == nil && code == http.StatusOK && got == string(text)
			})
		}
	}
	plan := pki.Plan{Settle: time.Minute, Overlap: time.Hour}
	s := &pki.Succession{Signer: first}
	check(t, s.Prepare(next, now, plan))
	tell(s, former)
	eventually(t, "the next authority counts at the etcds", stranger.heard)
	check(t, s.Switch(now.Add(plan.Settle)))
	tell(s, former)
	for _, r := range all {
		r.certify(latter, now.Add(-time.Hour), now.Add(time.Hour))
		cert, key := latter.server()
		keep(t, r.pool.of(pki.Coordinator), cert, key)
	}
	for _, r := range all {
		for _, o := range all {
			if o == r {
				continue
			}
			met := "replica=" + o.name + " theirs=" + o.shown() + " ours=" + r.shown()
			eventually(t, "replica "+r.name+" to be connected with "+o.name+" by what they have now",
				func() bool { return strings.Contains(r.stderr.String(), met) })
		}
	}
	for _, stop := range stops {
		if stop() == 0 {
			t.Error("nothing was written before")
		}
	}
	for _, r := range all {
		r.pool.ca = latter
		eventually(t, "replica "+r.name+" to show its next certificate", func() bool {
			_, _, err := r.as("").do(http.MethodGet, "/healthz", "")
			return err == nil
		})
	}
	stops = nil
	for _, r := range all {
		stops = append(stops, r.writing("after-"+r.name, latter, latter))
	}
	open := thief.hold()
	check(t, s.Retire(now.Add(plan.Settle+plan.Overlap)))
	tell(s, latter)
	eventually(t, "who has a certificate of the former authority is not let in", func() bool { return !thief.heard() })
	select {
	case <-open:
	case <-time.After(patience):
		t.Error("what was open by the former authority goes on")
	}
	for _, r := range all {
		r.healthy()
	}
	for _, stop := range stops {
		if stop() == 0 {
			t.Error("nothing was written after")
		}
	}
	for _, r := range all {
		if v := r.viewer(); v.holder() != "a_1" || v.state().Incarnation != term.Incarnation {
			t.Errorf("replica %s: %q leads", r.name, v.holder())
		}
		r.kill()
		r.run()
		r.healthy()
	}
}

// TestReplicaTakenBack: a replica whose node is deleted is not among the others any more, at once; a new certificate
// brings it back.
func TestReplicaTakenBack(t *testing.T) {
	all := running(trio(t))
	one, three := all[0], all[2]
	now := time.Now()
	thief := one.knock(three.pair(three.pool.ca, now.Add(-time.Hour), now.Add(time.Hour)))
	if !thief.heard() {
		t.Fatal("the certificate of a replica is not let in")
	}
	open := thief.hold()
	der, err := x509.MarshalPKCS8PrivateKey(one.pool.ca.key)
	check(t, err)
	by, err := pki.LoadAuthority(one.pool.ca.pem, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	check(t, err)
	l, _ := trust.Denylist{Pool: "p"}.Next(now, trust.Denial{
		Node: "n3", Replica: "3", Before: now.Add(-30 * time.Minute).UTC().Truncate(time.Second),
	})
	text, err := l.Sign(by)
	check(t, err)
	began := time.Now()
	one.hub("a").want(http.StatusNoContent, http.MethodPost, contract.DenylistPath, string(text))
	select {
	case <-open:
		t.Logf("what it had open ended after %v", time.Since(began))
	case <-time.After(patience):
		t.Error("what it had open goes on")
	}
	if thief.heard() {
		t.Error("it is let in")
	}
	alone := func() bool {
		code, _, err := three.as("").do(http.MethodGet, "/healthz", "")
		return err == nil && code != http.StatusOK
	}
	eventually(t, "the third to be alone", alone)
	for _, r := range all[:2] {
		r.healthy()
	}
	check(t, one.etcdWrites())
	three.certify(three.pool.ca, now.Add(-time.Minute), now.Add(time.Hour))
	three.healthy()
}

// TestReplicasLate: replicas whose certificates have ended start and have a majority while the cloud is away. When it
// is back, the first that has another certificate does not take the others' any more; there is a majority all the
// while.
func TestReplicasLate(t *testing.T) {
	all := running(trio(t))
	now := time.Now()
	one, two := all[0], all[1]
	for _, r := range all {
		r.kill()
		if r != two { // which was renewed just before the cloud was away
			r.certify(r.pool.ca, now.Add(-50*time.Minute), now.Add(-time.Minute))
		}
	}
	running(all)
	late := func(r *replica) *knock {
		return r.knock(all[2].pair(r.pool.ca, now.Add(-50*time.Minute), now.Add(-time.Minute)))
	}
	forgotten := one.knock(two.pair(one.pool.ca, now.Add(-200*24*time.Hour), now.Add(-150*24*time.Hour)))
	if forgotten.heard() {
		t.Error("one counts that ended 150 days ago")
	}
	hub := one.hub("a")
	shows := hub.show(leaderRelay(t, 100))
	hub.elect("a_1")
	eventually(t, "the leader is read", func() bool {
		_, ready, _, _ := one.slices()
		return ready && shows.read()
	})
	if !late(one).heard() {
		t.Error("who could not renew its own certificate yet does not take those of others")
	}
	writes := func() {
		t.Helper()
		eventually(t, "a majority that writes", func() bool {
			for _, r := range all {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				_, err := r.hub("n").leases(contract.NodeLeaseNamespace).Patch(ctx, "n", types.ApplyPatchType,
					[]byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"n"},`+
						`"spec":{"holderIdentity":"n"}}`), metav1.PatchOptions{FieldManager: "test"})
				cancel()
				if err == nil {
					return true
				}
			}
			return false
		})
	}
	writes()
	one.certify(one.pool.ca, now.Add(-time.Minute), now.Add(time.Hour))
	eventually(t, "the first takes what has ended no more", func() bool { return !late(one).heard() })
	writes()
	for _, r := range all[:2] {
		r.healthy()
	}
	all[2].certify(two.pool.ca, now.Add(-time.Minute), now.Add(time.Hour))
	for _, r := range all {
		r.healthy()
	}
}

// TestReplicaIn1970: a replica on a machine without a battery clock knows the others by the latest time that was proved
// to it.
func TestReplicaIn1970(t *testing.T) {
	all := trio(t)
	for _, r := range all[:2] {
		r.run()
	}
	three := all[2]
	t.Chdir(t.TempDir()) // and back: one of several replicas goes elsewhere
	c := three.pool.config
	c.Clock = otherTime{by: time.Until(time.Unix(60, 0))}
	c.Name = three.name
	for _, r := range all {
		c.InitialCluster = append(c.InitialCluster, r.name+"=https://"+r.peer)
		c.ReplicaServers = append(c.ReplicaServers, r.name+"="+r.url.String())
	}
	three.pool.config = c
	s := three.pool.start()
	all[0].kill() // so that the third is needed
	all[1].healthy()
	check(t, s.etcdWrites())
}

func (s *server) etcdWrites() error {
	_, err := s.hub("n").leases(contract.NodeLeaseNamespace).Create(s.t.Context(), newLease("n", "n"),
		metav1.CreateOptions{})
	return err
}

// before is the etcd of a replica as it was when etcd did TLS by itself.
func (r *replica) before(all []*replica) *embed.Config {
	t := r.pool.t
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialClusterToken = r.name, filepath.Join(r.dir, "etcd"), "weir:p"
	sock := url.URL{Scheme: "unix", Path: filepath.Join(t.(*testing.T).TempDir(), "c.sock")}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{sock}, []url.URL{sock}
	at := url.URL{Scheme: "https", Host: r.peer}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{at}, []url.URL{at}
	var cluster []string
	c.PeerTLSInfo = transport.TLSInfo{
		CertFile: r.cert, KeyFile: r.cert, TrustedCAFile: r.pool.caFile(), ClientCertAuth: true,
		SkipClientSANVerify: true,
	}
	for _, o := range all {
		cluster = append(cluster, o.name+"=https://"+o.peer)
		c.PeerTLSInfo.AllowedCNs = append(c.PeerTLSInfo.AllowedCNs, contract.ReplicaUser("p", o.name))
	}
	c.InitialCluster = strings.Join(cluster, ",")
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	return c
}

// TestReplicasOfBefore: three replicas whose etcds did TLS by themselves are restarted, one after the other, with what
// they have on their disks. When the last one runs, all are met over the mesh.
func TestReplicasOfBefore(t *testing.T) {
	all := trio(t)
	old := make([]*embed.Etcd, len(all))
	started := make(chan error, len(all))
	for i, r := range all {
		check(t, os.MkdirAll(r.dir, 0o700))
		c := r.before(all)
		go func() {
			var err error
			old[i], err = embed.StartEtcd(c)
			started <- err
		}()
	}
	for range all {
		check(t, <-started)
	}
	for _, e := range old {
		<-e.Server.ReadyNotify()
	}
	urls := func(r *replica) (urls []string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		c := r.etcd()
		defer c.Close()
		resp, err := c.MemberList(ctx)
		if err != nil {
			return nil
		}
		for _, m := range resp.Members {
			urls = append(urls, m.PeerURLs...)
		}
		return urls
	}
	for i, r := range all {
		old[i].Close()
		r.run()
		r.healthy()
		if i == 0 && strings.Contains(strings.Join(urls(r), " "), "unix://") {
			t.Error("it went where the others cannot find it")
		}
	}
	for _, r := range all {
		eventually(t, "all are met over the mesh", func() bool {
			got := urls(r)
			return len(got) == len(all) && !strings.Contains(strings.Join(got, " "), "https://")
		})
	}
	for _, r := range all {
		r.kill()
		r.run()
		r.healthy()
	}
	all[0].kill()
	check(t, os.RemoveAll(all[0].dir))
	all[0].run()
	all[0].healthy()
}
