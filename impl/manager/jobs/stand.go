package jobs

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// most is how many failures of a pool there may be before no more begin.
const most = 2

// stand is how nodes stand.
type stand struct {
	nodes     []corev1.Node // sorted by name
	jobs      []batchv1.Job
	pods      []corev1.Pod // of Jobs
	pools     []poolv1.Pool
	described map[string]bool   // pools with a NodePool and a Pool
	told      map[string]bool   // pools of which hubs are told
	image     string            // that Jobs run; "": none is begun
	refused   map[string]error  // why a Job of a pool could not be made
	tried     map[types.UID]int // how often that of a Node could not: others come first
	now       time.Time
	well      map[types.UID]time.Time // when something was last seen to go on, of a Job

	byNode map[types.UID]*batchv1.Job // made when it is needed

	secrets []corev1.LocalObjectReference // by which the image is pulled
}

// job is the one of a Node; nil: it has none.
func (s *stand) job(n *corev1.Node) *batchv1.Job {
	if s.byNode == nil {
		s.byNode = map[types.UID]*batchv1.Job{}
		for i := range s.jobs {
			if of := s.of(&s.jobs[i]); of != nil {
				s.byNode[of.UID] = &s.jobs[i]
			}
		}
	}
	return s.byNode[n.UID]
}

// of is the Node of a Job; nil: there is none, or it is another one of the same name.
func (s *stand) of(j *batchv1.Job) *corev1.Node {
	i, ok := slices.BinarySearchFunc(s.nodes, j.Annotations[contract.InstallNode],
		func(n corev1.Node, name string) int { return strings.Compare(n.Name, name) })
	if !ok || !slices.ContainsFunc(j.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.UID == s.nodes[i].UID
	}) {
		return nil
	}
	return &s.nodes[i]
}

// pool is the one that a Job is for: that it comes into, or that it leaves, if that is known.
func pool(j *batchv1.Job) string { return j.Labels[contract.NodePoolLabel] }

// former reports whether a Job ran another image than the one that begins now.
func (s *stand) former(j *batchv1.Job) bool {
	return s.image != "" && j.Spec.Template.Spec.Containers[0].Image != s.image
}

// wants is the pool that a node is to be in; "": none. Not known: nobody says.
func (s *stand) wants(n *corev1.Node) (pool string, known bool) {
	pool = n.Labels[contract.NodePoolLabel]
	return pool, pool == "" || s.described[pool]
}

func condition(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

func joined(n *corev1.Node) bool {
	return condition(n, contract.JoinedCondition).Status == corev1.ConditionTrue
}

// able reports whether a node can do its work now.
func able(n *corev1.Node) bool {
	if os := n.Labels[corev1.LabelOSStable]; os != "" && os != "linux" {
		return false
	}
	return n.DeletionTimestamp.IsZero() && condition(n, corev1.NodeReady).Status == corev1.ConditionTrue &&
		condition(n, contract.CutOffCondition).Status != corev1.ConditionTrue
}

// settled reports whether the failure of a join is no more: the node was joined by hand since.
func settled(n *corev1.Node, want string, at time.Time) bool {
	return want != "" && joined(n) && condition(n, contract.JoinedCondition).LastTransitionTime.After(at)
}

// start is a Job that is to begin. Former is the one of the node that has ended, and goes first.
type start struct {
	node   *corev1.Node
	pool   string // that the node is to be in; "": it leaves
	of     string
	former *batchv1.Job
	tries  int    // how often the node was tried before, and nothing went on
	why    string // the Job only stands for former, which made no progress; "": it begins
}
