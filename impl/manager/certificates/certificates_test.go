package certificates

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// subject is edge-1 of the pool harbour, where the coordinator's replica one runs.
var subject = pki.Subject{Pool: "harbour", Node: "edge-1", Name: "one", Hosts: []string{"10.0.0.1"}}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func node(name, pool, uid string, age time.Duration) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(now.Add(-age)), Labels: map[string]string{}}}
	if pool != "" {
		n.Labels[contract.NodePoolLabel] = pool
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: name}}
	return n
}

// coordinator is edge-1, which is also one of those that nobody forbids to be a coordinator.
func coordinator() *corev1.Node {
	n := node("edge-1", "harbour", "u-1", time.Hour)
	n.Labels[contract.CoordinatorLabel] = "one"
	return n
}

// asked is a request of edge-1's kubelet, as it should be, for a key.
func asked(k pki.Kind, key crypto.Signer) *certificatesv1.CertificateSigningRequest {
	i := pki.Must(k)
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "r-uid", CreationTimestamp: metav1.NewTime(now)}}
	r.Spec = certificatesv1.CertificateSigningRequestSpec{
		Request: must(i.Request(subject, key)), SignerName: i.Signer, Username: "system:node:edge-1", Groups: []string{"system:nodes", "system:authenticated"},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature},
	}
	seconds := int32(i.Life.Least / time.Second)
	r.Spec.ExpirationSeconds = &seconds
	if i.Client {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageClientAuth)
	}
	if i.Server {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
	}
	return r
}

// desk is a controller at a cluster in memory.
type desk struct {
	*Controller
	cluster *cluster
	events  chan string
}

func newDesk(c *cluster) *desk {
	recorder := events.NewFakeRecorder(100)
	return &desk{
		Controller: New(Config{
			Client: c, Reader: c, Events: recorder, Clock: clocktesting.NewFakeClock(now), Sign: true, Metrics: NewMetrics(), Log: slog.New(slog.DiscardHandler),
		}),
		cluster: c, events: recorder.Events,
	}
}

// work judges a request until nothing is left to do, and returns it.
func (d *desk) work(t *testing.T, r *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	d.cluster.put(r)
	for range 4 {
		d.step(t)
	}
	return d.read(t)
}

func (d *desk) step(t *testing.T) {
	t.Helper()
	if _, err := d.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "r"}}); err != nil {
		t.Error(err)
	}
}

