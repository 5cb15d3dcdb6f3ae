package certificates

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/pki"
)

// TestApprovedByOthers: an approval of somebody else is signed if the rules agree, and fails if they do not.
func TestApprovedByOthers(t *testing.T) {
	theirs := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Whatever",
	}
	d, key := newDesk(newCluster(coordinator())), must(pki.NewKey())
	r := asked(pki.Hub, key)
	r.Status.Conditions = append(r.Status.Conditions, theirs)
	if err := pki.Must(pki.Hub).CheckPair(pairOf(d.work(t, r).Status.Certificate, key), subject, d.trusted(t),
		now); err != nil {
		t.Error(err)
	}
	d = newDesk(newCluster(coordinator()))
	r = asked(pki.Hub, key)
	r.Spec.Username = "system:node:edge-2"
	r.Status.Conditions = append(r.Status.Conditions, theirs)
	d.refused(t, d.work(t, r), certificatesv1.CertificateFailed, "requester")
}

// TestUnknownNode: a node of which nobody has written down that it is there gets nothing, whoever approved it. It gets
// it a moment later.
func TestUnknownNode(t *testing.T) {
	byOthers := []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Whatever"},
	}
	for _, c := range []struct {
		kind     pki.Kind
		approved []certificatesv1.CertificateSigningRequestCondition
	}{{pki.Hub, nil}, {pki.HubAtCloud, nil}, {pki.Forwarder, nil}, {pki.Hub, byOthers}} {
		d, known := newDesk(newCluster(coordinator())), false
		d.Granted = func(context.Context, string, *corev1.Node) (bool, error) { return known, nil }
		r := asked(c.kind, must(pki.NewKey()))
		if c.kind == pki.Hub {
			r.Spec.Username, r.Spec.Groups = "system:bootstrap:abc123", []string{contract.BootstrapGroup("harbour", "edge-1")}
		}
		r.Status.Conditions = c.approved
		r = d.work(t, r)
		if len(r.Status.Conditions) != len(c.approved) || len(r.Status.Certificate) > 0 {
			t.Errorf("%s of a node that nobody knows: %+v", c.kind, r.Status)
		}
		known = true
		for range 4 {
			d.step(t)
		}
		if r = d.read(t); condition(r, certificatesv1.CertificateApproved) == nil ||
			(len(r.Status.Certificate) > 0) != (c.kind == pki.Hub) {
			t.Errorf("%s of a node that is known: %+v", c.kind, r.Status.Conditions)
		}
	}
}

// TestLeftAlone: requests that are others' are not touched.
func TestLeftAlone(t *testing.T) {
	ofAnn := func(signer string) *certificatesv1.CertificateSigningRequest {
		r := asked(pki.HubAtCloud, must(pki.NewKey()))
		der := must(
			x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
				Subject: pkix.Name{CommonName: "ann", Organization: []string{"openyurt:yurthub"}},
			}, must(pki.NewKey())))
		r.Spec.Request, r.Spec.SignerName = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), signer
		return r
	}
	rubbish := ofAnn(contract.CloudSigner)
	rubbish.Spec.Request = []byte("rubbish")
	done := asked(pki.Hub, must(pki.NewKey()))
	done.Status.Certificate = []byte("done")
	denied := asked(pki.Hub, must(pki.NewKey()))
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateDenied},
	}
	unknown := asked(pki.Hub, must(pki.NewKey()))
	unknown.Spec.SignerName = contract.SignerPrefix + "viewer"
	for what, r := range map[string]*certificatesv1.CertificateSigningRequest{
		"a person at kube-apiserver's signer": ofAnn(contract.CloudSigner), "rubbish there": rubbish,
		"another signer":         ofAnn("example.com/x"),
		"the signer of kubelets": ofAnn("kubernetes.io/kube-apiserver-client-kubelet"), "one that is done": done,
		"one that is denied":          denied,
		"a kind that is made by hand": unknown,
	} {
		d, conditions := newDesk(newCluster(coordinator())), len(r.Status.Conditions)
		before := len(d.cluster.objects) + 1
		if got := d.work(t, r); len(got.Status.Conditions) != conditions || len(d.cluster.objects) != before ||
			string(got.Status.Certificate) != string(r.Status.Certificate) {
			t.Errorf("%s: %+v", what, got.Status)
		}
	}
}

// TestTwoAtOnce: two managers that judge the same request at the same time approve it once and sign it once, with one
// authority.
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
	if err := pki.Must(pki.Hub).CheckPair(pairOf(r.Status.Certificate, key), subject, one.trusted(t), now); err != nil ||
		len(r.Status.Conditions) != 1 {
		t.Errorf("%+v: %v", r.Status.Conditions, err)
	}
	first := r.Status.Certificate
	one.step(t)
	two.step(t)
	if !bytes.Equal(one.read(t).Status.Certificate, first) {
		t.Error("it was signed again")
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
	if r := d.work(t, asked(pki.Hub, must(pki.NewKey()))); !has(r, certificatesv1.CertificateApproved) ||
		len(r.Status.Certificate) > 0 || d.count("approved") != 1 {
		t.Errorf("%+v", r.Status)
	}
}

// TestWithoutGrant: a cluster that does not let weir-manager read requests loses nothing else of it. It is asked again,
// and told once.
func TestWithoutGrant(t *testing.T) {
	c, asked := newCluster(), make(chan struct{})
	d, log, fake := newDesk(c), &bytes.Buffer{}, clocktesting.NewFakeClock(now)
	d.Clock, d.Gate = fake, manifests.NewGate(fake, slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	c.listed = func() error {
		select {
		case asked <- struct{}{}:
		case <-ctx.Done():
		}
		return errors.New("forbidden")
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Start(ctx) }()
	for range 4 {
		select {
		case <-asked:
			for !fake.HasWaiters() {
				time.Sleep(time.Millisecond)
			}
			fake.Step(manifests.Rarest)
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		}
	}
	cancel()
	if err := <-ended; err != nil || strings.Count(log.String(), "--print-manifests") != 1 {
		t.Errorf("%v, and it said: %s", err, log)
	}
}

// TestGrants: the manifests let weir-manager approve and sign at the signers of the table, and at no others.
func TestGrants(t *testing.T) {
	approves, signs := map[string]bool{}, map[string]bool{}
	for _, i := range pki.Identities() {
		if i.Signer != "" {
			approves[i.Signer] = true
			if i.Signer != contract.CloudSigner {
				signs[i.Signer] = true
			}
		}
	}
	for _, doc := range strings.Split(manifests.RBAC(), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if !slices.Contains(rule.Resources, "signers") {
				continue
			}
			for _, verb := range rule.Verbs {
				want := map[string]map[string]bool{"approve": approves, "sign": signs}[verb]
				for _, name := range rule.ResourceNames {
					if !want[name] {
						t.Errorf("it may %s at %s", verb, name)
					}
					delete(want, name)
				}
			}
		}
	}
	if len(approves)+len(signs) > 0 {
		t.Errorf("it may not approve at %v, nor sign at %v", approves, signs)
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
	r.Status = certificatesv1.CertificateSigningRequestStatus{
		Conditions: []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateDenied, Message: "m"},
		},
	}
	if got := trim(); concerns(got) || got.Status.Conditions[0].Message != "" {
		t.Errorf("%+v", got)
	}
}
