package managertest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	weirpki "github.com/weir-edge/weir/impl/pki"
)

// ask makes a request of a kind, for a key.
func ask(t *testing.T, name string, k weirpki.Kind, s weirpki.Subject,
	key *ecdsa.PrivateKey) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	i := weirpki.Must(k)
	text, err := i.Request(s, key)
	if err != nil {
		t.Fatal(err)
	}
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Spec = certificatesv1.CertificateSigningRequestSpec{
		Request: text, SignerName: i.Signer, ExpirationSeconds: ptr.To[int32](3600),
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature},
	}
	if i.Client {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageClientAuth)
	}
	if i.Server {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
	}
	return r
}

// named is what asks for any name.
func named(t *testing.T, commonName string, organizations ...string) []byte {
	t.Helper()
	text := &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName, Organization: organizations}}
	return pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE REQUEST", Bytes: must(x509.CreateCertificateRequest(rand.Reader, text, newKey(t))),
	})
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := weirpki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func send(t *testing.T, c kubernetes.Interface,
	r *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	made, err := c.CertificatesV1().CertificateSigningRequests().Create(t.Context(), r, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// outcome waits until a request has a condition of a type, and returns it. One with another outcome fails the test.
func (w *world) outcome(t *testing.T, name string, want certificatesv1.RequestConditionType) (
	r *certificatesv1.CertificateSigningRequest, message string) {
	t.Helper()
	w.eventually(t, name+" is "+string(want), func() bool {
		var err error
		if r, err = w.client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{}); err !=
			nil {
			t.Fatal(err)
		}
		for _, c := range r.Status.Conditions {
			if c.Type == want {
				message = c.Message
				return true
			}
			if c.Reason != "ByAdmin" {
				t.Fatalf("%s is %s: %s", name, c.Type, c.Message)
			}
		}
		return false
	})
	return r, message
}

// approveTheWrong lets an administrator approve a request that breaks the rules, while no manager runs.
func approveTheWrong(t *testing.T, w *world) string {
	w.nodes(t, "certified", "c-0")
	r := ask(t, "approved-wrong", weirpki.Hub, weirpki.Subject{Pool: "lighthouse", Node: "c-0"}, newKey(t))
	r = send(t, w.as("system:node:c-0", "system:nodes", "system:authenticated"), r)
	r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByAdmin"},
	}
	if _, err := w.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), r.Name, r,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return r.Name
}

