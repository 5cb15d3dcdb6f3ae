package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
)

const (
	// stall is for how long a Job may make no progress, and its container may run. A pull that failed once has this time:
	// kubelet says that it failed until it has ended well. At 128 kbit/s the image takes 20 minutes, and kubelet tries it
	// again after 5 at most. The work takes less: each of its five waits ends after two minutes.
	stall = 30 * time.Minute
	// pulling is for how long a pull may go on that has not failed: 15 kbit/s for an image of 19.6 MB.
	pulling = 3 * time.Hour
	// deadline is when kube-controller-manager ends a Job, if no weir-manager does. Six hours are longer than all above.
	deadline = 6 * 60 * 60
	// pause is when a node is tried again whose Job made no progress, once all others had their turn. It doubles, for
	// mostDoubled times.
	pause       = 10 * time.Minute
	mostDoubled = 4
)

// progress is how the Pod of a Job goes on.
type progress struct {
	begun bool          // its container, or that of a Pod before, has run
	pulls bool          // its image is being pulled, as far as anybody can see
	why   string        // why nothing goes on; "": something does
	since time.Time     // when what it does began
	most  time.Duration // how long it may take
}

// progress reads that of a Job which has not ended.
func (s *stand) progress(j *batchv1.Job) progress {
	p := nodejob.PodOf(j, s.pods)
	if p == nil {
		return progress{why: "it has no Pod", begun: j.Status.Failed > 0, since: j.CreationTimestamp.Time, most: stall}
	}
	is := progress{begun: j.Status.Failed > 0, since: p.CreationTimestamp.Time, most: stall}
	why := "the kubelet has not begun with its Pod"
	for _, c := range p.Status.ContainerStatuses {
		switch now := c.State; {
		case now.Running != nil:
			is.begun, is.since, why = true, now.Running.StartedAt.Time, ""
		case now.Terminated != nil:
			is.begun, is.since, why = true, now.Terminated.FinishedAt.Time, ""
		case now.Waiting == nil || now.Waiting.Reason == "ContainerCreating":
			is.pulls, is.most, why = true, pulling, ""
		default:
			why = strings.TrimSuffix(now.Waiting.Reason+": "+now.Waiting.Message, ": ")
		}
	}
	if n := s.of(j); n != nil && !able(n) {
		is.most, is.pulls, why = stall, false, "the node is not Ready, or does not reach the cloud"
	}
	is.why = why
	if at := s.well[j.UID]; why != "" && !is.begun && at.After(is.since) {
		is.since = at
	}
	return is
}

// stalled reports whether a Job is to be taken away, and why.
func (s *stand) stalled(j *batchv1.Job) (string, bool) {
	is := s.progress(j)
	if s.now.Sub(is.since) < is.most {
		return "", false
	}
	switch {
	case is.why != "":
	case is.pulls:
		is.why = "its image is not there yet"
	default:
		is.why = "its container does not end"
	}
	return fmt.Sprintf("no progress for %s: %s", is.most, is.why), true
}

// look is when something was last seen to go on, of each Job: now, if it does.
func (s *stand) look() map[types.UID]time.Time {
	well := map[types.UID]time.Time{}
	for i := range s.jobs {
		j := &s.jobs[i]
		if is, _ := nodejob.PhaseOf(j); is != nodejob.Running {
			continue
		}
		if at, known := s.well[j.UID]; known {
			well[j.UID] = at
		}
		if s.progress(j).why == "" {
			well[j.UID] = s.now
		}
	}
	return well
}

// triesOf is how often in a row a node was tried before this Job, or with it if it stands aside.
func triesOf(j *batchv1.Job) int {
	if j == nil {
		return 0
	}
	n, _ := strconv.Atoi(j.Annotations[contract.InstallTries])
	return max(n, 0)
}

// rested reports whether the node of a Job that stands aside may be tried again.
func (s *stand) rested(j *batchv1.Job) bool {
	return s.now.Sub(j.CreationTimestamp.Time) >= pause<<min(max(triesOf(j)-1, 0), mostDoubled)
}

// aside is the Job that is to stand for one that makes no progress; nil: it does, or none may begin, so nobody waits.
func (s *stand) aside(j *batchv1.Job) *start {
	why, is := s.stalled(j)
	if !is || s.image == "" || !j.DeletionTimestamp.IsZero() {
		return nil
	}
	one := &start{node: s.of(j), pool: j.Annotations[contract.InstallPool], of: pool(j), former: j, why: why}
	if !s.progress(j).begun {
		one.tries = triesOf(j) + 1
	}
	return one
}
