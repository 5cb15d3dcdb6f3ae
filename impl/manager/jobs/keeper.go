package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodejob"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

const (
	// soon is when the cache has heard of what was written.
	soon = 200 * time.Millisecond
	// recheck is how often it is looked whether Jobs may begin now, if nothing changes.
	recheck = 30 * time.Second
)

// keeper looks at all nodes at once: what may begin on one depends on the others.
type keeper struct {
	client  client.Client
	reader  client.Reader // not from the cache
	images  manifests.Getter
	clock   clock.PassiveClock
	events  events.EventRecorder
	metrics *Metrics
	log     *slog.Logger

	told  map[types.UID]bool // failed Jobs of which an Event tells
	tried map[types.UID]int  // how often a Job of a Node could not be made
	// well is when something was last seen to go on, of a Job. What is not in it, as after a start, counts by the age of
	// its Pod: so a manager that starts again gives nobody more time.
	well map[types.UID]time.Time
}

// Reconcile implements reconcile.Reconciler.
func (k *keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	s, err := k.read(ctx, k.client)
	if err != nil {
		return reconcile.Result{}, err
	}
	k.well = s.look()
	again := recheck
	if begin, useless := s.plan(); len(begin)+len(useless) > 0 {
		again = soon
		if s, err = k.read(ctx, k.reader); err != nil { // the cache may not know yet what was begun a moment ago
			return reconcile.Result{}, err
		}
		err = k.act(ctx, s)
	}
	k.metrics.show(s)
	k.tellFailures(s)
	if err = errors.Join(err, k.tellPools(ctx, s)); apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// read gathers what there is. Jobs come from where it is said.
func (k *keeper) read(ctx context.Context, from client.Reader) (*stand, error) {
	s := &stand{
		described: map[string]bool{}, told: map[string]bool{}, refused: map[string]error{}, tried: k.tried,
		now: k.clock.Now(), well: k.well,
	}
	var nodes corev1.NodeList
	var all batchv1.JobList
	var pods corev1.PodList
	var services corev1.ServiceList
	var pools poolv1.List
	var nodePools nodepool.List
	here := client.InNamespace(contract.ManagerNamespace)
	if err := errors.Join(
		k.client.List(ctx, &nodes), from.List(ctx, &all, here, client.MatchingLabels(nodejob.InstallLabels())),
		k.client.List(ctx, &pods, here, client.MatchingLabels(nodejob.InstallLabels())),
		k.client.List(ctx, &services, here, client.MatchingLabels{contract.ManagedLabel: contract.ManagedBy}),
		k.client.List(ctx, &pools), k.client.List(ctx, &nodePools),
	); err != nil {
		return nil, err
	}
	s.nodes, s.jobs, s.pods, s.pools = nodes.Items, all.Items, pods.Items, pools.Items
	slices.SortFunc(s.nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.jobs, func(a, b batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	for i := range services.Items {
		if name, ok := strings.CutPrefix(services.Items[i].Name, contract.LeaderHubPrefix); ok {
			s.told[name] = true
		}
	}
	own := map[string]bool{}
	for i := range pools.Items {
		own[pools.Items[i].Name] = pools.Items[i].DeletionTimestamp.IsZero()
	}
	for i := range nodePools.Items {
		if p := &nodePools.Items[i]; p.DeletionTimestamp.IsZero() && own[p.Name] {
			s.described[p.Name] = true
		}
	}
	var err error
	s.image, s.secrets, err = k.image(ctx)
	return s, err
}

// imagesMap is the ConfigMap that says which images may join nodes, without what it says.
func imagesMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: contract.ManagerNamespace, Name: contract.InstallerImages,
	}}
}

// image is what Jobs run, and by which Secrets it is pulled; "": none is to begin.
func (k *keeper) image(ctx context.Context) (string, []corev1.LocalObjectReference, error) {
	var c corev1.ConfigMap
	switch err := k.images.Get(ctx, client.ObjectKeyFromObject(imagesMap()), &c); {
	case apierrors.IsNotFound(err):
		return "", nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("which image joins nodes: %w", err)
	}
	for line := range strings.Lines(c.Data[contract.InstallerImagesKey]) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			return line, manifests.PullSecrets(&c), nil
		}
	}
	return "", nil, nil
}