func (d *desk) read(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	r := &certificatesv1.CertificateSigningRequest{}
	if err := d.cluster.Get(t.Context(), client.ObjectKey{Name: "r"}, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// trusted are the authorities that a pool is told of.
func (d *desk) trusted(t *testing.T) []*x509.Certificate {
	t.Helper()
	c := &corev1.ConfigMap{}
	if err := d.cluster.Get(t.Context(), client.ObjectKey{Namespace: contract.KeyNamespace, Name: "pool-harbour"}, c); err != nil {
		t.Fatal(err)
	}
	return must(pki.ParseCertificates([]byte(c.Data[trustKey])))
}

func (d *desk) count(result string) float64 {
	return testutil.ToFloat64(d.Metrics.requests.WithLabelValues(result))
}

func pairOf(certPEM []byte, key *ecdsa.PrivateKey) *pki.Pair {
	der := must(x509.MarshalPKCS8PrivateKey(key))
	return &pki.Pair{CertPEM: certPEM, KeyPEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}
}

// TestGranted: who is entitled gets what it asks for. What is trusted in the pool is signed by the pool's authority, what kube-apiserver
// trusts is approved only.
func TestGranted(t *testing.T) {
	joining := []string{"system:bootstrappers", contract.BootstrapGroup("harbour", "edge-1")}
	for _, c := range []struct {
		what   string
		kind   pki.Kind
		user   string
		groups []string
	}{
		{"a hub, by its kubelet's certificate", pki.Hub, "system:node:edge-1", []string{"system:nodes"}},
		{"a hub, by its own", pki.Hub, "weir:hub:harbour:edge-1", nil},
		{"a hub, by a token", pki.Hub, "system:bootstrap:abc123", joining},
		{"a hub at the cloud, by its kubelet's certificate", pki.HubAtCloud, "system:node:edge-1", []string{"system:nodes"}},
		{"a hub at the cloud, by its own", pki.HubAtCloud, "weir:hub:harbour:edge-1", nil},
		{"a hub at the cloud, by a token", pki.HubAtCloud, "system:bootstrap:abc123", joining},
		{"a leader", pki.Forwarder, "weir:hub:harbour:edge-1", nil},
		{"a coordinator", pki.Coordinator, "weir:hub:harbour:edge-1", nil},
		{"a replica", pki.Replica, "system:node:edge-1", []string{"system:nodes"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			d, key, i := newDesk(newCluster(coordinator())), must(pki.NewKey()), pki.Must(c.kind)
			r := asked(c.kind, key)
			r.Spec.Username, r.Spec.Groups = c.user, c.groups
			r = d.work(t, r)
			a := condition(r, certificatesv1.CertificateApproved)
			if a == nil || a.Reason != approvedReason || !strings.Contains(a.Message, "uid u-1") || len(r.Status.Conditions) != 1 || d.count("approved") != 1 {
				t.Fatalf("conditions %+v", r.Status.Conditions)
			}
			if i.Issuer == pki.ClusterIssuer {
				if len(r.Status.Certificate) > 0 || len(d.cluster.objects) > 3 {
					t.Error("what kube-apiserver trusts is signed")
				}
				return
			}
			if err := i.CheckPair(pairOf(r.Status.Certificate, key), subject, d.trusted(t), now); err != nil {
				t.Error(err)
			}
			if cert := must(pki.ParseCertificates(r.Status.Certificate))[0]; !cert.NotAfter.Equal(now.Add(i.Life.Least)) || d.count("signed") != 1 {
				t.Errorf("it ends at %s", cert.NotAfter)
			}
		})
	}
}

// TestUsualLife: who asks for no life gets the usual one.
func TestUsualLife(t *testing.T) {
	d := newDesk(newCluster(coordinator()))
	r := asked(pki.Hub, must(pki.NewKey()))
	r.Spec.ExpirationSeconds = nil
	if cert := must(pki.ParseCertificates(d.work(t, r).Status.Certificate))[0]; !cert.NotAfter.Equal(now.Add(pki.Must(pki.Hub).Life.Usual)) {
		t.Errorf("it ends at %s", cert.NotAfter)
	}
}

// TestRefused: what does not agree is denied with what does not, once, by condition, Event and metric; and it is never signed.
func TestRefused(t *testing.T) {
	type request = certificatesv1.CertificateSigningRequest
	rewrite := func(r *request, change func(*x509.CertificateRequest)) {
		old := must(pki.ParseRequest(r.Spec.Request))
		template := &x509.CertificateRequest{Subject: old.Subject, DNSNames: old.DNSNames, IPAddresses: old.IPAddresses}
		template.Subject.Names = nil
		change(template)
		der := must(x509.CreateCertificateRequest(rand.Reader, template, must(pki.NewKey())))
		r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	name := func(n string, o ...string) func(*request) {
		return func(r *request) {
			rewrite(r, func(x *x509.CertificateRequest) { x.Subject = pkix.Name{CommonName: n, Organization: o} })
		}
	}
	life := func(d time.Duration) func(*request) {
		return func(r *request) {
			seconds := int32(d / time.Second)
			r.Spec.ExpirationSeconds = &seconds
		}
	}
	as := func(user string, groups ...string) func(*request) {
		return func(r *request) { r.Spec.Username, r.Spec.Groups = user, groups }
	}
	usages := func(u ...certificatesv1.KeyUsage) func(*request) {
		return func(r *request) { r.Spec.Usages = u }
	}
	const year = 365 * 24 * time.Hour
	other := must(pki.ParseRequest(must(pki.Must(pki.Hub).Request(subject, must(pki.NewKey())))))
	for _, c := range []struct {
		what   string
		kind   pki.Kind
		change func(*request)
		field  string
	}{
		{"an extra organization", pki.Hub, name("system:node:edge-1", "openyurt:yurthub", "weir:pool:harbour", "system:masters"), "organization"},
		{"an organization at the cloud", pki.HubAtCloud, name("weir:hub:harbour:edge-1", "system:masters"), "organization"},
		{"another pool's name", pki.Hub, name("system:node:edge-1", "openyurt:yurthub", "weir:pool:lighthouse"), "organization"},
		{"another pool's name at the cloud", pki.HubAtCloud, name("weir:hub:lighthouse:edge-1"), "common name"},
		{"another node's name", pki.Hub, name("system:node:edge-2", "openyurt:yurthub", "weir:pool:harbour"), "requester"},
		{"another node's name at the cloud", pki.HubAtCloud, name("weir:hub:harbour:edge-2"), "requester"},
		{"a name of another kind", pki.Hub, name("admin", "openyurt:yurthub", "weir:pool:harbour"), "common name"},
		{"an operator", pki.Hub, name("system:node:edge-1", "weir:operators", "weir:pool:harbour"), "organization"},
		{"a name of Weir's that nobody has", pki.HubAtCloud, name("weir:admin"), "common name"},
		{"a forwarder of the whole pool", pki.Forwarder, name("weir:forwarder:harbour", "weir:forwarders"), "common name"},
		{"organizations of a forwarder for a user", pki.Forwarder, name("ann", "weir:forwarders:harbour"), "common name"},
		{"a life of ten years", pki.Hub, life(10 * year), "life"},
		{"a life of ten years at the cloud", pki.HubAtCloud, life(10 * year), "life"},
		{"a year of forwarding", pki.Forwarder, life(year), "life"},
		{"a life of a minute", pki.Hub, life(time.Minute), "life"},
		{"a life below zero", pki.Hub, life(-year), "life"},
		{"no life at the cloud", pki.HubAtCloud, func(r *request) { r.Spec.ExpirationSeconds = nil }, "life"},
		{"another's public key", pki.Hub, func(r *request) {
			own := must(pki.ParseRequest(r.Spec.Request))
			forged := bytes.Replace(own.Raw, own.RawSubjectPublicKeyInfo, other.RawSubjectPublicKeyInfo, 1)
			r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: forged})
		}, "public key"},
		{"a weak key", pki.Hub, func(r *request) {
			r.Spec.Request = must(pki.Must(pki.Hub).Request(subject, must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))))
		}, "key"},
		{"a token for another node", pki.Hub, as("system:bootstrap:abc123", contract.BootstrapGroup("harbour", "edge-2")), "requester"},
		{"a token for another pool", pki.Hub, as("system:bootstrap:abc123", contract.BootstrapGroup("lighthouse", "edge-1")), "requester"},
		{"a token for any node", pki.Hub, as("system:bootstrap:abc123", "system:bootstrappers"), "requester"},
		{"a token that is none", pki.Hub, as("system:bootstrap:../x", contract.BootstrapGroup("harbour", "edge-1")), "requester"},
		{"a token for forwarding", pki.Forwarder, as("system:bootstrap:abc123", contract.BootstrapGroup("harbour", "edge-1")), "requester"},
		{"a token for a coordinator", pki.Coordinator, as("system:bootstrap:abc123", contract.BootstrapGroup("harbour", "edge-1")), "requester"},
		{"another node", pki.Hub, as("system:node:edge-2", "system:nodes"), "requester"},
		{"a node without its group", pki.Hub, as("system:node:edge-1", "system:authenticated"), "requester"},
		{"a hub of another pool", pki.Hub, as("weir:hub:lighthouse:edge-1"), "requester"},
		{"a hub of another node", pki.Hub, as("weir:hub:harbour:edge-2"), "requester"},
		{"a person", pki.Hub, as("ann", "system:masters"), "requester"},
		{"a person for a coordinator", pki.Coordinator, as("ann", "system:masters"), "requester"},
		{"a replica's name that is another's", pki.Replica, name("weir:coordinator:harbour:two", "weir:coordinators", "weir:pool:harbour"), "common name"},
		{"another address", pki.Coordinator, func(r *request) {
			rewrite(r, func(x *x509.CertificateRequest) { x.DNSNames = []string{"kubernetes.default.svc"} })
		}, "addresses"},
		{"an address for a client", pki.Hub, func(r *request) {
			rewrite(r, func(x *x509.CertificateRequest) { x.DNSNames = []string{"edge-1"} })
		}, "addresses"},
		{"usages of a server", pki.Hub, usages("digital signature", "server auth"), "usages"},
		{"one usage more", pki.Hub, usages("digital signature", "client auth", "server auth"), "usages"},
		{"one usage less", pki.Hub, usages("client auth"), "usages"},
		{"a usage twice", pki.Hub, usages("digital signature", "client auth", "client auth"), "usages"},
		{"a usage that signs", pki.Hub, usages("digital signature", "client auth", "cert sign"), "usages"},
		{"a usage that nobody knows", pki.Hub, usages("digital signature", "fly"), "usages"},
		{"no usage", pki.Hub, usages(), "usages"},
		{"rubbish", pki.Hub, func(r *request) { r.Spec.Request = []byte("rubbish") }, "request"},
		{"half of it", pki.Hub, func(r *request) { r.Spec.Request = r.Spec.Request[:100] }, "request"},
		{"too much", pki.Hub, func(r *request) { r.Spec.Request = append(r.Spec.Request, bytes.Repeat([]byte("\n"), 1<<20)...) }, "request"},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := newDesk(newCluster(coordinator(), node("edge-2", "harbour", "u-2", time.Hour)))
			r := asked(c.kind, must(pki.NewKey()))
			c.change(r)
			d.refused(t, d.work(t, r), certificatesv1.CertificateDenied, c.field)
		})
	}
}

