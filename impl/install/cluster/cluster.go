// Package cluster reads and writes the objects of the cluster as one of its nodes, for an installer on that node: the
// Node, its Lease, its Events, and its pods.
//
// # Pods, when a hub comes or goes
//
// Tenants treats the pods of a node when its hub is added or removed. A container has the address of the API in its
// environment from its start to its end. So when a hub goes, pods that call it have to restart. They are known: the hub
// keeps a list (package nodelocal). A pod that its controller would start again is deleted, as its own grace period has
// it. A pod of a Job is not, since it would lose what it has done; nor is one without a controller, or a static one.
// Such a pod holds its node.
//
// kube-proxy starts again when the hub comes, too: what leads it is in a volume, and its watches go on.
//
// The package starts no goroutine.
package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/tunnel"
)

// Reasons of contract.JoinedCondition, and of Events about a Node.
const (
	ReasonJoined = "WeirJoined"     // its kubelet calls its hub
	ReasonUndone = "WeirJoinUndone" // it was tried, and undone
	ReasonLeft   = "WeirLeft"       // an Event only: the condition goes

	ReasonUpgraded      = "WeirUpgraded"      // its kubelet calls another hub than before
	ReasonUpgradeUndone = "WeirUpgradeUndone" // another hub was tried, and the former one goes on
)

// AskFor is for one question to the cluster.
const AskFor = 15 * time.Second

// Config says where a cluster is, and as whom it is asked.
type Config struct {
	Server, ServerName string // URL; what its certificate names, "": its host
	CA                 []byte // PEM
	Proxy              tunnel.Choice
	CertPEM, KeyPEM    []byte             // of the node; nil: it has a Source
	Source             *credential.Source // of what the node shows in the place of a certificate
	Node               string             // "": WhoAmI finds it out
	Clock              clock.Clock
}

// Cluster is the cluster, asked as this node.
type Cluster struct {
	Client kubernetes.Interface
	Node   string
	Skew   *time.Duration // of this machine's clock, as the last answer tells; nil: no answer told
	clock  clock.Clock
}

// Node is what the cluster knows of this one.
type Node struct {
	Pool         string
	Addresses    []string
	Coordinators []string // of the pool, as leader-hub-<pool> tells
	Told         bool     // leader-hub-<pool> is there
	Runtime      string   // of containers, as containerd://2.1.4
	Six          bool     // pods call Service default/kubernetes at an IPv6 address
}

// New makes what asks.
func New(c Config) (*Cluster, error) {
	out := &Cluster{Node: c.Node, clock: c.Clock}
	config := &rest.Config{
		Host: c.Server, UserAgent: "weir-node", Timeout: AskFor, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CA, ServerName: c.ServerName, CertData: c.CertPEM, KeyData: c.KeyPEM},
		Proxy: func(req *http.Request) (*url.URL, error) {
			return c.Proxy(net.JoinHostPort(req.URL.Hostname(), cmp.Or(req.URL.Port(), "443")))
		},
	}
	if c.Source != nil {
		config.CertData, config.KeyData = nil, nil
		config.Wrap(c.Source.Wrap)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dated{next, out} })
	var err error
	out.Client, err = kubernetes.NewForConfig(config)
	return out, err
}

// dated reads the time from each answer.
type dated struct {
	http.RoundTripper
	of *Cluster
}

func (d dated) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(req)
	if err == nil {
		if at, e := http.ParseTime(answer.Header.Get("Date")); e == nil {
			skew := d.of.clock.Now().Sub(at)
			d.of.Skew = &skew
		}
	}
	return answer, err
}

// WhoAmI asks the cloud who it takes this node for.
func (c *Cluster) WhoAmI(ctx context.Context) error {
	r, err := c.Client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return err
	}
	u := r.Status.UserInfo
	name, ok := strings.CutPrefix(u.Username, contract.NodeUserPrefix)
	if !ok || !slices.Contains(u.Groups, contract.NodesGroup) {
		return fmt.Errorf("the cloud takes the kubelet's credential for that of %.100q in %.200q: want %s<node> in %s",
			u.Username, u.Groups, contract.NodeUserPrefix, contract.NodesGroup)
	}
	c.Node = name
	return nil
}

