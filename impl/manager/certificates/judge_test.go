package certificates

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

// TestGranted: who is entitled gets what it asks for. What is trusted in the pool is signed by the pool's authority,
// what kube-apiserver trusts is approved only.
func TestGranted(t *testing.T) {
	joining := []string{"system:bootstrappers", contract.BootstrapGroup("harbour", "edge-1")}
	for _, c := range []struct {
		what   string
		kind   pki.Kind
		user   string
		groups []string
	}{
		{"a hub, by its kubelet's certificate", pki.Hub, "system:node:edge-1", []string{"system:nodes"}},
		{"a hub, by a token", pki.Hub, "system:bootstrap:abc123", joining},
		{"a hub at the cloud, by its kubelet's certificate", pki.HubAtCloud, "system:node:edge-1", []string{"system:nodes"}},
		{"a hub at the cloud, by a token", pki.HubAtCloud, "system:bootstrap:abc123", joining},
		{"a leader", pki.Forwarder, "system:node:edge-1", []string{"system:nodes"}},
		{"a coordinator", pki.Coordinator, "system:node:edge-1", []string{"system:nodes"}},
		{"a replica", pki.Replica, "system:node:edge-1", []string{"system:nodes"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			d, key, i := newDesk(newCluster(coordinator())), must(pki.NewKey()), pki.Must(c.kind)
			r := asked(c.kind, key)
			r.Spec.Username, r.Spec.Groups = c.user, c.groups
			r = d.work(t, r)
			a := condition(r, certificatesv1.CertificateApproved)
			if a == nil || a.Reason != approvedReason || !strings.Contains(a.Message, "uid u-1") ||
				len(r.Status.Conditions) != 1 || d.count("approved") != 1 {
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
			if cert := must(pki.ParseCertificates(r.Status.Certificate))[0]; !cert.NotAfter.Equal(now.Add(i.Life.Least)) ||
				d.count("signed") != 1 {
				t.Errorf("it ends at %s", cert.NotAfter)
			}
		})
	}
}

// TestWhoMayForward: where a Node of the pool has the label of leaders, only such ones get the certificate of a
// forwarder. Elsewhere each does.
func TestWhoMayForward(t *testing.T) {
	labelled := func(name, pool, value string) *corev1.Node {
		n := coordinator()
		n.Name, n.UID, n.Labels = name, types.UID(name), map[string]string{
			contract.NodePoolLabel: pool, contract.LeaderLabel: value,
		}
		return n
	}
	for what, c := range map[string]struct {
		beside *corev1.Node
		own    string
		may    bool
	}{
		"no node is labelled":            {nil, "", true},
		"another one is":                 {labelled("edge-2", "harbour", "true"), "", false},
		"both are":                       {labelled("edge-2", "harbour", "true"), "true", true},
		"another one is, with false":     {labelled("edge-2", "harbour", "false"), "", true},
		"one of another pool is":         {labelled("quay-1", "quay", "true"), "", true},
		"another one is, itself no more": {labelled("edge-2", "harbour", "true"), "false", false},
	} {
		own := coordinator()
		own.Labels[contract.LeaderLabel] = c.own
		world := newCluster(own)
		if c.beside != nil {
			world.put(c.beside)
		}
		r := newDesk(world).work(t, asked(pki.Forwarder, must(pki.NewKey())))
		if got := has(r, certificatesv1.CertificateApproved); got != c.may ||
			got == has(r, certificatesv1.CertificateDenied) {
			t.Errorf("%s: approved %t, want %t: %+v", what, got, c.may, r.Status.Conditions)
		}
		if !c.may && !strings.Contains(r.Status.Conditions[0].Message, contract.LeaderLabel) {
			t.Errorf("%s: %s", what, r.Status.Conditions[0].Message)
		}
		if c.beside == nil {
			continue
		}
		if r := newDesk(world).work(t, asked(pki.Hub, must(pki.NewKey()))); !has(r, certificatesv1.CertificateApproved) {
			t.Errorf("%s: its hub is refused: %+v", what, r.Status.Conditions)
		}
	}
}

// TestWhoMayLead: the certificate of a hub says that it may lead if its Node has the label, which kubelets cannot
// write; and nobody gets that by asking.
func TestWhoMayLead(t *testing.T) {
	for value, leads := range map[string]bool{"true": true, "false": false, "": false} {
		node := coordinator()
		if value != "" {
			node.Labels[contract.LeaderLabel] = value
		}
		d, key := newDesk(newCluster(node)), must(pki.NewKey())
		r := d.work(t, asked(pki.Hub, key))
		cert := must(pki.ParseCertificates(r.Status.Certificate))[0]
		if got := slices.Contains(cert.Subject.Organization, contract.LeaderGroup); got != leads ||
			len(cert.Subject.Organization) > 3 {
			t.Errorf("label %q: organizations %q, want a leader: %t", value, cert.Subject.Organization, leads)
		}
		if err := pki.Must(pki.Hub).CheckPair(pairOf(r.Status.Certificate, key), subject, d.trusted(t), now); err != nil {
			t.Errorf("label %q: its holder refuses it: %v", value, err)
		}
		for _, kind := range []pki.Kind{pki.Coordinator, pki.Replica} {
			r := d.work(t, asked(kind, must(pki.NewKey())))
			if cert := must(pki.ParseCertificates(r.Status.Certificate))[0]; slices.Contains(cert.Subject.Organization,
				contract.LeaderGroup) {
				t.Errorf("a %s may lead", kind)
			}
		}
	}
	d, key := newDesk(newCluster(coordinator())), must(pki.NewKey())
	r := asked(pki.Hub, key)
	text := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: "system:node:edge-1", Organization: []string{
			contract.HubGroup, contract.PoolGroupPrefix + "harbour", contract.LeaderGroup,
		},
	}}, key))
	r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: text})
	if r = d.work(t, r); !has(r, certificatesv1.CertificateDenied) || len(r.Status.Certificate) > 0 {
		t.Errorf("who asks for it gets it: %+v", r.Status.Conditions)
	}
}