// refused fails unless a request was refused once, for a field, and nothing was signed for it.
func (d *desk) refused(t *testing.T, r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType, field string) {
	t.Helper()
	result := map[certificatesv1.RequestConditionType]string{certificatesv1.CertificateDenied: "denied", certificatesv1.CertificateFailed: "failed"}[kind]
	c := condition(r, kind)
	switch {
	case len(r.Status.Certificate) > 0:
		t.Fatal("it was signed")
	case c == nil:
		t.Fatalf("conditions %+v", r.Status.Conditions)
	case !strings.HasPrefix(c.Message, field+": ") || len(c.Message) > longText:
		t.Errorf("want it refused for %s: %q", field, c.Message)
	}
	if n := testutil.ToFloat64(d.Metrics.refused.WithLabelValues(field)); n != 1 || d.count(result) != 1 || d.count("signed") != 0 {
		t.Errorf("%v refusals for %s, %v %s, %v signed", n, field, d.count(result), result, d.count("signed"))
	}
	if len(d.events) != 1 || !strings.Contains(<-d.events, field) {
		t.Error("want one Event that says why")
	}
}

// TestNodes: the cluster's Node counts, not what a request says of it.
func TestNodes(t *testing.T) {
	leaving := node("edge-1", "harbour", "u-1", time.Hour)
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	for _, c := range []struct {
		what  string
		kind  pki.Kind
		node  *corev1.Node
		field string
	}{
		{"there is none", pki.Hub, node("edge-2", "harbour", "u-2", time.Hour), "node"},
		{"it is younger than the request", pki.Hub, node("edge-1", "harbour", "u-3", -time.Minute), "node"},
		{"it is being deleted", pki.Hub, leaving, "node"},
		{"it is in no pool", pki.Hub, node("edge-1", "", "u-1", time.Hour), "pool"},
		{"it is in another pool", pki.Hub, node("edge-1", "lighthouse", "u-1", time.Hour), "organization"},
		{"its pool cannot be a name", pki.Hub, node("edge-1", "Harbour_1", "u-1", time.Hour), "pool"},
		{"it may not be a coordinator", pki.Coordinator, node("edge-1", "harbour", "u-1", time.Hour), "node"},
		{"it may not be a replica", pki.Replica, node("edge-1", "harbour", "u-1", time.Hour), "node"},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := newDesk(newCluster(c.node))
			d.refused(t, d.work(t, asked(c.kind, must(pki.NewKey()))), certificatesv1.CertificateDenied, c.field)
		})
	}
}

