package install

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
)

// Reasons of contract.JoinedCondition, and of Events about a Node.
const (
	ReasonJoined = "WeirJoined"     // its kubelet calls its hub
	ReasonUndone = "WeirJoinUndone" // it was tried, and taken back
	ReasonLeft   = "WeirLeft"       // an Event only: the condition goes

	ReasonUpgraded      = "WeirUpgraded"      // its kubelet calls another hub than before
	ReasonUpgradeUndone = "WeirUpgradeUndone" // another hub was tried, and the former one goes on
)

// askFor is for one question to the cloud.
const askFor = 15 * time.Second

// cloud is the cluster, asked as this node.
type cloud struct {
	client kubernetes.Interface
	node   string
	clock  clock.Clock
	skew   *time.Duration // of this machine's clock, as the last answer tells; nil: no answer told
}

// node is what the cloud knows of this one.
type node struct {
	pool         string
	addresses    []string
	coordinators []string // of the pool, as leader-hub-<pool> tells
	told         bool     // leader-hub-<pool> is there
	six          bool     // pods call Service default/kubernetes at an IPv6 address
}

func newCloud(k *kubelet, c clock.Clock) (*cloud, error) {
	out := &cloud{node: k.node, clock: c}
	config := &rest.Config{
		Host: k.server, UserAgent: "weir-node", Timeout: askFor, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: k.ca, ServerName: k.serverName},
	}
	if k.source == nil {
		config.CertData, config.KeyData = k.certPEM, k.keyPEM
	} else {
		config.Wrap(k.source.Wrap)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dated{next, out} })
	var err error
	out.client, err = kubernetes.NewForConfig(config)
	return out, err
}

// dated reads the time from each answer.
type dated struct {
	http.RoundTripper
	of *cloud
}

func (d dated) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(req)
	if err == nil {
		if at, e := http.ParseTime(answer.Header.Get("Date")); e == nil {
			skew := d.of.clock.Now().Sub(at)
			d.of.skew = &skew
		}
	}
	return answer, err
}

// whoAmI asks the cloud who it takes this node for.
func (c *cloud) whoAmI(ctx context.Context) error {
	r, err := c.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	u := r.Status.UserInfo
	name, ok := strings.CutPrefix(u.Username, contract.NodeUserPrefix)
	if !ok || !slices.Contains(u.Groups, contract.NodesGroup) {
		return fmt.Errorf("the cloud takes the kubelet's credential for that of %.100q in %.200q: want %s<node> in %s", u.Username, u.Groups, contract.NodeUserPrefix, contract.NodesGroup)
	}
	c.node = name
	return nil
}

// look asks what the cloud knows.
func (c *cloud) look(ctx context.Context) (*node, error) {
	got, err := c.client.CoreV1().Nodes().Get(ctx, c.node, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	n := &node{pool: got.Labels[contract.NodePoolLabel]}
	api, err := c.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	n.six = strings.Contains(api.Spec.ClusterIP, ":")
	for _, a := range got.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			n.addresses = append(n.addresses, a.Address)
		}
	}
	if n.pool == "" {
		return n, nil
	}
	s, err := c.client.CoreV1().Services(contract.ManagerNamespace).Get(ctx, contract.LeaderHubPrefix+n.pool, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return n, nil
	case err != nil:
		return nil, err
	}
	n.told = true
	if all := s.Annotations[contract.LeaderHubCoordinators]; all != "" && s.Annotations[contract.LeaderHubMode] != contract.ModeLeaderHubs {
		n.coordinators = strings.Split(all, ",")
	}
	return n, nil
}

// lease is the version of this node's Lease; "": there is none.
func (c *cloud) lease(ctx context.Context) (version string, err error) {
	l, err := c.client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Get(ctx, c.node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return l.ResourceVersion, nil
}

// tell says how it went: in the condition of the Node, and in an Event.
func (c *cloud) tell(ctx context.Context, reason, message string) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
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
		Type: contract.JoinedCondition, Status: status, Reason: reason, Message: bounded(message), LastHeartbeatTime: now, LastTransitionTime: now,
	}
	if err := c.patch(ctx, condition, map[string]any{}); err != nil {
		return err
	}
	return c.event(ctx, kind, reason, message)
}

// forget takes the condition away, and what the hub told of itself: a node that is labelled again has not joined by that.
func (c *cloud) forget(ctx context.Context, message string) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	gone := map[string]any{"$patch": "delete", "type": contract.JoinedCondition}
	if err := c.patch(ctx, gone, map[string]any{contract.HoldsAnnotation: nil}); err != nil {
		return err
	}
	return c.event(ctx, corev1.EventTypeNormal, ReasonLeft, message)
}

func (c *cloud) patch(ctx context.Context, condition any, annotations map[string]any) error {
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}, "status": map[string]any{"conditions": []any{condition}}})
	if err == nil {
		_, err = c.client.CoreV1().Nodes().Patch(ctx, c.node, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		return fmt.Errorf("write condition %s of the Node: %w", contract.JoinedCondition, err)
	}
	return nil
}

func (c *cloud) event(ctx context.Context, kind, reason, message string) error {
	now := metav1.NewTime(c.clock.Now())
	_, err := c.client.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: c.node + ".weir-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: c.node, UID: types.UID(c.node)}, // as a kubelet does it
		Type:           kind, Reason: reason, Message: bounded(message), Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "weir", Host: c.node},
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

// coordinates tells whether there is a Pod of a coordinator on this node, and stays whether there is to be one.
func (c *cloud) coordinates(ctx context.Context, pool string) (there, stays bool, err error) {
	pods, err := c.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + c.node, LabelSelector: contract.NameLabel + "=" + contract.CoordinatorPods, Limit: 1,
	})
	if err != nil || len(pods.Items) == 0 {
		return false, false, err
	}
	n, err := c.client.CoreV1().Nodes().Get(ctx, c.node, metav1.GetOptions{})
	if err != nil {
		return true, false, err
	}
	return true, n.Labels[contract.NodePoolLabel] == pool, nil
}
