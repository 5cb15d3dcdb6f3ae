package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/thief"
	"github.com/weir-edge/weir/sim/timeline"
)

// revocations are the deletions of Nodes, and how long their certificates counted.
type revocations struct {
	nodes map[string]bool // that were deleted

	mu      sync.Mutex
	granted int // what a thief was granted before, least of all deletions; 0: there was none
	// from a deletion, or from the first contact after it, until all was refused; longest.
	last                      time.Duration
	missed                    []string // what was not refused while the Node was gone
	requests, controls, wrong int      // for certificates; see thief.Request

	gone  []*stolen // whose Node was deleted, and is not there again
	again int       // what coordinator and hubs granted to them after the cloud had forgotten it

	back time.Duration // from a Node that is there again until its hub leads or follows; longest
}

// stolen is a Node that is deleted while its hub runs on, and somebody else has what was on its disk.
type stolen struct {
	*thief.Thief
	node    *corev1.Node
	counts  chan struct{} // closed when the pool has the cloud: the time begins
	stop    []context.CancelFunc
	settled chan struct{}  // closed when all is refused, or nobody looks any more
	pool    sync.WaitGroup // of the one that looks after the cloud has forgotten it
}

// DeleteNode implements scenario.Thieves.
func (r *run) DeleteNode(ctx context.Context, at *scenario.Aim, off time.Duration) (scenario.Going, error) {
	s, err := r.deleteNode(ctx, at, off)
	return scenario.Going{
		Hold: func(ctx context.Context) error { return r.withoutNode(ctx, at, off, s) },
		Heal: func(ctx context.Context) error { return r.restoreNode(ctx, at, s) },
	}, err
}

// deleteNode takes what the node has, and deletes its Node.
func (r *run) deleteNode(ctx context.Context, at *scenario.Aim, off time.Duration) (*stolen, error) {
	node := at.Node
	s := &stolen{counts: make(chan struct{}), settled: make(chan struct{})}
	var err error
	if s.node, err = r.admin.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	if s.Thief, err = r.steal(ctx, at.Pool, node); err != nil {
		return nil, err
	}
	r.Progress(fmt.Sprintf("node %s is deleted; %d requests and streams were granted to it", node, s.Granted()))
	if off > 0 {
		at.Cut(r)
	} else {
		close(s.counts)
	}
	if err := r.admin.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	looking, stop := context.WithCancel(ctx)
	s.stop = append(s.stop, stop)
	r.background.Go(func() { r.watchThief(looking, s) })
	r.revocations.mu.Lock()
	defer r.revocations.mu.Unlock()
	r.revocations.gone = append(r.revocations.gone, s)
	return s, nil
}

// forgotten looks again at what deleted nodes are granted: the cloud is restored from a backup in which they are not.
// In the pool nothing is ever, and kube-apiserver refuses all again.
func (r *run) forgotten(ctx context.Context) error {
	r.revocations.mu.Lock()
	gone := slices.Clone(r.revocations.gone)
	r.revocations.mu.Unlock()
	for _, s := range gone {
		select {
		case <-s.settled:
		case <-ctx.Done():
			return ctx.Err()
		}
		looking, stop := context.WithCancel(ctx)
		s.stop, s.settled = append(s.stop, stop), make(chan struct{})
		s.pool.Go(func() { r.watchPool(looking, s) })
		r.background.Go(func() { r.watchThief(looking, s) })
	}
	return nil
}