// TestAnotherNode: what was approved for a Node is not signed for another of the same name.
func TestAnotherNode(t *testing.T) {
	d := newDesk(newCluster(coordinator()))
	d.cluster.put(asked(pki.Hub, must(pki.NewKey())))
	d.step(t)
	if r := d.read(t); !has(r, certificatesv1.CertificateApproved) {
		t.Fatal("it was not approved")
	}
	d.cluster.put(node("edge-1", "harbour", "u-2", time.Hour))
	d.step(t)
	d.refused(t, d.read(t), certificatesv1.CertificateFailed, "node")
}

// TestApprovedByOthers: an approval of somebody else is signed if the rules agree, and fails if they do not.
func TestApprovedByOthers(t *testing.T) {
	theirs := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Whatever"}
	d, key := newDesk(newCluster(coordinator())), must(pki.NewKey())
	r := asked(pki.Hub, key)
	r.Status.Conditions = append(r.Status.Conditions, theirs)
	if err := pki.Must(pki.Hub).CheckPair(pairOf(d.work(t, r).Status.Certificate, key), subject, d.trusted(t), now); err != nil {
		t.Error(err)
	}
	d = newDesk(newCluster(coordinator()))
	r = asked(pki.Hub, key)
	r.Spec.Username = "system:node:edge-2"
	r.Status.Conditions = append(r.Status.Conditions, theirs)
	d.refused(t, d.work(t, r), certificatesv1.CertificateFailed, "requester")
}

