package check

import (
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/nodejob"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// ofPool is a check of each pool.
type ofPool struct {
	id, about string
	look      func(l *looker, pool string) error
}

var pools = []ofPool{
	{"pool-described", "it has a NodePool and a Pool", checkDescribed},
	{"pool-members", "it has nodes", checkMembers},
	{"pool-deletions", "no Node of it was deleted that nobody has confirmed", checkDeletions},
	{"pool-heard", "a node of it is heard", checkHeard},
	{"pool-told", "its hubs are told how it shares", checkTold},
	{"pool-scope", "all that it shares may be shared", checkScope},
	{"pool-coordinator", "its coordinator runs", checkCoordinator},
	{"pool-leader", "it has a leader hub", checkLeader},
	{"pool-ready", "its hubs read inside the pool what it shares", checkReady},
}

// ofNode is a check of each node of a pool.
type ofNode struct {
	id, about string
	look      func(l *looker, n *corev1.Node) error
}

var nodes = []ofNode{
	{"node-heard", "it is heard", checkNodeHeard},
	{"node-cut-off", "it reaches the cloud", checkCutOff},
	{"node-hub", "it has a hub in its pool", checkHub},
	{"node-shares", "its hub reads inside the pool, and what it holds is fresh", checkShares},
	{"node-reaches", "its hub reaches the others of its pool", checkReaches},
	{"node-joined", "its kubelet calls its hub", checkJoined},
	{"node-certificates", "its certificates last", checkCertificates},
}

// bad tells what a condition says, if that is not True.
func bad(all []metav1.Condition, kind string) error {
	if c := commands.ConditionOf(all, kind); c != nil && c.Status != metav1.ConditionTrue {
		return fmt.Errorf("%s: %s", c.Reason, c.Message)
	}
	return nil
}

func checkDescribed(l *looker, pool string) error {
	if err := errors.Join(l.view.Failed[commands.NodePools], l.view.Failed[commands.Pools]); err != nil {
		return skip{err}
	}
	switch n, p := l.view.NodePool(pool), l.view.Pool(pool); {
	case n == nil && p == nil:
		return fmt.Errorf("nodes have the label %s=%s, and there is no NodePool of this name: nothing is told to their hubs",
			contract.NodePoolLabel, pool)
	case n == nil:
		return errors.New("it has a Pool and no NodePool: nothing is told to its hubs")
	case p == nil:
		return warn("it has a NodePool and no Pool: its hubs go by their flags")
	}
	return nil
}

func checkMembers(l *looker, pool string) error {
	if err := l.view.Failed[commands.Nodes]; err != nil {
		return skip{err}
	}
	if len(l.view.Members(pool)) == 0 {
		return warn("no Node has the label %s=%s", contract.NodePoolLabel, pool)
	}
	return nil
}

func checkDeletions(l *looker, pool string) error {
	p := l.view.Pool(pool)
	if p == nil {
		return errNone
	}
	return bad(p.Status.Conditions, poolv1.DeletionsConfirmed)
}

func checkHeard(l *looker, pool string) error {
	p := l.view.Pool(pool)
	if p == nil || len(l.view.Members(pool)) == 0 {
		return errNone
	}
	if since := p.Status.SilentSince; since != nil {
		return fmt.Errorf("none was heard for %s: its link or its power is gone, most likely",
			rounded(l.view.Now.Sub(since.Time)))
	}
	return nil
}

func checkTold(l *looker, pool string) error {
	n := l.view.NodePool(pool)
	if n == nil {
		return errNone
	}
	if err := l.view.Failed[commands.LeaderHubs]; err != nil {
		return skip{err}
	}
	if _, ok := l.view.LeaderHubs[pool]; !ok {
		return fmt.Errorf("no Service %s/%s%s is there: weir-manager makes it", contract.ManagerNamespace,
			contract.LeaderHubPrefix, pool)
	}
	if err := bad(n.Status.Conditions, nodepool.LeaderHubSynced); err != nil {
		return err
	}
	p := l.view.Pool(pool)
	if p == nil {
		return nil
	}
	if err := bad(p.Status.Conditions, poolv1.ModeApplied); err != nil {
		return err
	}
	return bad(p.Status.Conditions, poolv1.ReachAccepted)
}

func checkScope(l *looker, pool string) error {
	var err error
	if n := l.view.NodePool(pool); n != nil {
		err = bad(n.Status.Conditions, nodepool.ScopeAccepted)
	}
	if p := l.view.Pool(pool); p != nil && err == nil {
		err = bad(p.Status.Conditions, poolv1.ScopeAccepted)
	}
	return err
}

func checkCoordinator(l *looker, pool string) error {
	p := l.view.Pool(pool)
	if p == nil || p.Spec.Mode == poolv1.ModeLeaderHubs || len(l.view.Members(pool)) == 0 {
		return errNone
	}
	if p.Spec.Coordinator == nil {
		return warn("the Pool names none: its hubs use the one of their flags, if there is one")
	}
	if err := bad(p.Status.Conditions, poolv1.CoordinatorPlaced); err != nil {
		return err
	}
	if len(p.Status.Coordinators) == 0 {
		return errors.New("hubs are told of none")
	}
	return nil
}

func checkLeader(l *looker, pool string) error {
	n, p := l.view.NodePool(pool), l.view.Pool(pool)
	if n == nil || !n.Spec.EnableLeaderElection || len(l.view.Members(pool)) == 0 {
		return errNone
	}
	if err := bad(n.Status.Conditions, nodepool.LeaderReady); err != nil {
		return err
	}
	if n.Status.LeaderNum == 0 && p != nil && p.Spec.Mode == poolv1.ModeLeaderHubs {
		return errors.New("none of its nodes may lead: want one that is Ready, reaches the cloud and has an internal address")
	}
	return nil
}

// checkReady is about the pool as a whole: what single nodes lack stands in their own lines, too.
func checkReady(l *looker, pool string) error {
	p := l.view.Pool(pool)
	if p == nil || len(l.view.Members(pool)) == 0 {
		return errNone
	}
	if commands.ConditionOf(p.Status.Conditions, poolv1.Ready) == nil {
		return warn("the Pool has no condition %s: weir-manager is of an older version, or has not looked yet", poolv1.Ready)
	}
	return bad(p.Status.Conditions, poolv1.Ready)
}

func checkNodeHeard(l *looker, n *corev1.Node) error {
	if err := l.view.Failed[commands.Leases]; err != nil {
		return skip{err}
	}
	h := l.view.Heartbeat(n.Name)
	switch {
	case h.Age < 0:
		return errors.New("it has no Lease: its kubelet never was heard")
	case h.Late:
		return fmt.Errorf("its last heartbeat is %s old", rounded(h.Age))
	}
	return nil
}

func checkCutOff(l *looker, n *corev1.Node) error {
	if c := commands.Condition(n, contract.CutOffCondition); c != nil && c.Status == corev1.ConditionTrue {
		return warn("it does not, since %s; the leader of its pool tells that it lives",
			rounded(l.view.Now.Sub(c.LastTransitionTime.Time)))
	}
	return nil
}

func checkHub(l *looker, n *corev1.Node) error {
	text := n.Annotations[contract.HoldsAnnotation]
	if text == "" {
		return fmt.Errorf("no hub has told anything by the annotation %s of the Node: it has none, or its hub is not "+
			"in the pool", contract.HoldsAnnotation)
	}
	if _, err := digest.ParseHolding(text); err != nil {
		return fmt.Errorf("annotation %s: %w", contract.HoldsAnnotation, err)
	}
	return nil
}

// hub is what the hub of a node told, in the status of its pool. It is skipped where no hub can have told.
func (l *looker) hub(n *corev1.Node) (*poolv1.Pool, *poolv1.Hub, error) {
	p := l.view.Pool(n.Labels[contract.NodePoolLabel])
	switch {
	case l.view.Failed[commands.Pools] != nil:
		return nil, nil, skip{l.view.Failed[commands.Pools]}
	case p == nil:
		return nil, nil, skip{errors.New("its pool has no Pool, in whose status weir-manager would say so")}
	case l.view.Heartbeat(n.Name).Late:
		return nil, nil, skip{errors.New("it is not heard")}
	}
	if c := commands.Condition(n, contract.CutOffCondition); c != nil && c.Status == corev1.ConditionTrue {
		return nil, nil, skip{errors.New("it does not reach the cloud, which its hub would tell")}
	}
	h := p.Status.Hub(n.Name)
	if h == nil {
		return nil, nil, errors.New("its hub has told nothing: it is not there, or not in the pool")
	}
	return p, h, nil
}

// checkShares looks whether the node has of its pool what the pool is for.
func checkShares(l *looker, n *corev1.Node) error {
	_, h, err := l.hub(n)
	if err != nil {
		return err
	}
	return h.Digest().Sharing(l.view.Now.Sub(h.Told.Time))
}

// checkReaches looks whether ways of the node inside its pool fail: also those of which its hub makes no use now.
func checkReaches(l *looker, n *corev1.Node) error {
	p, h, err := l.hub(n)
	if err != nil {
		return err
	}
	if ago := l.view.Now.Sub(h.Told.Time); ago > digest.Lapsed {
		return skip{fmt.Errorf("its hub has told nothing for %s", ago.Round(time.Minute))}
	}
	var says []string
	all, _ := l.view.Failures(p.Name)
	for _, f := range all {
		if f.Node == n.Name {
			says = append(says, f.Says())
		}
	}
	if len(says) == 0 {
		return nil
	}
	return errors.New(strings.Join(says, "; "))
}

func checkJoined(l *looker, n *corev1.Node) error {
	c := commands.Condition(n, contract.JoinedCondition)
	if j, ok := l.view.Installs[n.Name]; ok && (c == nil || c.Status != corev1.ConditionTrue) {
		if err := installs(l, n, &j); err != nil {
			return err
		}
	}
	switch {
	case c == nil && n.Annotations[contract.HoldsAnnotation] == "":
		return fmt.Errorf("the node has not joined, and no Job of weir-manager runs there: see the condition "+
			"NodesInstalled of the Pool, or weir node join --pool %s on it", n.Labels[contract.NodePoolLabel])
	case c == nil:
		return warn("it was not installed by weir node join: look at the kubelet's kubeconfig")
	case c.Status != corev1.ConditionTrue:
		return fmt.Errorf("%s: %s", c.Reason, strings.TrimSuffix(c.Message, "."))
	}
	return nil
}

// installs tells what the Job of a node that has not joined is at.
func installs(l *looker, n *corev1.Node, j *batchv1.Job) error {
	why, logs := nodejob.Why(j, l.view.InstallPods), fmt.Sprintf("kubectl -n %s logs job/%s", j.Namespace, j.Name)
	switch is, _ := nodejob.PhaseOf(j); {
	case is == nodejob.Failed:
		return fmt.Errorf("weir-manager's Job on the node failed: %s; %s has more; mend it, then %s", why, logs,
			nodejob.Retry(n.Labels[contract.NodePoolLabel]))
	case is == nodejob.Aside:
		return fmt.Errorf("weir-manager's Job on the node did not begin, and is tried again after others: %s", why)
	case is == nodejob.Running && why != "":
		return fmt.Errorf("weir-manager's Job on the node does not begin: %s", why)
	case is == nodejob.Running:
		return fmt.Errorf("weir-manager's Job on the node is at work: %s", logs)
	}
	return nil
}

func checkCertificates(_ *looker, n *corev1.Node) error {
	if c := commands.Condition(n, contract.CertificatesCondition); c != nil && c.Status == corev1.ConditionTrue {
		return fmt.Errorf("%s: %s", c.Reason, strings.TrimSuffix(c.Message, "."))
	}
	return nil
}
