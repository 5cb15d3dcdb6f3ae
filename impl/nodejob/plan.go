package nodejob

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// PreloadChange is a Job that is to run, or to run no more.
type PreloadChange struct {
	Job     *batchv1.Job
	Suspend bool
}

// NodeOf is the node of a Job.
func NodeOf(j *batchv1.Job) string { return j.Spec.Template.Spec.NodeName }

// Waits reports whether a Job is suspended.
func Waits(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// NodeState is how a node stands.
type NodeState int

// Nodes.
const (
	NodeGone NodeState = iota // there is none of that name
	NodeAway                  // it cannot pull now
	NodeAble
)

// PlanPreloads tells what is to change. One Job of a pool runs at a time, in its hours. The first that was made comes
// first; of those of one second, that of the first node by name. So the second node of a pool reads from the first. A
// node that is not able to pull keeps nobody waiting. The Job of one that is gone would make Pods which nobody runs.
func PlanPreloads(all []batchv1.Job, open func(pool string) bool,
	node func(name string) NodeState) (changes []PreloadChange) {
	var alive []*batchv1.Job
	for i := range all {
		is, _ := PhaseOf(&all[i])
		if is == Running && all[i].DeletionTimestamp.IsZero() {
			alive = append(alive, &all[i])
		}
	}
	slices.SortFunc(alive, func(a, b *batchv1.Job) int {
		return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), // of whole seconds
			cmp.Compare(NodeOf(a), NodeOf(b)), cmp.Compare(a.Name, b.Name))
	})
	busy := map[string]bool{}
	for _, j := range alive {
		pool := j.Labels[contract.NodePoolLabel]
		switch {
		case Waits(j):
		case j.Annotations[contract.PreloadNow] == "" && !open(pool), node(NodeOf(j)) == NodeGone:
			changes = append(changes, PreloadChange{j, true})
		case node(NodeOf(j)) == NodeAble:
			busy[pool] = true
		}
	}
	for _, j := range alive {
		if pool := j.Labels[contract.NodePoolLabel]; Waits(j) && !busy[pool] && open(pool) && node(NodeOf(j)) == NodeAble {
			busy[pool] = true
			changes = append(changes, PreloadChange{j, false})
		}
	}
	return changes
}
