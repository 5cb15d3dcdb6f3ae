package certificates

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
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
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(now.Add(-age)), Labels: map[string]string{},
		},
	}
	if pool != "" {
		n.Labels[contract.NodePoolLabel] = pool
	}
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: name},
	}
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
	r := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "r-uid", CreationTimestamp: metav1.NewTime(now)},
	}
	r.Spec = certificatesv1.CertificateSigningRequestSpec{
		Request: must(i.Request(subject, key)), SignerName: i.Signer, Username: "system:node:edge-1",
		Groups: []string{"system:nodes", "system:authenticated"},
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

// anytime is when certificates may begin where nothing was ever revoked.
func anytime(context.Context, string, *corev1.Node, *x509.CertificateRequest, time.Time) (begin time.Time, err error) {
	return begin, nil
}

// granted is what it says where all nodes have got their grants.
func granted(context.Context, string, *corev1.Node) (bool, error) { return true, nil }

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
			Client: c, Reader: c, Events: recorder, Clock: clocktesting.NewFakeClock(now), Sign: true, Begin: anytime,
			Granted: granted, Metrics: NewMetrics(), Log: slog.New(slog.DiscardHandler),
		}),
		cluster: c, events: recorder.Events,
	}
}

// work judges a request until nothing is left to do, and returns it.
func (d *desk) work(t *testing.T,
	r *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
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
	if err := d.cluster.Get(t.Context(), client.ObjectKey{Namespace: contract.KeyNamespace, Name: "pool-harbour"},
		c); err != nil {
		t.Fatal(err)
	}
	return must(pki.ParseCertificates([]byte(c.Data[contract.AuthorityKey])))
}

func (d *desk) count(result string) float64 {
	return testutil.ToFloat64(d.Metrics.requests.WithLabelValues(result))
}

func pairOf(certPEM []byte, key *ecdsa.PrivateKey) *pki.Pair {
	der := must(x509.MarshalPKCS8PrivateKey(key))
	return &pki.Pair{CertPEM: certPEM, KeyPEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}
}

// refused fails unless a request was refused once, for a field, and nothing was signed for it. It returns the pool and
// the Node that the metric has of it, with a slash between.
func (d *desk) refused(t *testing.T, r *certificatesv1.CertificateSigningRequest,
	kind certificatesv1.RequestConditionType, field string) (where string) {
	t.Helper()
	result := map[certificatesv1.RequestConditionType]string{
		certificatesv1.CertificateDenied: "denied", certificatesv1.CertificateFailed: "failed",
	}[kind]
	c := condition(r, kind)
	switch {
	case len(r.Status.Certificate) > 0:
		t.Fatal("it was signed")
	case c == nil:
		t.Fatalf("conditions %+v", r.Status.Conditions)
	case !strings.HasPrefix(c.Message, field+": ") || len(c.Message) > longText:
		t.Errorf("want it refused for %s: %q", field, c.Message)
	}
	text, err := testutil.CollectAndFormat(d.Metrics.refused, expfmt.TypeTextPlain, refusals)
	counted := refusalLine.FindAllStringSubmatch(string(text), -1)
	if err != nil || len(counted) != 1 || counted[0][1] != field || d.count(result) != 1 || d.count("signed") != 0 {
		t.Fatalf("want one refusal for %s: %v\n%s%v %s, %v signed", field, err, text, d.count(result), result,
			d.count("signed"))
	}
	if len(d.events) != 1 || !strings.Contains(<-d.events, field) {
		t.Error("want one Event that says why")
	}
	return counted[0][3] + "/" + counted[0][2]
}

// refusalLine is the metric of one refusal: its field, its node and its pool.
var refusalLine = regexp.MustCompile(`(?m)^` + refusals + `{field="(.*)",node="(.*)",pool="(.*)"} 1$`)

const refusals = "weir_manager_certificate_refusals_total"
