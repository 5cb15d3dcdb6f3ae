package managertest

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// testRecall: a cluster loses what it wrote after a backup: a deletion, and the roster that would tell of it. A hub of
// the pool, by its own rights, gives back what it holds. The denylist goes on above it, and the Node that came back
// gets no certificate. The same of a bundle of authorities. A backup is restored at once: so no manager runs meanwhile.
func testRecall(t *testing.T, w *world, before *run) (after *run) {
	const pool = "recalled"
	w.nodes(t, pool, "back-1", "back-2")
	r1 := w.as("system:node:back-1", "system:nodes", "system:authenticated")
	send(t, r1, ask(t, "recalled-1", weirpki.Hub, weirpki.Subject{Pool: pool, Node: "back-1"}, newKey(t)))
	if _, message := w.outcome(t, "recalled-1", certificatesv1.CertificateApproved); message == "" {
		t.Fatal("it is not approved")
	}
	maps := w.client.CoreV1().ConfigMaps(contract.KeyNamespace)
	as := w.cloud.RESTConfig()
	as.Impersonate = rest.ImpersonationConfig{
		UserName: contract.HubUserPrefix + pool + ":back-2", Groups: []string{"system:authenticated"},
	}
	cloud := toCloud{must(rest.TransportFor(as)), must(url.Parse(as.Host))}
	log := slog.New(slog.DiscardHandler)
	trusted := trust.New(trust.Config{Pool: pool, Logger: log})
	held := trust.NewDenylist(trust.DenylistConfig{Pool: pool, Trusted: trusted.List, Logger: log})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	for _, run := range []func(){
		func() { trusted.Follow(ctx, cloud, clock.RealClock{}) },
		func() { held.Follow(ctx, cloud, clock.RealClock{}) },
		func() {
			bulletin.Returner{
				Pool: pool, Cloud: cloud, Clock: clock.RealClock{}, Logger: log,
				Board: bulletin.Board{trusted.Document, held.Document},
			}.Run(ctx)
		},
	} {
		go func() { run(); done <- struct{}{} }()
	}
	w.eventually(t, "the hub knows whom to trust", func() bool { return trusted.Number() > 0 })
	roster, err := maps.Get(t.Context(), contract.RosterPrefix+pool, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	former, err := w.client.CoreV1().Nodes().Get(t.Context(), "back-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.client.CoreV1().Nodes().Delete(t.Context(), "back-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "the hub holds the denylist", func() bool { return held.Number() > 0 })
	number := held.Number()

	// What a backup does not have.
	if err := maps.Delete(t.Context(), contract.DenylistPrefix+pool, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), roster.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.eventually(t, "the denylist is there again, above what the hub held, and forgets nothing", func() bool {
		m, err := maps.Get(t.Context(), contract.DenylistPrefix+pool, metav1.GetOptions{})
		if err != nil {
			return false
		}
		l, _, err := trust.OpenDenylist([]byte(m.Data[contract.DenylistKey]), pool, trusted.List())
		return err == nil && l.Number > number && len(l.Entries) == 1 && l.Entries[0].UID == string(former.UID) &&
			l.Entries[0].Deleted
	})
	t.Logf("recalled after %v", time.Since(began).Round(time.Millisecond))
	w.eventually(t, "the hub lacks nothing", func() bool {
		return held.Number() > number && len(held.Lacking(time.Now())) == 0
	})

	// Bundles: the cluster is restored to before a rotation was prepared.
	key := contract.AuthorityPrefix + pool
	secrets := w.client.CoreV1().Secrets(contract.KeyNamespace)
	told, err := maps.Get(t.Context(), key, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := secrets.Get(t.Context(), key, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := trusted.Signer()
	order(t, w, pool, trust.Order{ID: "recalled", Settle: "10s", Overlap: "1h"})
	w.eventually(t, "another one signs", func() bool { return !trusted.Signer().Equal(first) })
	second, last := trusted.Signer(), trusted.Number()
	if err := before.end(); err != nil {
		t.Fatal(err)
	}
	restore := func(get func() (string, error), put func(version string) error) {
		w.eventually(t, "it is restored", func() bool {
			version, err := get()
			if err == nil {
				err = put(version)
			}
			if err != nil && !apierrors.IsConflict(err) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	restore(func() (string, error) {
		s, err := secrets.Get(t.Context(), key, metav1.GetOptions{})
		return s.ResourceVersion, err
	}, func(version string) error {
		s := secret.DeepCopy()
		s.ResourceVersion = version
		_, err := secrets.Update(t.Context(), s, metav1.UpdateOptions{})
		return err
	})
	restore(func() (string, error) {
		m, err := maps.Get(t.Context(), key, metav1.GetOptions{})
		return m.ResourceVersion, err
	}, func(version string) error {
		m := told.DeepCopy()
		m.ResourceVersion = version
		_, err := maps.Update(t.Context(), m, metav1.UpdateOptions{})
		return err
	})
	after = w.manage(w.t, nil)
	w.eventually(t, "the first authority signs again, above what the hub held, and the second counts", func() bool {
		return trusted.Number() > last && trusted.Signer().Equal(first) && contains(trusted.List(), second)
	})
	cancel()
	for range 3 {
		<-done
	}
	if _, err := maps.Patch(t.Context(), contract.ReturnedPrefix+pool, types.MergePatchType,
		[]byte(`{"data":{"list":"forged"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	stranger := w.as(contract.HubUserPrefix+"elsewhere:back-2", "system:authenticated")
	if _, err := stranger.CoreV1().ConfigMaps(contract.KeyNamespace).Update(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: contract.ReturnedPrefix + pool},
	}, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a hub of another pool gives something back: %v", err)
	}
	if resp, err := (&http.Client{Transport: cloud}).Get("https://cloud/api/v1/namespaces/" + contract.KeyNamespace +
		"/configmaps/" + contract.RosterPrefix + pool); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("a hub reads the roster: %v", err)
	} else {
		_ = resp.Body.Close()
	}
	return after
}

func contains(all []*x509.Certificate, c *x509.Certificate) bool {
	for _, o := range all {
		if o.Equal(c) {
			return true
		}
	}
	return false
}
