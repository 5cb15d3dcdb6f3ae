package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

// finding is a request that may be granted: everything in it agrees.
type finding struct {
	identity pki.Identity
	subject  pki.Subject
	request  *x509.CertificateRequest
	life     time.Duration
	node     *corev1.Node
	token    string // id of the bootstrap token that it was asked for with
}

// concerns reports whether a request is for this package, and waits for something that this package does.
func concerns(r *certificatesv1.CertificateSigningRequest) bool {
	switch {
	case len(r.Status.Certificate) > 0, has(r, certificatesv1.CertificateDenied), has(r, certificatesv1.CertificateFailed):
		return false
	case r.Spec.SignerName == contract.CloudSigner:
		return !has(r, certificatesv1.CertificateApproved) // kube-controller-manager goes on with it
	}
	return len(pki.SignedBy(r.Spec.SignerName)) > 0
}

func has(r *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType) bool {
	return condition(r, t) != nil
}

func condition(r *certificatesv1.CertificateSigningRequest,
	t certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequestCondition {
	for i := range r.Status.Conditions {
		if r.Status.Conditions[i].Type == t {
			return &r.Status.Conditions[i]
		}
	}
	return nil
}

// claims reports whether a request names anything of Weir's. Others use kube-apiserver's signer too.
func claims(r *x509.CertificateRequest) bool {
	return slices.ContainsFunc(append(r.Subject.Organization, r.Subject.CommonName), func(s string) bool {
		return strings.HasPrefix(strings.ToLower(s), "weir:")
	})
}

// examine tells what a request is for. A *pki.MismatchError says why it may not be granted; any other error, that this
// is not known yet. With an error the finding is what was found until then, or nil. It is nil without an error if the
// request is none of Weir's.
func examine(ctx context.Context, nodes client.Reader, r *certificatesv1.CertificateSigningRequest) (*finding, error) {
	request, err := pki.ParseRequest(r.Spec.Request)
	ours := err == nil && claims(request)
	if r.Spec.SignerName == contract.CloudSigner && !ours {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &finding{request: request}
	if err := f.identify(r, request.Subject.CommonName); err != nil {
		return f, err
	}
	if err := f.place(ctx, nodes, r); err != nil {
		return f, err
	}
	if err := f.checkRequester(r.Spec); err != nil {
		return f, err
	}
	if err := f.mayForward(ctx, nodes); err != nil {
		return f, err
	}
	if err := f.identity.CheckRequest(request, f.subject); err != nil {
		return f, err
	}
	if err := checkUsages(f.identity, r.Spec.Usages); err != nil {
		return f, err
	}
	return f, f.checkLife(r.Spec.ExpirationSeconds)
}

// identify finds the kind, and the node that a request is for: by the name that it asks for, or by the one that asks if
// the name has none.
func (f *finding) identify(r *certificatesv1.CertificateSigningRequest, commonName string) error {
	var forms []string
	for _, i := range pki.SignedBy(r.Spec.SignerName) {
		forms = append(forms, i.CommonName)
		if s, ok := i.Read(commonName); ok {
			f.identity, f.subject.Node = i, s.Node
			if f.subject.Node == "" {
				f.subject.Node = nodeOf(r.Spec.Username)
			}
			return nil
		}
	}
	return refuse("common name", commonName, strings.Join(forms, " or "))
}

// nodeOf is the node of a user, "" if the user is none.
func nodeOf(user string) string {
	s, _ := pki.Must(pki.Kubelet).Read(user)
	return s.Node
}

// where is the Node that a request is about, as far as the cluster has one, and its pool.
func (f *finding) where() (pool, node string) {
	if f == nil || f.node == nil {
		return "", ""
	}
	return f.subject.Pool, f.node.Name
}

// place finds out what the cluster knows of the node: whether it is still the one that asked, and what is its own.
func (f *finding) place(ctx context.Context, nodes client.Reader, r *certificatesv1.CertificateSigningRequest) error {
	n := &corev1.Node{}
	name := f.subject.Node
	if name == "" {
		return refuse("requester", r.Spec.Username, "a node: "+contract.NodeUserPrefix+"<node>")
	}
	switch err := nodes.Get(ctx, types.NamespacedName{Name: name}, n); {
	case apierrors.IsNotFound(err):
		return refuse("node", name, "a Node that exists")
	case err != nil:
		return fmt.Errorf("read node %s: %w", name, err)
	case n.DeletionTimestamp != nil:
		return refuse("node", name, "a Node that is not being deleted")
	case n.CreationTimestamp.After(r.CreationTimestamp.Time):
		return refuse("node", fmt.Sprintf("%s, uid %s", name, n.UID),
			"the Node of this name that was there when the request was made")
	}
	if a := condition(r, certificatesv1.CertificateApproved); a != nil && a.Reason == approvedReason &&
		a.Message != approval(name, n.UID) {
		return refuse("node", fmt.Sprintf("%s, uid %s", name, n.UID), "the Node that it was approved for: "+a.Message)
	}
	f.node = n
	if f.subject.Pool = n.Labels[contract.NodePoolLabel]; f.subject.Pool == "" {
		return refuse("pool", "", "a Node with the label "+contract.NodePoolLabel+": kubectl label node "+name+" "+
			contract.NodePoolLabel+"=POOL")
	}
	if k := f.identity.Kind; k == pki.Coordinator || k == pki.Replica {
		if f.subject.Name = n.Labels[contract.CoordinatorLabel]; f.subject.Name == "" {
			return refuse("node", name,
				"one with the label "+contract.CoordinatorLabel+"=<name of the replica>: the coordinator of the pool runs there")
		}
	}
	f.subject.Leads = n.Labels[contract.LeaderLabel] == "true"
	for _, a := range n.Status.Addresses {
		f.subject.Hosts = append(f.subject.Hosts, a.Address)
	}
	return nil
}

// mayForward refuses the certificate of a forwarder to a node that may not lead its pool. Where no Node of the pool has
// the label of leaders, each may.
func (f *finding) mayForward(ctx context.Context, nodes client.Reader) error {
	if f.identity.Kind != pki.Forwarder || f.subject.Leads {
		return nil
	}
	var labelled corev1.NodeList
	leads := client.MatchingLabels{contract.NodePoolLabel: f.subject.Pool, contract.LeaderLabel: "true"}
	if err := nodes.List(ctx, &labelled, leads); err != nil {
		return fmt.Errorf("read which nodes may lead pool %s: %w", f.subject.Pool, err)
	}
	if len(labelled.Items) > 0 {
		return refuse("node", f.subject.Node,
			fmt.Sprintf("one with the label %s=true, as node %s of its pool: only these lead", contract.LeaderLabel,
				labelled.Items[0].Name))
	}
	return nil
}

const approvedReason = "WeirApproved"

// approval is the message of an approved request. It is compared when the request is signed.
func approval(node string, uid types.UID) string {
	return fmt.Sprintf("for node %s, uid %s", node, uid)
}

var tokenID = regexp.MustCompile(`^[a-z0-9]{6}$`)

// checkRequester reports whether who asks may ask for this node.
func (f *finding) checkRequester(spec certificatesv1.CertificateSigningRequestSpec) error {
	s := f.subject
	allowed := fmt.Sprintf("%s%s of the group %s", contract.NodeUserPrefix, s.Node, contract.NodesGroup)
	if f.identity.Joins {
		allowed += ", or a bootstrap token of the group " + contract.BootstrapGroup(s.Pool, s.Node)
	}
	id, byToken := strings.CutPrefix(spec.Username, contract.BootstrapUserPrefix)
	switch {
	case byToken && f.identity.Joins && tokenID.MatchString(id) &&
		slices.Contains(spec.Groups, contract.BootstrapGroup(s.Pool, s.Node)):
		f.token = id
		return nil
	case nodeOf(spec.Username) == s.Node && slices.Contains(spec.Groups, contract.NodesGroup):
		return nil
	}
	return refuse("requester", spec.Username, allowed)
}

func checkUsages(i pki.Identity, got []certificatesv1.KeyUsage) error {
	want := []string{string(certificatesv1.UsageDigitalSignature)}
	if i.Client {
		want = append(want, string(certificatesv1.UsageClientAuth))
	}
	if i.Server {
		want = append(want, string(certificatesv1.UsageServerAuth))
	}
	names := make([]string, len(got))
	for n, u := range got {
		names[n] = string(u)
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		return refuse("usages", strings.Join(names, ", "), "exactly "+strings.Join(want, ", "))
	}
	return nil
}

// checkLife reads how long it is to live. Weir's own signer has a usual life; that of kube-controller-manager is a year
// and more.
func (f *finding) checkLife(seconds *int32) error {
	switch {
	case seconds != nil:
		f.life = time.Duration(*seconds) * time.Second
	case f.identity.Signer == contract.CloudSigner:
		return refuse("life", "expirationSeconds is not set",
			fmt.Sprintf("%s to %s", f.identity.Life.Least, f.identity.Life.Most))
	default:
		f.life = f.identity.Life.Usual
	}
	return f.identity.CheckLife(f.life)
}

func refuse(field, value, allowed string) error {
	return &pki.MismatchError{Field: field, Value: value, Allowed: allowed}
}

// refusal is an error that says no, and not that something is not known.
func refusal(err error) *pki.MismatchError {
	var m *pki.MismatchError
	if errors.As(err, &m) {
		return m
	}
	return nil
}