// TestLeftAlone: requests that are others' are not touched.
func TestLeftAlone(t *testing.T) {
	ofAnn := func(signer string) *certificatesv1.CertificateSigningRequest {
		r := asked(pki.HubAtCloud, must(pki.NewKey()))
		der := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "ann", Organization: []string{"openyurt:yurthub"}}}, must(pki.NewKey())))
		r.Spec.Request, r.Spec.SignerName = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), signer
		return r
	}
	rubbish := ofAnn(contract.CloudSigner)
	rubbish.Spec.Request = []byte("rubbish")
	done := asked(pki.Hub, must(pki.NewKey()))
	done.Status.Certificate = []byte("done")
	denied := asked(pki.Hub, must(pki.NewKey()))
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
	unknown := asked(pki.Hub, must(pki.NewKey()))
	unknown.Spec.SignerName = contract.SignerPrefix + "viewer"
	for what, r := range map[string]*certificatesv1.CertificateSigningRequest{
		"a person at kube-apiserver's signer": ofAnn(contract.CloudSigner), "rubbish there": rubbish, "another signer": ofAnn("example.com/x"),
		"the signer of kubelets": ofAnn("kubernetes.io/kube-apiserver-client-kubelet"), "one that is done": done, "one that is denied": denied,
		"a kind that is made by hand": unknown,
	} {
		d, conditions := newDesk(newCluster(coordinator())), len(r.Status.Conditions)
		before := len(d.cluster.objects) + 1
		if got := d.work(t, r); len(got.Status.Conditions) != conditions || len(d.cluster.objects) != before || string(got.Status.Certificate) != string(r.Status.Certificate) {
			t.Errorf("%s: %+v", what, got.Status)
		}
	}
}

// TestTwoAtOnce: two managers that judge the same request at the same time approve it once and sign it once, with one authority.
func TestTwoAtOnce(t *testing.T) {
	shared, key := newCluster(coordinator()), must(pki.NewKey())
	one, two := newDesk(shared), newDesk(shared)
	shared.put(asked(pki.Hub, key))
	for range 3 {
		shared.before = func() { two.step(t) } // between one's read and one's write
		one.step(t)
	}
	if a, s := one.count("approved")+two.count("approved"), one.count("signed")+two.count("signed"); a != 1 || s != 1 {
		t.Errorf("approved %v times, signed %v times", a, s)
	}
	r := one.read(t)
	if err := pki.Must(pki.Hub).CheckPair(pairOf(r.Status.Certificate, key), subject, one.trusted(t), now); err != nil || len(r.Status.Conditions) != 1 {
		t.Errorf("%+v: %v", r.Status.Conditions, err)
	}
	first := r.Status.Certificate
	one.step(t)
	two.step(t)
	if !bytes.Equal(one.read(t).Status.Certificate, first) {
		t.Error("it was signed again")
	}
}

// TestTokenOnce: a bootstrap token is good for one request of a kind. The same request, judged again, is the same use.
func TestTokenOnce(t *testing.T) {
	c := newCluster(coordinator())
	joins := func(uid types.UID, k pki.Kind) *certificatesv1.CertificateSigningRequest {
		r := asked(k, must(pki.NewKey()))
		r.UID, r.Spec.Username, r.Spec.Groups = uid, "system:bootstrap:abc123", []string{contract.BootstrapGroup("harbour", "edge-1")}
		return r
	}
	d := newDesk(c)
	c.before = func() { newDesk(c).step(t) } // another manager is faster: this one comes again
	if r := d.work(t, joins("1", pki.Hub)); len(r.Status.Certificate) == 0 {
		t.Errorf("the first use: %+v", r.Status.Conditions)
	}
	if r := d.work(t, joins("2", pki.HubAtCloud)); !has(r, certificatesv1.CertificateApproved) {
		t.Errorf("for another kind: %+v", r.Status.Conditions)
	}
	d = newDesk(c)
	d.refused(t, d.work(t, joins("3", pki.Hub)), certificatesv1.CertificateDenied, "token")
	note := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: contract.KeyNamespace, Name: "token-abc123-hub"}, note); err != nil || note.OwnerReferences[0].UID != "u-1" {
		t.Errorf("the note does not go with its Node: %+v, %v", note, err)
	}
}

