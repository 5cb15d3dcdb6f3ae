package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	weirpki "github.com/weir-edge/weir/impl/pki"
)

// notaryEvery is how often it is looked for requests.
const notaryEvery = 100 * time.Millisecond

// ManagersLabel is on requests that only weir-manager may judge, whatever their pool.
const ManagersLabel = "testbed/judged-by-weir-manager"

// notary signs what weir-manager has approved, in the place of its own signer and of kube-controller-manager's: for
// lives that they do not sign, and with the authorities of the testbed. In a pool that enrols it signs only for the
// cloud. In a pool that weir-manager grants nothing it approves what a hub asks for itself, too.
type notary struct {
	site *localSite
	stop context.CancelFunc
	done chan struct{}
}

func newNotary(s *localSite) *notary {
	ctx, cancel := context.WithCancel(context.Background())
	n := &notary{s, cancel, make(chan struct{})}
	go func() {
		defer close(n.done)
		n.run(ctx)
	}()
	return n
}

// close ends it.
func (n *notary) close() {
	n.stop()
	<-n.done
}

func (n *notary) run(ctx context.Context) {
	tick := time.NewTicker(notaryEvery)
	defer tick.Stop()
	requests := n.site.cloud.Client().CertificatesV1().CertificateSigningRequests()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		list, err := requests.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			continue // the cloud may be away
		}
		for i := range list.Items {
			r := &list.Items[i]
			if len(r.Status.Conditions) == 0 && n.grants(r) {
				r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
					{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Testbed"},
				}
				if r, err = requests.UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{}); err != nil {
					continue // somebody else has judged it
				}
			}
			if len(r.Status.Certificate) > 0 || len(r.Status.Conditions) != 1 ||
				r.Status.Conditions[0].Type != certificatesv1.CertificateApproved || n.others(r) {
				continue
			}
			if r.Status.Certificate, err = n.sign(r); err == nil {
				_, err = requests.UpdateStatus(ctx, r, metav1.UpdateOptions{})
			}
			if err != nil && ctx.Err() == nil {
				n.logger().Warn("a request is not signed", "request", r.Name, "err", err)
			}
		}
	}
}

// others reports whether weir-manager signs a request itself.
func (n *notary) others(r *certificatesv1.CertificateSigningRequest) bool {
	return r.Spec.SignerName != contract.CloudSigner &&
		slices.ContainsFunc(n.site.pools, func(x *localPool) bool { return x.Enrols })
}

// grants reports whether a hub asks for a certificate of itself, in a pool that weir-manager grants nothing.
func (n *notary) grants(r *certificatesv1.CertificateSigningRequest) bool {
	if _, managers := r.Labels[ManagersLabel]; managers {
		return false
	}
	request, err := weirpki.ParseRequest(r.Spec.Request)
	if err != nil {
		return false
	}
	by, _ := weirpki.Must(weirpki.Kubelet).Read(r.Spec.Username)
	x, err := n.site.poolOf(by.Node)
	return err == nil && !x.asks() && slices.ContainsFunc(weirpki.SignedBy(r.Spec.SignerName),
		func(i weirpki.Identity) bool {
			subject, ok := i.Read(request.Subject.CommonName)
			return ok && subject.Node == by.Node && (subject.Pool == "" || subject.Pool == x.Name)
		})
}

func (n *notary) logger() *slog.Logger {
	if n.site.logger == nil {
		return slog.Default()
	}
	return n.site.logger
}

func (n *notary) sign(r *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	request, err := weirpki.ParseRequest(r.Spec.Request)
	if err != nil {
		return nil, err
	}
	for _, i := range weirpki.SignedBy(r.Spec.SignerName) {
		subject, ok := i.Read(request.Subject.CommonName)
		if !ok {
			continue
		}
		if subject.Node == "" { // of a coordinator: the hub of its node asks
			by, _ := weirpki.Must(weirpki.Kubelet).Read(r.Spec.Username)
			subject.Node = by.Node
		}
		x, err := n.site.poolOf(subject.Node)
		if err != nil || x.Lives == nil && x.Enrols && i.Signer != contract.CloudSigner {
			continue
		}
		subject.Pool = x.Name
		by, life := x.authority, i.Life.Usual
		if i.Signer == contract.CloudSigner {
			by = n.site.cloud.CA()
		}
		switch {
		case x.Lives == nil:
		case i.Kind == weirpki.Forwarder:
			life = x.Lives.Forwarder
		case i.Kind == weirpki.Coordinator, i.Kind == weirpki.Replica:
			life = x.Lives.Coordinator
			subject.Hosts = slices.Clone(request.DNSNames) // weir-manager has compared them with the Node's
			for _, ip := range request.IPAddresses {
				subject.Hosts = append(subject.Hosts, ip.String())
			}
		default:
			life = x.Lives.Hub
		}
		return by.Answer(i, subject, request, life)
	}
	return nil, fmt.Errorf("%s for %s: no pool of the testbed asks for that", r.Spec.SignerName,
		request.Subject.CommonName)
}