// watchPool counts what coordinator and hubs grant to a node that was deleted, until ctx ends.
func (r *run) watchPool(ctx context.Context, s *stolen) {
	poll := time.NewTicker(tick)
	defer poll.Stop()
	for {
		if granted := s.InPool(ctx); len(granted) > 0 {
			r.Progress(fmt.Sprintf("node %s was deleted, and is granted again: %s", s.node.Name, strings.Join(granted, "; ")))
			r.revocations.mu.Lock()
			r.revocations.again += len(granted)
			r.revocations.mu.Unlock()
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

// steal reads the disk of a node.
func (r *run) steal(ctx context.Context, p scenario.Pool, node string) (*thief.Thief, error) {
	others := slices.DeleteFunc(nodesOf(p), func(n string) bool { return n == node })
	var t *thief.Thief
	err := r.reach.while(ctx, func() (err error) {
		t, err = thief.Of(ctx, r.site, p.Name, node, others...)
		return err
	})
	return t, err
}

// watchThief notes when the last thing is refused.
func (r *run) watchThief(ctx context.Context, s *stolen) {
	defer close(s.settled)
	select {
	case <-s.counts:
	case <-ctx.Done():
		return
	}
	began := time.Now()
	poll := time.NewTicker(tick)
	defer poll.Stop()
	said := 0
	for {
		left := s.Left(ctx)
		if ctx.Err() == nil && len(left) == 0 {
			r.revoked(s, time.Since(began), nil)
			return
		}
		if ctx.Err() == nil && len(left) != said {
			said = len(left)
			r.Progress(fmt.Sprintf("node %s was deleted: after %s not refused: %s", s.node.Name,
				time.Since(began).Round(time.Second), strings.Join(left, "; ")))
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			r.revoked(s, time.Since(began), left)
			return
		}
	}
}

func (r *run) revoked(s *stolen, after time.Duration, left []string) {
	r.revocations.mu.Lock()
	defer r.revocations.mu.Unlock()
	if n := r.revocations.granted; n == 0 || s.Granted() < n {
		r.revocations.granted = s.Granted()
	}
	if r.revocations.nodes == nil {
		r.revocations.nodes = map[string]bool{}
	}
	r.revocations.nodes[s.node.Name] = true
	r.revocations.missed = append(r.revocations.missed, left...)
	r.revocations.last = max(r.revocations.last, after)
	what := "refused everywhere"
	if len(left) > 0 {
		what = "not refused: " + strings.Join(left, "; ")
	}
	r.Progress(fmt.Sprintf("node %s was deleted: after %s %s", s.node.Name, after.Round(10*time.Millisecond), what))
	r.time.Emit(timeline.Event{Lane: timeline.Fault, Way: report.WayWeir, Node: s.node.Name, Name: what})
}

// withoutNode lasts as long as the Node is gone; the pool has the cloud again before that.
func (r *run) withoutNode(ctx context.Context, at *scenario.Aim, off time.Duration, s *stolen) error {
	began := time.Now()
	if off > 0 {
		err := sleep(ctx, off)
		at.Mend(r)
		close(s.counts)
		if err != nil {
			return err
		}
	}
	if err := sleep(ctx, time.Until(began.Add(at.Fault.For))); err != nil {
		return err
	}
	return r.reach.while(ctx, func() error {
		req, err := thief.AskDeleted(ctx, r.site, at.Pool.Name, at.Node)
		if err == nil {
			r.asked(req)
		}
		return err
	})
}

// Forge implements scenario.Forgers.
func (r *run) Forge(ctx context.Context, at *scenario.Aim) error {
	nodes := nodesOf(at.Pool)
	other := nodes[(slices.Index(nodes, at.Node)+1)%len(nodes)]
	return r.reach.while(ctx, func() error {
		all, err := thief.Forge(ctx, r.site, at.Pool.Name, at.Node, other)
		for _, req := range all {
			r.asked(req)
		}
		return err
	})
}

// asked notes a request for a certificate.
func (r *run) asked(req thief.Request) {
	r.revocations.mu.Lock()
	defer r.revocations.mu.Unlock()
	v := &r.revocations
	if req.Control {
		v.controls++
	} else {
		v.requests++
	}
	if req.Wrong != "" {
		v.wrong++
		r.Progress(fmt.Sprintf("a certificate, %s: %s", req.Name, req.Wrong))
	}
	r.time.Emit(timeline.Event{
		Lane: timeline.Fault, Way: report.WayWeir, Name: "certificate: " + req.Name,
		Strings: map[string]string{"said": req.Said, "wrong": req.Wrong},
	})
}

// restoreNode makes the Node again, as anyone who operates the cluster does, and starts its hub again. It waits until
// the pool has it.
func (r *run) restoreNode(ctx context.Context, at *scenario.Aim, s *stolen) error {
	hub, err := r.Part(at)
	if err != nil {
		return err
	}
	r.revocations.mu.Lock()
	r.revocations.gone = slices.DeleteFunc(r.revocations.gone, func(g *stolen) bool { return g == s })
	r.revocations.mu.Unlock()
	for _, stop := range s.stop {
		stop()
	}
	<-s.settled
	s.pool.Wait()
	s.Close()
	began := time.Now()
	if r.s.RestoresCloud() { // the backup has brought it back
		if err := r.admin.CoreV1().Nodes().Delete(ctx, s.node.Name, metav1.DeleteOptions{}); err != nil &&
			!apierrors.IsNotFound(err) {
			return err
		}
	}
	fresh, err := r.admin.CoreV1().Nodes().Create(ctx,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node.Name, Labels: s.node.Labels}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fresh.Status = s.node.Status
	if _, err := r.admin.CoreV1().Nodes().UpdateStatus(ctx, fresh, metav1.UpdateOptions{}); err != nil {
		return err
	}
	r.Lost(at.Silent)
	if err := hub.Stop(ctx); err != nil {
		return err
	}
	if err := hub.Start(ctx); err != nil {
		return err
	}
	err = r.until(ctx, settlePatience, func() (bool, string) {
		var now status
		err := r.ask(ctx, runtime.PartID(at.Part), &now)
		return err == nil && now.holds(), fmt.Sprintf("waiting for %s to lead or follow again: it is %s of %s (%v)", at.Part,
			now.Role, now.Source, err)
	})
	r.revocations.mu.Lock()
	r.revocations.back = max(r.revocations.back, time.Since(began))
	r.revocations.mu.Unlock()
	return err
}

// addRevocations tells what deletions of Nodes took. What was never refused has no time.
func (r *run) addRevocations() {
	v := &r.revocations
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.controls > 0 {
		r.metrics["forged_requests"], r.metrics["forged_controls"], r.metrics["forged_wrong"] = float64(v.requests),
			float64(v.controls), float64(v.wrong)
	}
	if v.granted == 0 {
		return
	}
	var beside float64
	for _, x := range r.weir().streams {
		if !v.nodes[x.node] {
			beside += float64(x.verdict.Relists)
		}
	}
	r.metrics["revoked_beside_relists"] = beside
	if r.s.RestoresCloud() {
		r.metrics["revoked_again"] = float64(v.again)
	}
	r.metrics["revoked_probes"], r.metrics["returned_seconds_max"] = float64(v.granted), v.back.Seconds()
	if len(v.missed) == 0 {
		r.metrics["revoked_seconds_max"] = v.last.Seconds()
	}
}
