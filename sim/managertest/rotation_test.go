package managertest

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/operator/certificates"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// testRotation: the authority of a pool is replaced at a real cluster, with the grants of the manifests. A node of the
// pool follows each step by what it may read. A second order within a minute breaks nothing; a lost key is replaced.
func testRotation(t *testing.T, w *world) {
	w.nodes(t, "rotated", "rotated-1")
	node := w.as("system:node:rotated-1", "system:nodes", "system:authenticated")
	subject := weirpki.Subject{Pool: "rotated", Node: "rotated-1"}
	held := trust.New(trust.Config{Pool: "rotated", Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	read := func() bool {
		m, err := node.CoreV1().ConfigMaps(contract.KeyNamespace).Get(t.Context(), "pool-rotated", metav1.GetOptions{})
		if err == nil {
			_, err = held.TakeOfCloud([]byte(m.Data[contract.TrustKey]))
		}
		return err == nil
	}
	signed := func(name string) {
		t.Helper()
		key := newKey(t)
		send(t, node, ask(t, name, weirpki.Hub, subject, key))
		w.eventually(t, name+" is signed by the authority that signs now", func() bool {
			r, err := w.client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || len(r.Status.Certificate) == 0 || !read() {
				return false
			}
			chain, err := weirpki.ParseCertificates(r.Status.Certificate)
			return err == nil && weirpki.IssuedBy(chain[0], held.Signer()) &&
				weirpki.Must(weirpki.Hub).Verify(chain, held.List(), time.Now()) == nil
		})
	}
	if err := certificates.AskRotation(t.Context(), w.client, "nowhere",
		trust.Order{ID: "x", Settle: "10s", Overlap: "30s"}); err == nil ||
		!strings.Contains(err.Error(), "has no authority") {
		t.Errorf("an unknown pool: %v", err)
	}
	signed("before-rotation")
	first := held.Signer()
	o := trust.Order{ID: "one", Settle: "10m", Overlap: "30s"}
	rotate := func() {
		t.Helper()
		order(t, w, "rotated", o)
	}
	rotate()
	if err := certificates.AskRotation(t.Context(), w.client, "rotated", o); err == nil ||
		!strings.Contains(err.Error(), "under way") {
		t.Errorf("rotated twice: %v", err)
	}
	if read(); len(held.List()) != 2 || !held.Signer().Equal(first) {
		t.Errorf("prepared: %d are trusted", len(held.List()))
	}
	if err := tell(t, node, "rotated-1", digest.Holding{Trust: held.Number()}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "another one signs, since all have heard of it",
		func() bool { return read() && !held.Signer().Equal(first) && len(held.List()) == 2 })
	signed("after-switch")
	w.eventually(t, "the one before is retired", func() bool { return read() && len(held.List()) == 1 })
	second := held.Signer()

	if err := w.client.CoreV1().Secrets(contract.KeyNamespace).Delete(t.Context(), "pool-rotated",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.ID, o.LostKey, o.Settle = "lost", true, "10s"
	rotate()
	w.eventually(t, "another one is trusted, beside the lost one",
		func() bool { return read() && !held.Signer().Equal(second) && len(held.List()) == 2 })
	signed("after-loss")
	w.eventually(t, "Events tell of it", func() bool {
		events, err := w.client.EventsV1().Events(contract.KeyNamespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, e := range events.Items {
			if e.Regarding.Kind == "ConfigMap" && e.Regarding.Name == "pool-rotated" &&
				strings.Contains(e.Note, "pool rotated") {
				seen[e.Reason] = true
			}
		}
		return seen["AuthorityPrepared"] && seen["AuthoritySwitched"] && seen["AuthorityRetired"] && seen["AuthorityReplaced"]
	})
	if _, err := node.CoreV1().ConfigMaps(contract.KeyNamespace).Get(t.Context(), "pool-certified",
		metav1.GetOptions{}); err == nil {
		t.Error("a node reads whom another pool trusts")
	}
}

// order asks for a rotation, and waits until weir-manager answers, which it does at once.
func order(t *testing.T, w *world, pool string, o trust.Order) {
	t.Helper()
	if err := certificates.AskRotation(t.Context(), w.client, pool, o); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.eventually(t, "weir-manager answers", func() bool {
		p, err := certificates.Rotation(t.Context(), w.client, pool)
		return err == nil && p.Order == o.ID && p.Refused == ""
	})
	t.Logf("the order is carried out after %v", time.Since(began).Round(time.Millisecond))
}
