package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

// TestTokenOnce: a bootstrap token is good for one request of a kind. The same request, judged again, is the same use.
func TestTokenOnce(t *testing.T) {
	c := newCluster(coordinator())
	joins := func(uid types.UID, k pki.Kind) *certificatesv1.CertificateSigningRequest {
		r := asked(k, must(pki.NewKey()))
		r.UID, r.Spec.Username, r.Spec.Groups = uid, "system:bootstrap:abc123",
			[]string{contract.BootstrapGroup("harbour", "edge-1")}
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
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: contract.KeyNamespace, Name: "token-abc123-hub"},
		note); err != nil || note.OwnerReferences[0].UID != "u-1" {
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
	if r := d.read(t); err == nil || !strings.Contains(err.Error(), "is lost") || len(r.Status.Certificate) > 0 ||
		has(r, certificatesv1.CertificateFailed) {
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
	if err := d.cluster.Get(t.Context(), client.ObjectKey{Namespace: contract.KeyNamespace, Name: "pool-harbour"},
		secret); err != nil {
		t.Fatal(err)
	}
	s := must(pki.LoadSuccession(secret.Data))
	if err := s.Prepare(must(pki.NewPoolAuthority("harbour", now)), now, pki.Usual()); err != nil {
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
	if _, err := d.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "r"}}); err ==
		nil || len(d.read(t).Status.Certificate) > 0 {
		t.Errorf("the authority of another pool signs: %v", err)
	}
}

// TestBegin: a certificate begins no earlier than what is revoked of its name ends, and is not signed while that is not
// known.
func TestBegin(t *testing.T) {
	d, known := newDesk(newCluster(coordinator())), errors.New("not known")
	d.Begin = func(_ context.Context, pool string, n *corev1.Node, asked *x509.CertificateRequest, _ time.Time) (
		time.Time, error) {
		if pool != "harbour" || n.UID != "u-1" || asked.Subject.CommonName != "system:node:edge-1" {
			t.Errorf("asked for %s of pool %s", asked.Subject, pool)
		}
		return now.Add(-time.Second), known
	}
	d.cluster.put(asked(pki.Hub, must(pki.NewKey())))
	d.step(t)
	if _, err := d.Reconcile(t.Context(), reconcile.Request{
		NamespacedName: types.NamespacedName{Name: "r"},
	}); err == nil || len(d.read(t).Status.Certificate) > 0 {
		t.Errorf("signed while it is not known: %v", err)
	}
	known = nil
	d.step(t)
	if c := must(pki.ParseCertificates(d.read(t).Status.Certificate))[0]; !c.NotBefore.Equal(now.Add(-time.Second)) {
		t.Errorf("it begins %s", c.NotBefore)
	}
}
