package cloud

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	clientNamespace = "kube-system"
	tokenSeconds    = 24 * 60 * 60
)

// Client is an identity that workloads use: a service account of manifests/clients.yaml with the grants that the
// component of this name has in a real cluster.
type Client struct {
	Name  string
	probe schema.GroupResource // something it may watch
}

// Clients are the identities that exist.
var Clients = []Client{
	{Name: "kube-proxy", probe: schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}},
	{Name: "coredns", probe: schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}},
	{Name: "flannel", probe: schema.GroupResource{Resource: "nodes"}},
	{Name: "json-client", probe: schema.GroupResource{Resource: "endpoints"}},
	{Name: "kubectl", probe: schema.GroupResource{Resource: "endpoints"}},
}

// ClientToken returns a fresh bound token for one of Clients, valid for a day.
func (c *Cloud) ClientToken(ctx context.Context, name string) (string, error) {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)},
	}
	answer, err := c.client.CoreV1().ServiceAccounts(clientNamespace).CreateToken(ctx, name, request,
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request token for %s: %w", name, err)
	}
	return answer.Status.Token, nil
}

// HubCertificate issues the certificate of a hub's own user, which GrantHubs lets read. life is as in
// testca.Authority.IssueTo.
func (c *Cloud) HubCertificate(pool, node string, life time.Duration) (*testca.Pair, error) {
	return c.ca.IssueTo(weirpki.HubAtCloud, weirpki.Subject{Pool: pool, Node: node}, life)
}

// ForwarderCertificate issues the certificate with which a node forwards heartbeats when it leads its pool.
func (c *Cloud) ForwarderCertificate(pool, node string) (*testca.Pair, error) {
	return c.ca.IssueTo(weirpki.Forwarder, weirpki.Subject{Pool: pool, Node: node},
		weirpki.Must(weirpki.Forwarder).Life.Most)
}

// KubeletCertificate issues the certificate that a kubelet holds: its node's and nothing else. life is as in
// testca.Authority.IssueTo.
func (c *Cloud) KubeletCertificate(node string, life time.Duration) (*testca.Pair, error) {
	return c.ca.IssueTo(weirpki.Kubelet, weirpki.Subject{Node: node}, life)
}