// TestUsualLife: who asks for no life gets the usual one.
func TestUsualLife(t *testing.T) {
	d := newDesk(newCluster(coordinator()))
	r := asked(pki.Hub, must(pki.NewKey()))
	r.Spec.ExpirationSeconds = nil
	if cert := must(pki.ParseCertificates(d.work(t, r).Status.Certificate))[0]; !cert.NotAfter.Equal(
		now.Add(pki.Must(pki.Hub).Life.Usual)) {
		t.Errorf("it ends at %s", cert.NotAfter)
	}
}

// TestRefused: what does not agree is denied with what does not, once, by condition, Event and metric; and it is never
// signed.
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
		{
			"an extra organization", pki.Hub,
			name("system:node:edge-1", "openyurt:yurthub", "weir:pool:harbour", "system:masters"), "organization",
		},
		{"an organization at the cloud", pki.HubAtCloud, name("weir:hub:harbour:edge-1", "system:masters"), "organization"},
		{
			"another pool's name", pki.Hub, name("system:node:edge-1", "openyurt:yurthub", "weir:pool:lighthouse"),
			"organization",
		},
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
		{
			"a token for another node", pki.Hub, as("system:bootstrap:abc123", contract.BootstrapGroup("harbour", "edge-2")),
			"requester",
		},
		{
			"a token for another pool", pki.Hub, as("system:bootstrap:abc123", contract.BootstrapGroup("lighthouse", "edge-1")),
			"requester",
		},
		{"a token for any node", pki.Hub, as("system:bootstrap:abc123", "system:bootstrappers"), "requester"},
		{
			"a token that is none", pki.Hub, as("system:bootstrap:../x", contract.BootstrapGroup("harbour", "edge-1")),
			"requester",
		},
		{
			"a token for forwarding", pki.Forwarder, as("system:bootstrap:abc123", contract.BootstrapGroup("harbour", "edge-1")),
			"requester",
		},
		{
			"a token for a coordinator", pki.Coordinator,
			as("system:bootstrap:abc123", contract.BootstrapGroup("harbour", "edge-1")), "requester",
		},
		{"another node", pki.Hub, as("system:node:edge-2", "system:nodes"), "requester"},
		{"a node without its group", pki.Hub, as("system:node:edge-1", "system:authenticated"), "requester"},
		{"its hub's own user, who may ask for nothing", pki.Hub, as("weir:hub:harbour:edge-1"), "requester"},
		{"its hub's own user at the cloud", pki.HubAtCloud, as("weir:hub:harbour:edge-1", "system:nodes"), "requester"},
		{"a hub of another pool", pki.Hub, as("weir:hub:lighthouse:edge-1"), "requester"},
		{"a hub of another node", pki.Hub, as("weir:hub:harbour:edge-2"), "requester"},
		{"a person", pki.Hub, as("ann", "system:masters"), "requester"},
		{"a person for a coordinator", pki.Coordinator, as("ann", "system:masters"), "requester"},
		{
			"a replica's name that is another's", pki.Replica,
			name("weir:coordinator:harbour:two", "weir:coordinators", "weir:pool:harbour"), "common name",
		},
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
		{
			"too much", pki.Hub, func(r *request) {
				r.Spec.Request = append(r.Spec.Request, bytes.Repeat([]byte("\n"), 1<<20)...)
			}, "request",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := newDesk(newCluster(coordinator(), node("edge-2", "harbour", "u-2", time.Hour)))
			r := asked(c.kind, must(pki.NewKey()))
			c.change(r)
			d.refused(t, d.work(t, r), certificatesv1.CertificateDenied, c.field)
		})
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
		where string // pool and Node, as the metric has them
	}{
		{"there is none", pki.Hub, node("edge-2", "harbour", "u-2", time.Hour), "node", "/"},
		{"it is younger than the request", pki.Hub, node("edge-1", "harbour", "u-3", -time.Minute), "node", "/"},
		{"it is being deleted", pki.Hub, leaving, "node", "/"},
		{"it is in no pool", pki.Hub, node("edge-1", "", "u-1", time.Hour), "pool", "/edge-1"},
		{
			"it is in another pool", pki.Hub, node("edge-1", "lighthouse", "u-1", time.Hour), "organization",
			"lighthouse/edge-1",
		},
		{"its pool cannot be a name", pki.Hub, node("edge-1", "Harbour_1", "u-1", time.Hour), "pool", "Harbour_1/edge-1"},
		{
			"it may not be a coordinator", pki.Coordinator, node("edge-1", "harbour", "u-1", time.Hour), "node",
			"harbour/edge-1",
		},
		{"it may not be a replica", pki.Replica, node("edge-1", "harbour", "u-1", time.Hour), "node", "harbour/edge-1"},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := newDesk(newCluster(c.node))
			where := d.refused(t, d.work(t, asked(c.kind, must(pki.NewKey()))), certificatesv1.CertificateDenied, c.field)
			if where != c.where {
				t.Errorf("the refusal is counted for %q, want %q", where, c.where)
			}
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