// TestLostKey: a key that is gone is not replaced without a word, and who decides that it is gets a new one.
func TestLostKey(t *testing.T) {
	d, key := newDesk(newCluster(coordinator())), client.ObjectKey{Namespace: contract.KeyNamespace, Name: "pool-harbour"}
	d.work(t, asked(pki.Hub, must(pki.NewKey())))
	first := d.trusted(t)[0]
	again := asked(pki.Hub, must(pki.NewKey()))
	if r := d.work(t, again); len(r.Status.Certificate) == 0 || !d.trusted(t)[0].Equal(first) {
		t.Error("the second certificate is not of the same authority")
	}
	delete(d.cluster.objects, keyOf(&corev1.Secret{}, key))
	d.cluster.put(asked(pki.Hub, must(pki.NewKey())))
	d.step(t)
	_, err := d.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "r"}})
	if r := d.read(t); err == nil || !strings.Contains(err.Error(), "is lost") || len(r.Status.Certificate) > 0 || has(r, certificatesv1.CertificateFailed) {
		t.Errorf("without the key: %v, %+v", err, r.Status)
	}
	delete(d.cluster.objects, keyOf(&corev1.ConfigMap{}, key))
	d.step(t)
	if r := d.read(t); len(r.Status.Certificate) == 0 || d.trusted(t)[0].Equal(first) {
		t.Error("no new authority")
	}
}

// TestRotation: while an authority is replaced, the pool is told of both.
func TestRotation(t *testing.T) {
	d := newDesk(newCluster(coordinator()))
	d.work(t, asked(pki.Hub, must(pki.NewKey())))
	secret := &corev1.Secret{}
	if err := d.cluster.Get(t.Context(), client.ObjectKey{Namespace: contract.KeyNamespace, Name: "pool-harbour"}, secret); err != nil {
		t.Fatal(err)
	}
	s := must(pki.LoadSuccession(secret.Data))
	if err := s.Prepare(must(pki.NewPoolAuthority("harbour", now))); err != nil {
		t.Fatal(err)
	}
	secret.Data = must(s.Files())
	d.cluster.put(secret)
	d.work(t, asked(pki.Hub, must(pki.NewKey())))
	if n := len(d.trusted(t)); n != 2 {
		t.Errorf("%d authorities are published", n)
	}
	secret.Data = must((&pki.Succession{Signer: must(pki.NewPoolAuthority("lighthouse", now))}).Files())
	d.cluster.put(secret)
	d.cluster.put(asked(pki.Hub, must(pki.NewKey())))
	d.step(t)
	if _, err := d.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "r"}}); err == nil || len(d.read(t).Status.Certificate) > 0 {
		t.Errorf("the authority of another pool signs: %v", err)
	}
}

// TestUnknown: as long as the cluster cannot be asked, nothing is refused.
func TestUnknown(t *testing.T) {
	d := newDesk(newCluster(coordinator()))
	d.cluster.failing = errors.New("the cluster is away")
	d.cluster.put(asked(pki.Hub, must(pki.NewKey())))
	_, err := d.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "r"}})
	if r := d.read(t); err == nil || len(r.Status.Conditions) > 0 {
		t.Errorf("%v, %+v", err, r.Status.Conditions)
	}
	d.cluster.failing = nil
	d.step(t)
	if !has(d.read(t), certificatesv1.CertificateApproved) {
		t.Error("it was not approved afterwards")
	}
}

// TestAnotherSigner: with another signer requests are approved and denied, and not signed.
func TestAnotherSigner(t *testing.T) {
	d := newDesk(newCluster(coordinator()))
	d.Sign = false
	if r := d.work(t, asked(pki.Hub, must(pki.NewKey()))); !has(r, certificatesv1.CertificateApproved) || len(r.Status.Certificate) > 0 || d.count("approved") != 1 {
		t.Errorf("%+v", r.Status)
	}
}

// TestTrim: what the cache holds of a request says whether there is something to do, and no more.
func TestTrim(t *testing.T) {
	r := asked(pki.Hub, must(pki.NewKey()))
	r.ResourceVersion = "7"
	trim := func() *certificatesv1.CertificateSigningRequest {
		return must(Trim(r)).(*certificatesv1.CertificateSigningRequest)
	}
	if got := trim(); !concerns(got) || got.Spec.Request != nil || got.Name != "r" || got.ResourceVersion != "7" {
		t.Errorf("%+v", got)
	}
	r.Status.Certificate = []byte(strings.Repeat("x", 1000))
	if got := trim(); concerns(got) || len(got.Status.Certificate) != 1 {
		t.Errorf("%+v", got)
	}
	r.Status = certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Message: "m"}}}
	if got := trim(); concerns(got) || got.Status.Conditions[0].Message != "" {
		t.Errorf("%+v", got)
	}
}
