package managertest

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	weirpki "github.com/weir-edge/weir/impl/pki"
)

// at sends requests to a server, whatever their address says.
type at struct {
	http.RoundTripper
	host string
}

func (a at) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = a.host
	return a.RoundTripper.RoundTrip(req)
}

// keep runs a Keeper of a node, which asks as a user, until the test ends.
func (w *world) keep(t *testing.T, dir string, k weirpki.Kind, node, user string, groups ...string) *credential.Keeper {
	t.Helper()
	c := w.cloud.RESTConfig()
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	tr, err := rest.TransportFor(c)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(w.cloud.URL())
	if err != nil {
		t.Fatal(err)
	}
	config := credential.KeeperConfig{
		Identity: weirpki.Must(k), Subject: weirpki.Subject{Pool: "enrolled", Node: node}, Dir: dir,
		Clock: clock.RealClock{}, Metrics: credential.NewKeeperMetrics(), Logger: slog.New(slog.DiscardHandler),
	}
	if config.Identity.Issuer == weirpki.PoolIssuer {
		config.Trusted = func() []*x509.Certificate { return w.authorities(t, "enrolled") }
	}
	keeper, err := credential.OpenKeeper(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- keeper.Run(ctx, at{tr, server.Host}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if idle, ok := tr.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	})
	return keeper
}

// authorities are those of a pool as the cluster tells of them; none: there is no pool yet.
func (w *world) authorities(t *testing.T, pool string) []*x509.Certificate {
	trust, err := w.client.CoreV1().ConfigMaps(contract.KeyNamespace).Get(t.Context(), "pool-"+pool, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	all, err := weirpki.ParseCertificates([]byte(trust.Data["ca.crt"]))
	if err != nil {
		t.Error(err)
	}
	return all
}

// askEarly lets a node ask while no manager runs.
func askEarly(t *testing.T, w *world, dir string) *credential.Keeper {
	w.nodes(t, "enrolled", "e-1", "e-2")
	early := w.keep(t, dir, weirpki.Hub, "e-1", "system:node:e-1", "system:nodes", "system:authenticated")
	w.eventually(t, "a request waits for a manager", func() bool {
		return strings.Contains(early.Status().LastError, "nobody has answered")
	})
	return early
}

// testEnrol: nodes get certificates by themselves, from a real cluster: as nodes and by bootstrap tokens. What is not
// theirs they do not get, and say why.
func testEnrol(t *testing.T, w *world, early *credential.Keeper, dir string) {
	w.eventually(t, "the node that asked before there was a manager has its certificate",
		func() bool { return early.Get() != nil })
	first := early.Get().Leaf
	again := w.keep(t, dir, weirpki.Hub, "e-1", "nobody")
	if c := again.Get(); c == nil || !c.Leaf.Equal(first) {
		t.Error("after a restart it is not there")
	}

	token := func(id, of string) (user string, groups []string) {
		return "system:bootstrap:" + id, []string{
			"system:bootstrappers", contract.BootstrapGroup("enrolled", of), "system:authenticated",
		}
	}
	user, groups := token("aaa111", "e-2")
	joins := w.keep(t, t.TempDir(), weirpki.Hub, "e-2", user, groups...)
	w.eventually(t, "a node joins by a token", func() bool { return joins.Get() != nil })
	for _, c := range []struct{ what, id, of, field string }{
		{"a token a second time", "aaa111", "e-2", "token"},
		{"a token of another node", "aaa112", "e-1", "requester"},
	} {
		user, groups := token(c.id, c.of)
		k := w.keep(t, t.TempDir(), weirpki.Hub, "e-2", user, groups...)
		w.eventually(t, c.what+" is denied", func() bool {
			return strings.Contains(k.Status().LastError, "(WeirDenied): "+c.field+":")
		})
		if k.Get() != nil {
			t.Errorf("%s: a certificate", c.what)
		}
	}
	stranger := w.keep(t, t.TempDir(), weirpki.Hub, "e-2", "somebody", "system:authenticated")
	w.eventually(t, "who may not ask is told so", func() bool {
		return strings.Contains(stranger.Status().LastError, "forbidden")
	})

	forwarder := w.keep(t, "", weirpki.Forwarder, "e-1", "system:node:e-1", "system:nodes", "system:authenticated")
	requests := w.client.CertificatesV1().CertificateSigningRequests()
	w.eventually(t, "the certificate of a forwarder is approved, and signed by who signs for kube-apiserver", func() bool {
		list, err := requests.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			r := &list.Items[i]
			if !strings.HasPrefix(r.Name, "weir-forwarder-") || len(r.Status.Certificate) > 0 || len(r.Status.Conditions) == 0 {
				continue
			}
			if c := r.Status.Conditions[0]; c.Type != certificatesv1.CertificateApproved {
				t.Fatalf("%s is %s: %s", r.Name, c.Type, c.Message)
			}
			i := weirpki.Must(weirpki.Forwarder)
			r.Status.Certificate = must(w.cloud.CA().Answer(i, weirpki.Subject{Pool: "enrolled", Node: "e-1"},
				must(weirpki.ParseRequest(r.Spec.Request)), i.Life.Usual))
			if _, err := requests.UpdateStatus(t.Context(), r, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		return forwarder.Get() != nil
	})
}
