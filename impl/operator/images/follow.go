package images

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// poll is how often it is looked how far Jobs are.
const poll = time.Second

// follow prints what becomes of Jobs, until all have ended. What was said of one is not said again: a kubelet goes back
// and forth between trying and waiting.
func follow(ctx context.Context, c *commands.Cluster, pool string, made []*batchv1.Job, stdout io.Writer) error {
	said := map[types.UID]map[string]bool{}
	say := func(j *batchv1.Job, text string) {
		if said[j.UID] == nil {
			said[j.UID] = map[string]bool{}
		}
		if !said[j.UID][text] {
			said[j.UID][text] = true
			fmt.Fprintf(stdout, "%s: %s\n", about(j), text)
		}
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for failed, ended := 0, map[types.UID]bool{}; ; {
		now, err := look(ctx, c, pool)
		if ctx.Err() != nil {
			return context.Canceled
		}
		if err != nil {
			return err
		}
		for _, j := range made {
			if ended[j.UID] {
				continue
			}
			text, done, well := now.of(j)
			say(j, text)
			if done {
				ended[j.UID] = true
			}
			if done && !well {
				failed++
			}
		}
		switch {
		case len(ended) == len(made) && failed > 0:
			return fmt.Errorf("%d of %d pulls failed", failed, len(made))
		case len(ended) == len(made):
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Canceled
		}
	}
}

// standing is how the Jobs of a pool stand.
type standing struct {
	hours string // in which they run, if those are not now
	jobs  map[types.UID]*batchv1.Job
	pods  []corev1.Pod
	nodes map[string]bool
}

func look(ctx context.Context, c *commands.Cluster, pool string) (s standing, err error) {
	var all batchv1.JobList
	var pods corev1.PodList
	var nodes corev1.NodeList
	var own poolv1.Pool
	here, ours := client.InNamespace(contract.ManagerNamespace), client.MatchingLabels(nodejob.PreloadLabelsOf(pool))
	if err := c.List(ctx, &all, here, ours); err != nil {
		return s, err
	}
	if err := c.List(ctx, &pods, here, ours); err != nil {
		return s, err
	}
	if err := c.List(ctx, &nodes, client.MatchingLabels{contract.NodePoolLabel: pool}); err != nil {
		return s, err
	}
	if err := c.Get(ctx, client.ObjectKey{Name: pool}, &own); client.IgnoreNotFound(err) != nil {
		return s, err
	} else if apierrors.IsNotFound(err) {
		own.Spec.Images = nil
	}
	s = standing{jobs: map[types.UID]*batchv1.Job{}, pods: pods.Items, nodes: map[string]bool{}}
	for i := range nodes.Items {
		s.nodes[nodes.Items[i].Name] = true
	}
	for i := range all.Items {
		s.jobs[all.Items[i].UID] = &all.Items[i]
	}
	if own.Spec.Images != nil {
		if open, _ := nodejob.WindowOpen(own.Spec.Images.Window, c.Now()); !open {
			s.hours = hours(&own)
		}
	}
	return s, nil
}

// of is what is to be said of a Job.
func (s standing) of(made *batchv1.Job) (text string, ended, well bool) {
	j := s.jobs[made.UID]
	if j == nil {
		return "its Job was deleted", true, false
	}
	is, _ := nodejob.PhaseOf(j)
	why, pod := nodejob.Why(j, s.pods), nodejob.PodOf(j, s.pods)
	switch {
	case is == nodejob.Done:
		return "it is there", true, true
	case is == nodejob.Failed:
		return "failed: " + why, true, false
	case !s.nodes[nodejob.NodeOf(j)]:
		return "its node has left the pool", true, false
	case nodejob.Waits(j) && s.hours != "":
		return "waits for the hours of the pool, " + s.hours, false, false
	case nodejob.Waits(j):
		return "waits for its turn", false, false
	case pod == nil:
		return "waits for its Pod", false, false
	case pod.DeletionTimestamp != nil:
		return "its Pod is deleted, and another one goes on", false, false
	case why != "":
		return why, false, false
	}
	return "is pulled", false, false
}

// about says what a Job is for.
func about(j *batchv1.Job) string {
	return j.Spec.Template.Spec.Containers[0].Image + " on " + nodejob.NodeOf(j)
}

// hours are those of a pool as people read them; "": all.
func hours(p *poolv1.Pool) string {
	if p == nil || p.Spec.Images == nil {
		return ""
	}
	var all []string
	for _, w := range p.Spec.Images.Window {
		all = append(all, nodejob.WindowHours(w))
	}
	return strings.Join(all, ", ")
}
