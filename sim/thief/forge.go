package thief

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	decided = time.Minute // for weir-manager to say something
	look    = 200 * time.Millisecond
	tenth   = 10 * 365 * 24 * 60 * 60 // seconds of ten years
	hour    = 60 * 60
)

// Request is one for a certificate, and what came of it.
type Request struct {
	Name    string
	Control bool // it is the node's own, and has to be signed
	Signed  bool
	PEM     []byte // what was signed
	Said    string // why not
	// Wrong tells what is not as it has to be; "": nothing. A request that is refused for another reason than its own
	// proves nothing.
	Wrong string
}

// plan is a request that will be sent.
type plan struct {
	name    string
	by      kubernetes.Interface
	kind    weirpki.Kind
	subject weirpki.Subject
	change  func(*x509.CertificateRequest) // of what is asked for; may be nil
	text    []byte                         // instead of one with a key of its own
	seconds int32                          // 0: an hour
	field   string                         // that the refusal names; "": it has to be signed
}

// Forge asks in the name of a node for certificates that are not its own, each beside one that is: with its
// credentials, and by bootstrap tokens. other is a node of the same pool.
func Forge(ctx context.Context, site runtime.Site, pool, node, other string) ([]Request, error) {
	vault, ok := site.(runtime.Vault)
	if !ok {
		return nil, errors.New("this runtime does not give away keys of nodes")
	}
	me, err := atCloud(vault, pool, node)
	if err != nil {
		return nil, err
	}
	her, err := atCloud(vault, pool, other)
	if err != nil {
		return nil, err
	}
	var failed error
	client := func(c *rest.Config) kubernetes.Interface {
		k, err := kubernetes.NewForConfig(c)
		failed = errors.Join(failed, err)
		return k
	}
	desk := &tokens{admin: client(site.Admin()), pool: pool}
	defer desk.drop(context.WithoutCancel(ctx))
	token := func(of string, lasts time.Duration) kubernetes.Interface {
		text, err := desk.issue(ctx, of, lasts)
		failed = errors.Join(failed, err)
		c := rest.AnonymousClientConfig(site.Admin())
		c.BearerToken = text
		return client(c)
	}
	mine, hers := weirpki.Subject{Pool: pool, Node: node}, weirpki.Subject{Pool: pool, Node: other}
	asNode, asHub := client(as(vault, me["node"])), client(as(vault, me["hub"]))
	hub, cloud := weirpki.Hub, weirpki.HubAtCloud
	stolen, err := text(hub, hers, nil)
	if err != nil || failed != nil {
		return nil, errors.Join(err, failed)
	}
	// kube-apiserver learns of tokens in the order in which they are made. One that counts shows that it knows those
	// before it.
	late, first, second, third, of := token(node, -time.Hour), token(node, time.Hour), token(node, time.Hour),
		token(other, time.Hour), token(node, time.Hour)
	if err := errors.Join(failed, known(ctx, of)); err != nil {
		return nil, err
	}
	plans := []plan{
		{name: "its own, as the node", by: asNode, kind: hub, subject: mine},
		{name: "its own at the cloud", by: asNode, kind: cloud, subject: mine},
		{name: "its own, by its token", by: first, kind: hub, subject: mine},
		{name: "its own at the cloud, by the same token", by: first, kind: cloud, subject: mine},
		{name: "the other node's, by that node", by: client(as(vault, her["node"])), kind: hub, text: stolen},

		{name: "another node's, as the node", by: asNode, kind: hub, subject: hers, field: "requester"},
		{name: "another node's, as the hub", by: asHub, kind: hub, subject: hers, field: contract.HubUserPrefix},
		{name: "another node's at the cloud", by: asNode, kind: cloud, subject: hers, field: "requester"},
		{name: "another node's, by its own token", by: second, kind: hub, subject: hers, field: "requester"},
		{name: "its own, by another node's token", by: third, kind: hub, subject: mine, field: "requester"},
		{name: "its own, by a token that was used", by: first, kind: hub, subject: mine, field: "token"},
		{name: "its own at the cloud, by a token that was used", by: first, kind: cloud, subject: mine, field: "token"},
		{name: "its own, by a token that has expired", by: late, kind: hub, subject: mine, field: "Unauthorized"},
		{name: "its right to lead, by its own token", by: of, kind: weirpki.Forwarder, subject: mine, field: "requester"},
		{name: "another's public key under its known name", by: asNode, kind: hub, text: stolen, field: "requester"},
		{
			name: "an organization more", by: asNode, kind: hub, subject: mine, field: "organization",
			change: func(r *x509.CertificateRequest) {
				r.Subject.Organization = append(r.Subject.Organization, "system:masters")
			},
		},
		{
			name: "the right to lead", by: asNode, kind: hub, subject: mine, field: "organization",
			change: func(r *x509.CertificateRequest) {
				r.Subject.Organization = append(r.Subject.Organization, contract.LeaderGroup)
			},
		},
		{
			name: "two common names", by: asNode, kind: hub, subject: mine, field: "common name",
			change: func(r *x509.CertificateRequest) {
				for _, name := range []string{contract.NodeUserPrefix + other, contract.NodeUserPrefix + node} {
					r.Subject.ExtraNames = append(r.Subject.ExtraNames,
						pkix.AttributeTypeAndValue{Type: []int{2, 5, 4, 3}, Value: name})
				}
			},
		},
		{
			name: "another pool's", by: asNode, kind: hub, subject: weirpki.Subject{Pool: "elsewhere", Node: node},
			field: "organization",
		},
		{
			name: "another pool's at the cloud", by: asNode, kind: cloud,
			subject: weirpki.Subject{Pool: "elsewhere", Node: node}, field: "common name",
		},
		{
			name: "a name of a server", by: asNode, kind: hub, subject: mine, field: "addresses",
			change: func(r *x509.CertificateRequest) {
				r.DNSNames = []string{"kubernetes.default.svc"}
			},
		},
		{name: "ten years", by: asNode, kind: hub, subject: mine, seconds: tenth, field: "life"},
		{name: "ten years at the cloud", by: asNode, kind: cloud, subject: mine, seconds: tenth, field: "life"},
		{
			name: "the coordinator's, where none runs", by: asNode, kind: weirpki.Coordinator,
			subject: weirpki.Subject{Pool: pool, Node: node, Hosts: []string{"127.0.0.1"}}, field: "node",
		},
	}
	all := make([]Request, 0, len(plans))
	for _, p := range plans {
		r, err := p.send(ctx)
		if err != nil {
			return all, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// AskDeleted asks for the certificate of a node whose Node is gone, with what was on its disk.
func AskDeleted(ctx context.Context, site runtime.Site, pool, node string) (Request, error) {
	vault, ok := site.(runtime.Vault)
	if !ok {
		return Request{}, errors.New("this runtime does not give away keys of nodes")
	}
	me, err := atCloud(vault, pool, node)
	if err != nil {
		return Request{}, err
	}
	client, err := kubernetes.NewForConfig(as(vault, me["node"]))
	if err != nil {
		return Request{}, err
	}
	p := plan{
		name: "its own, after its Node was deleted", by: client, kind: weirpki.Hub,
		subject: weirpki.Subject{Pool: pool, Node: node}, field: "node",
	}
	return p.send(ctx)
}

// Ask asks as a node for a certificate that is its own.
func Ask(ctx context.Context, site runtime.Site, k weirpki.Kind, s weirpki.Subject) (Request, error) {
	vault, ok := site.(runtime.Vault)
	if !ok {
		return Request{}, errors.New("this runtime does not give away keys of nodes")
	}
	me, err := atCloud(vault, s.Pool, s.Node)
	if err != nil {
		return Request{}, err
	}
	client, err := kubernetes.NewForConfig(as(vault, me["node"]))
	if err != nil {
		return Request{}, err
	}
	return plan{name: string(k) + " of " + s.Node, by: client, kind: k, subject: s}.send(ctx)
}

// text is a request of a kind, for a fresh key.
func text(k weirpki.Kind, s weirpki.Subject, change func(*x509.CertificateRequest)) ([]byte, error) {
	key, err := weirpki.NewKey()
	if err != nil {
		return nil, err
	}
	right, err := weirpki.Must(k).Request(s, key)
	if err != nil || change == nil {
		return right, err
	}
	r, err := weirpki.ParseRequest(right)
	if err != nil {
		return nil, err
	}
	t := &x509.CertificateRequest{Subject: r.Subject, DNSNames: r.DNSNames, IPAddresses: r.IPAddresses}
	t.Subject.Names, t.Subject.ExtraNames = nil, nil
	change(t)
	der, err := x509.CreateCertificateRequest(rand.Reader, t, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}

// send sends it, and waits for what comes of it.
func (p plan) send(ctx context.Context) (Request, error) {
	out := Request{Name: p.name, Control: p.field == ""}
	i, err := weirpki.Of(p.kind)
	if err != nil {
		return out, err
	}
	if p.text == nil {
		if p.text, err = text(p.kind, p.subject, p.change); err != nil {
			return out, err
		}
	}
	if p.seconds == 0 {
		p.seconds = hour
	}
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "thief-"}}
	r.Spec = certificatesv1.CertificateSigningRequestSpec{
		Request: p.text, SignerName: i.Signer, ExpirationSeconds: &p.seconds,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature},
	}
	if i.Client {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageClientAuth)
	}
	if i.Server {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
	}
	requests := p.by.CertificatesV1().CertificateSigningRequests()
	made, err := requests.Create(ctx, r, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsUnauthorized(err) {
		out.Said = err.Error()
		return out.judged(p.field), nil
	}
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, decided)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if made, err = requests.Get(ctx, made.Name, metav1.GetOptions{}); err != nil {
			return out, err
		}
		for _, c := range made.Status.Conditions {
			if c.Type != certificatesv1.CertificateApproved {
				out.Said = c.Message
				return out.judged(p.field), nil
			}
		}
		if out.PEM, out.Signed = made.Status.Certificate, len(made.Status.Certificate) > 0; out.Signed {
			return out.judged(p.field), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return out, errors.New("nobody says anything about the request")
		}
	}
}

// judged adds what is wrong about a request that was to be refused for a field, "" for none.
func (r Request) judged(field string) Request {
	switch {
	case r.Control && !r.Signed:
		r.Wrong = "it is its own, and not signed: " + r.Said
	case !r.Control && r.Signed:
		r.Wrong = "it is signed"
	case !r.Control && !strings.Contains(r.Said, field):
		r.Wrong = fmt.Sprintf("it is refused, and not for its %s: %s", field, r.Said)
	}
	return r
}