// Look asks what the cloud knows.
func (c *Cluster) Look(ctx context.Context) (*Node, error) {
	got, err := c.Client.CoreV1().Nodes().Get(ctx, c.Node, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	n := &Node{Pool: got.Labels[contract.NodePoolLabel], Runtime: got.Status.NodeInfo.ContainerRuntimeVersion}
	api, err := c.Client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	n.Six = strings.Contains(api.Spec.ClusterIP, ":")
	for _, a := range got.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			n.Addresses = append(n.Addresses, a.Address)
		}
	}
	if n.Pool == "" {
		return n, nil
	}
	s, err := c.Client.CoreV1().Services(contract.ManagerNamespace).Get(ctx, contract.LeaderHubPrefix+n.Pool,
		metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return n, nil
	case err != nil:
		return nil, err
	}
	n.Told = true
	if all := s.Annotations[contract.LeaderHubCoordinators]; all != "" &&
		s.Annotations[contract.LeaderHubMode] != contract.ModeLeaderHubs {
		n.Coordinators = strings.Split(all, ",")
	}
	return n, nil
}

// Lease is the version of this node's Lease; "": there is none.
func (c *Cluster) Lease(ctx context.Context) (version string, err error) {
	l, err := c.Client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Get(ctx, c.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return l.ResourceVersion, nil
}

// Tell says how it went: in the condition of the Node, and in an Event.
func (c *Cluster) Tell(ctx context.Context, reason, message string) error {
	ctx, cancel := context.WithTimeout(ctx, AskFor)
	defer cancel()
	status, kind := corev1.ConditionTrue, corev1.EventTypeNormal
	switch reason {
	case ReasonUndone:
		status, kind = corev1.ConditionFalse, corev1.EventTypeWarning
	case ReasonUpgradeUndone: // it is joined as before
		kind = corev1.EventTypeWarning
	}
	now := metav1.NewTime(c.clock.Now())
	condition := corev1.NodeCondition{
		Type: contract.JoinedCondition, Status: status, Reason: reason, Message: bounded(message), LastHeartbeatTime: now,
		LastTransitionTime: now,
	}
	if err := c.patch(ctx, condition, map[string]any{}); err != nil {
		return err
	}
	return c.event(ctx, kind, reason, message)
}

// Forget takes the condition away, and what the hub told of itself: a node that is labelled again has not joined by
// that.
func (c *Cluster) Forget(ctx context.Context, message string) error {
	ctx, cancel := context.WithTimeout(ctx, AskFor)
	defer cancel()
	gone := map[string]any{"$patch": "delete", "type": contract.JoinedCondition}
	if err := c.patch(ctx, gone, map[string]any{contract.HoldsAnnotation: nil}); err != nil {
		return err
	}
	return c.event(ctx, corev1.EventTypeNormal, ReasonLeft, message)
}

func (c *Cluster) patch(ctx context.Context, condition any, annotations map[string]any) error {
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": annotations}, "status": map[string]any{"conditions": []any{condition}},
	})
	if err == nil {
		_, err = c.Client.CoreV1().Nodes().Patch(ctx, c.Node, types.StrategicMergePatchType, text, metav1.PatchOptions{},
			"status")
	}
	if err != nil {
		return fmt.Errorf("write condition %s of the Node: %w", contract.JoinedCondition, err)
	}
	return nil
}

func (c *Cluster) event(ctx context.Context, kind, reason, message string) error {
	now := metav1.NewTime(c.clock.Now())
	_, err := c.Client.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: c.Node + ".weir-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: c.Node, UID: types.UID(c.Node)}, // as a kubelet does it
		Type:           kind, Reason: reason, Message: bounded(message), Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "weir", Host: c.Node},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("write an Event: %w", err)
	}
	return nil
}

// bounded is what an Event may say.
func bounded(message string) string {
	const most = 1000
	if len(message) > most {
		return message[:most] + "…"
	}
	return message
}

// Coordinates reports whether there is a Pod of a coordinator on this node, and stays whether there is to be one.
func (c *Cluster) Coordinates(ctx context.Context, pool string) (there, stays bool, err error) {
	pods, err := c.Client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + c.Node, LabelSelector: contract.NameLabel + "=" + contract.CoordinatorPods,
		Limit: 1,
	})
	if err != nil || len(pods.Items) == 0 {
		return false, false, err
	}
	n, err := c.Client.CoreV1().Nodes().Get(ctx, c.Node, metav1.GetOptions{})
	if err != nil {
		return true, false, err
	}
	return true, n.Labels[contract.NodePoolLabel] == pool, nil
}

// Pinned is an error unless one of the authorities, in PEM, has one of the hashes of kubeadm, sha256:…, or there are
// none.
func Pinned(bundle []byte, hashes []string) error {
	if len(hashes) == 0 {
		return nil
	}
	var got []string
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		h := "sha256:" + hex.EncodeToString(sum[:])
		if slices.ContainsFunc(hashes, func(want string) bool { return strings.EqualFold(want, h) }) {
			return nil
		}
		got = append(got, h)
	}
	return fmt.Errorf("the authority of the kubelet's kubeconfig is %s: want %s", strings.Join(got, ", "),
		strings.Join(hashes, " or "))
}