// act does what is to be done. Something that fails does not keep the rest.
func (k *keeper) act(ctx context.Context, s *stand) error {
	begin, useless := s.plan()
	var failed []error
	for _, j := range useless {
		failed = append(failed, k.remove(ctx, j))
	}
	if k.tried == nil {
		k.tried = map[types.UID]int{}
	}
	for _, b := range begin {
		if err := k.begin(ctx, b, s); err != nil {
			failed = append(failed, err)
			s.refused[b.of] = err
			k.tried[b.node.UID]++
		} else {
			delete(k.tried, b.node.UID)
		}
	}
	maps.DeleteFunc(k.tried, func(of types.UID, _ int) bool {
		return !slices.ContainsFunc(s.nodes, func(n corev1.Node) bool { return n.UID == of })
	})
	return errors.Join(failed...)
}

func (k *keeper) remove(ctx context.Context, j *batchv1.Job) error {
	err := k.client.Delete(ctx, j, client.Preconditions{UID: &j.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove Job %s of node %s: %w", j.Name, j.Annotations[contract.InstallNode], err)
	}
	return nil
}

func (k *keeper) begin(ctx context.Context, b start, s *stand) error {
	if b.former != nil {
		if err := k.remove(ctx, b.former); err != nil {
			return err
		}
	}
	verb, what := "join", "joins pool "+b.pool
	if b.pool == "" {
		verb, what = "leave", "leaves its pool"
	}
	j := b.job(s.image, s.secrets)
	switch err := k.client.Create(ctx, j); {
	case apierrors.IsAlreadyExists(err): // the former one is about to go
		return nil
	case err != nil:
		return fmt.Errorf("begin Job %s of node %s: %w", j.Name, b.node.Name, err)
	}
	if b.why != "" { // tellFailures says it
		return nil
	}
	k.metrics.begun.WithLabelValues(verb).Inc()
	k.log.Info("a Job began on a node", "node", b.node.Name, "job", j.Name, "verb", verb, "pool", b.of)
	k.events.Eventf(b.node, nil, corev1.EventTypeNormal, reasonBegun, "Install", "The node %s, by Job %s/%s.", what,
		j.Namespace, j.Name)
	return nil
}

// tellFailures writes an Event about each Job that failed, or made no progress.
func (k *keeper) tellFailures(s *stand) {
	there := map[types.UID]bool{}
	for i := range s.jobs {
		j := &s.jobs[i]
		n := s.of(j)
		is, _ := nodejob.PhaseOf(j)
		if is != nodejob.Failed && is != nodejob.Aside || n == nil {
			continue
		}
		reason, what := reasonFailed, "a Job failed on a node"
		if is == nodejob.Aside {
			reason, what = reasonStalled, "a Job made no progress on a node; others go first"
		}
		if there[j.UID] = true; !k.told[j.UID] {
			why := nodejob.Why(j, s.pods)
			k.log.Warn(what, "node", n.Name, "job", j.Name, "pool", pool(j), "why", why)
			k.events.Eventf(n, nil, corev1.EventTypeWarning, reason, "Install", "Job %s/%s: %s", j.Namespace, j.Name, why)
		}
	}
	k.told = there
}

// tellPools writes the condition of each Pool.
func (k *keeper) tellPools(ctx context.Context, s *stand) error {
	var failed []error
	for i := range s.pools {
		p := &s.pools[i]
		if !s.described[p.Name] {
			continue
		}
		was := p.Status.DeepCopy()
		if c := s.tell(p.Name); c == nil {
			meta.RemoveStatusCondition(&p.Status.Conditions, poolv1.NodesInstalled)
		} else {
			c.LastTransitionTime = metav1.Time{Time: k.clock.Now().Truncate(time.Second)}
			before := meta.FindStatusCondition(p.Status.Conditions, c.Type)
			if c.Reason == reasonStopped && (before == nil || before.Reason != reasonStopped) {
				k.events.Eventf(p, nil, corev1.EventTypeWarning, c.Reason, "Install", "%s", c.Message)
			}
			meta.SetStatusCondition(&p.Status.Conditions, *c)
		}
		if !equality.Semantic.DeepEqual(was, &p.Status) {
			if err := k.client.Status().Update(ctx, p); err != nil {
				failed = append(failed, fmt.Errorf("status of Pool %s: %w", p.Name, err))
			}
		}
	}
	return errors.Join(failed...)
}
