package managertest

import (
	"crypto/x509"
	"log/slog"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
	"github.com/weir-edge/weir/sim/cloud"
)

// testRevocation: a Node that is deleted at a real kube-apiserver is denied in its pool, reads its pool's list no more,
// and does not register itself again. The node beside it goes on, and a node of the same name that an administrator
// makes gets certificates that are valid.
func testRevocation(t *testing.T, w *world) {
	const pool = "revoked"
	w.nodes(t, pool, "v-1", "v-2")
	as := func(node string) kubernetes.Interface {
		return w.as("system:node:"+node, "system:nodes", "system:authenticated")
	}
	hub := func(node string) kubernetes.Interface { return w.as("weir:hub:"+pool+":"+node, "system:authenticated") }
	certificate := func(name, node string) *certificatesv1.CertificateSigningRequest {
		send(t, as(node), ask(t, name, weirpki.Hub, weirpki.Subject{Pool: pool, Node: node}, newKey(t)))
		var r *certificatesv1.CertificateSigningRequest
		w.eventually(t, name+" is signed", func() bool {
			r, _ = w.outcome(t, name, certificatesv1.CertificateApproved)
			return len(r.Status.Certificate) > 0
		})
		return r
	}
	old, beside := certificate("v-1-old", "v-1"), certificate("v-2", "v-2")
	maps := func(c kubernetes.Interface, name string) error {
		_, err := c.CoreV1().ConfigMaps(contract.KeyNamespace).Get(t.Context(), name, metav1.GetOptions{})
		return err
	}
	for _, c := range []kubernetes.Interface{as("v-1"), hub("v-1"), as("v-2"), hub("v-2")} {
		w.eventually(t, "a node of the pool reads whom to trust", func() bool { return maps(c, "pool-"+pool) == nil })
		if err := maps(c, contract.DenylistPrefix+pool); !apierrors.IsNotFound(err) {
			t.Errorf("nothing was taken back, and a node reads: %v", err)
		}
		for _, other := range []string{
			contract.RosterPrefix + pool, contract.DenylistPrefix + "certified", "pool-certified",
		} {
			if err := maps(c, other); !apierrors.IsForbidden(err) {
				t.Errorf("a node of the pool reads %s: %v", other, err)
			}
		}
	}
	if err := maps(as("c-1"), contract.DenylistPrefix+pool); !apierrors.IsForbidden(err) {
		t.Errorf("a node of another pool reads the list: %v", err)
	}

	began := time.Now()
	seen, err := hub("v-2").CoreV1().ConfigMaps(contract.KeyNamespace).Watch(t.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + contract.DenylistPrefix + pool})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	if err := w.client.CoreV1().Nodes().Delete(t.Context(), "v-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	text := (<-seen.ResultChan()).Object.(*corev1.ConfigMap).Data[contract.DenylistKey]
	t.Logf("the list of one entry is there after %v: %d bytes", time.Since(began).Round(time.Millisecond), len(text))
	bundle, err := hub("v-2").CoreV1().ConfigMaps(contract.KeyNamespace).
		Get(t.Context(), "pool-"+pool, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	authorities := must(weirpki.ParseCertificates([]byte(bundle.Data["ca.crt"])))
	held := trust.NewDenylist(trust.DenylistConfig{
		Pool: pool, Trusted: func() []*x509.Certificate { return authorities }, Logger: slog.New(slog.DiscardHandler),
	})
	refused := func(r *certificatesv1.CertificateSigningRequest) bool {
		return held.Refuse(must(weirpki.ParseCertificates(r.Status.Certificate))[0]) != nil
	}
	if refused(old) || refused(beside) {
		t.Error("refused without a list")
	}
	if _, err := held.Take([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if !refused(old) || refused(beside) {
		t.Errorf("the deleted node is refused: %t, and the one beside it: %t", refused(old), refused(beside))
	}
	w.eventually(t, "its grant is gone", func() bool {
		return apierrors.IsForbidden(maps(as("v-1"), "pool-"+pool)) && apierrors.IsForbidden(maps(hub("v-1"), "pool-"+pool))
	})
	if err := maps(hub("v-2"), "pool-"+pool); err != nil {
		t.Errorf("the node beside it: %v", err)
	}

	register := func(node string) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{corev1.LabelHostname: node}}}
		_, err := as(node).CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		return err
	}
	w.eventually(t, "it cannot register itself again", func() bool {
		err := register("v-1")
		if err == nil { // the policy reads its ConfigMap by a watch: it may be a moment behind
			return w.client.CoreV1().Nodes().Delete(t.Context(), "v-1", metav1.DeleteOptions{}) != nil
		}
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "weir-revoked")
	})
	if err := register("v-9"); err != nil {
		t.Errorf("a node that was never deleted registers itself: %v", err)
	}
	if err := w.cloud.CreateNodes(t.Context(), cloud.Node{Name: "v-1", Pool: pool, Address: "127.10.0.1"}); err != nil {
		t.Fatalf("an administrator makes it again: %v", err)
	}
	again := certificate("v-1-again", "v-1")
	if !refused(old) || refused(again) {
		t.Errorf("of the new node its old certificate is refused: %t, its new one: %t", refused(old), refused(again))
	}
	first := held.Number()
	if err := w.client.CoreV1().Nodes().Delete(t.Context(), "v-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	text = (<-seen.ResultChan()).Object.(*corev1.ConfigMap).Data[contract.DenylistKey]
	if _, err := held.Take([]byte(text)); err != nil || !refused(again) || held.Number() <= first {
		t.Errorf("deleted again: refused %t, number %d after %d, %v", refused(again), held.Number(), first, err)
	}
	w.eventually(t, "it is barred again", func() bool { return apierrors.IsForbidden(register("v-1")) })
	if _, err := w.client.CoreV1().ConfigMaps(contract.ManagerNamespace).Patch(t.Context(), contract.RevokedNodes,
		types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/data/v-1"}]`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "its name was taken out: it registers itself", func() bool { return register("v-1") == nil })
}