// testCertificates: nodes get the certificates that are theirs, by the API of a real cluster and with the grants of the
// manifests. What is not theirs is denied.
func testCertificates(t *testing.T, w *world, approved string) {
	w.nodes(t, "certified", "c-1", "c-2")
	subject := weirpki.Subject{Pool: "certified", Node: "c-1", Name: "one", Hosts: []string{"127.10.0.1"}}
	node := w.as("system:node:c-1", "system:nodes", "system:authenticated")
	token := func(id, node string) kubernetes.Interface {
		return w.as("system:bootstrap:"+id, "system:bootstrappers", contract.BootstrapGroup("certified", node),
			"system:authenticated")
	}
	// signed waits for a certificate and judges it as its holder does.
	signed := func(name string, k weirpki.Kind, key *ecdsa.PrivateKey) {
		w.eventually(t, name+" is signed", func() bool {
			r, err := w.client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && len(r.Status.Certificate) > 0
		})
		r, _ := w.outcome(t, name, certificatesv1.CertificateApproved)
		trust, err := w.client.CoreV1().ConfigMaps(contract.KeyNamespace).Get(t.Context(), "pool-certified",
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		authorities, err := weirpki.ParseCertificates([]byte(trust.Data["ca.crt"]))
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		pair := &weirpki.Pair{
			CertPEM: r.Status.Certificate, KeyPEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		}
		if err := weirpki.Must(k).CheckPair(pair, subject, authorities, time.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	key := newKey(t)
	send(t, node, ask(t, "hub", weirpki.Hub, subject, key))
	signed("hub", weirpki.Hub, key)
	send(t, token("abc123", "c-1"), ask(t, "joins", weirpki.Hub, subject, key))
	signed("joins", weirpki.Hub, key)
	send(t, node, ask(t, "cloud", weirpki.HubAtCloud, subject, key))
	if r, message := w.outcome(t, "cloud", certificatesv1.CertificateApproved); len(r.Status.Certificate) > 0 ||
		!strings.Contains(message, string(w.node(t, "c-1").UID)) {
		t.Errorf("approved %q, and signed: %v", message, len(r.Status.Certificate) > 0)
	}
	label := []byte(`{"metadata":{"labels":{"` + contract.CoordinatorLabel + `":"one"}}}`)
	if _, err := node.CoreV1().Nodes().Patch(t.Context(), "c-1", types.MergePatchType, label,
		metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a node makes itself a coordinator: %v", err)
	}
	send(t, node, ask(t, "no-replica", weirpki.Replica, subject, key))
	w.outcome(t, "no-replica", certificatesv1.CertificateDenied)
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), "c-1", types.MergePatchType, label,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	send(t, node, ask(t, "replica", weirpki.Replica, subject, key))
	signed("replica", weirpki.Replica, key)

	hub := func(s weirpki.Subject) *certificatesv1.CertificateSigningRequest {
		return ask(t, "", weirpki.Hub, s, newKey(t))
	}
	extra := hub(subject)
	extra.Spec.Request = named(t, "system:node:c-1", contract.HubGroup, "weir:pool:certified", "system:nodes")
	decade := hub(subject)
	decade.Spec.ExpirationSeconds = ptr.To[int32](10 * 365 * 24 * 3600)
	stolen := hub(subject)
	theirs, mine := must(weirpki.ParseRequest(hub(subject).Spec.Request)), must(weirpki.ParseRequest(stolen.Spec.Request))
	stolen.Spec.Request = pem.EncodeToMemory(&pem.Block{
		Type:  "CERTIFICATE REQUEST",
		Bytes: bytes.Replace(mine.Raw, mine.RawSubjectPublicKeyInfo, theirs.RawSubjectPublicKeyInfo, 1),
	})
	stolen.Name = "another-key" // kube-apiserver refuses it before weir-manager would
	if _, err := node.CertificatesV1().CertificateSigningRequests().Create(t.Context(), stolen,
		metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("another's public key: %v", err)
	}
	late := hub(subject)
	for _, c := range []struct {
		name    string
		as      kubernetes.Interface
		request *certificatesv1.CertificateSigningRequest
		field   string
	}{
		{"extra-organization", node, extra, "organization"},
		{"another-pool", node, hub(weirpki.Subject{Pool: "delegated", Node: "c-1"}), "organization"},
		{"another-node", node, hub(weirpki.Subject{Pool: "certified", Node: "c-2"}), "requester"},
		{"ten-years", node, decade, "life"},
		{"token-of-another-node", token("abc124", "c-2"), hub(subject), "requester"},
		{"token-again", token("abc123", "c-1"), late, "token"},
		{
			"no-node", w.as("system:node:c-9", "system:nodes", "system:authenticated"),
			hub(weirpki.Subject{Pool: "certified", Node: "c-9"}), "node",
		},
		{
			"forwards-for-another", node, ask(t, "", weirpki.Forwarder, weirpki.Subject{Pool: "certified", Node: "c-2"},
				newKey(t)), "requester",
		},
	} {
		c.request.Name = c.name
		send(t, c.as, c.request)
		if r, message := w.outcome(t, c.name, certificatesv1.CertificateDenied); !strings.HasPrefix(message, c.field+": ") ||
			len(r.Status.Certificate) > 0 {
			t.Errorf("%s: %s", c.name, message)
		}
	}
	w.outcome(t, approved, certificatesv1.CertificateFailed)
	w.eventually(t, "an Event tells of what was denied", func() bool {
		events, err := w.client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Regarding.Kind == "CertificateSigningRequest" && e.Regarding.Name == "ten-years" && e.Reason == "WeirDenied" {
				return true
			}
		}
		return false
	})

	manager := w.as(managerUser, accounts...)
	if _, err := manager.CoreV1().Secrets(contract.KeyNamespace).List(
		t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("weir-manager lists keys: %v", err)
	}
	if _, err := node.CoreV1().Secrets(contract.KeyNamespace).Get(t.Context(), "pool-certified",
		metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a node reads the key of its pool: %v", err)
	}
	cloud, _ := w.outcome(t, "cloud", certificatesv1.CertificateApproved)
	signedHub, _ := w.outcome(t, "hub", certificatesv1.CertificateApproved)
	cloud.Status.Certificate = signedHub.Status.Certificate
	if _, err := manager.CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), cloud,
		metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("weir-manager signs what kube-apiserver trusts: %v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
