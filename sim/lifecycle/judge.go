package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/sim/lifecycle/api"
)

// What the judge allows.
const (
	// from what is true until everybody knows: a heartbeat, its forward, a tick of the manager, the policies' lag.
	slack = 30 * time.Second
	// stock Kubernetes evicts no pod earlier after its node was heard: grace period and toleration are 350 s, less an
	// interval and a try.
	stock = 330 * time.Second
	// and none later: 50 s, two looks of 5 s, 10 s for each of some nodes, 300 s, and what Weir adds.
	evictsBy = 440 * time.Second
	settled  = time.Minute      // for which a way was open before a node may not be Unknown
	calmed   = 70 * time.Second // in which leaders that were lost count
	sampling = 5 * time.Second
)

// judge knows the truth and is told what controllers do. The World's lock guards it.
type judge struct {
	w     *World
	nodes map[*node]*truth
	pools map[*pool]*poolTruth

	looked      time.Duration // when what is open was noted last
	disturbance time.Duration
	managers    []managedAt
	crowded     map[string]time.Duration // when most of a zone was lost, but not all
	overdue     map[string]bool          // pods
	dead        map[*node]time.Duration  // since when no kubelet, or no hub, gives a sign of life

	nodesAt uint64          // version of nodes at which full was found; watch alone uses these two
	full    map[string]bool // zones of which most is lost
	v       Verdict
}

// managedAt is when the last manager went, or one came.
type managedAt struct {
	at time.Duration
	up bool
}

func newJudge(w *World) *judge {
	return &judge{
		w: w, nodes: map[*node]*truth{}, pools: map[*pool]*poolTruth{}, crowded: map[string]time.Duration{},
		overdue: map[string]bool{}, dead: map[*node]time.Duration{},
	}
}

// begin takes in who is there. The lock is held.
func (j *judge) begin() {
	for _, n := range j.w.nodes {
		j.nodes[n] = &truth{open: true}
	}
	for _, p := range j.w.pools {
		j.pools[p] = &poolTruth{voice: true}
	}
}

func (j *judge) verdict() (v Verdict) {
	j.w.locked(func() { v = j.v })
	return v
}

func (j *judge) fault(count *int, format string, args ...any) {
	*count++
	line := fmt.Sprintf("%.1f ", j.w.now().Seconds()) + fmt.Sprintf(format, args...)
	j.v.Details = append(j.v.Details, line)
	j.w.trace("WRONG: %s", line)
}

// disturbed tells that stock Kubernetes may begin to count again. The lock is held.
func (j *judge) disturbed() { j.disturbance = j.w.now() }

// lost tells that a pool has lost its leader. The lock is held.
func (j *judge) lost(p *pool) { j.pools[p].lost = append(j.pools[p].lost, j.w.now()) }

func (j *judge) managed(up bool) {
	j.w.locked(func() { j.managers = append(j.managers, managedAt{j.w.now(), up}) })
}

// unmanaged reports whether no manager was there at some time. The lock is held.
func (j *judge) unmanaged(from, to time.Duration) bool {
	for i, x := range j.managers {
		until := to
		if i+1 < len(j.managers) {
			until = j.managers[i+1].at
		}
		if !x.up && x.at <= to && until >= from {
			return true
		}
	}
	return false
}

// policy tells what a pool's policy is from now on. The lock is held.
func (j *judge) policy(name, text string) {
	for p, t := range j.pools {
		if p.name == name {
			x := policyAt{at: j.w.now()}
			if _, after, ok := strings.Cut(text, ":"); ok {
				d, err := time.ParseDuration(after)
				if err != nil {
					panic(err)
				}
				x.evict, x.after = true, d
			}
			t.policy, t.changed = append(t.policy, x), j.w.now()
		}
	}
}

// forwarded counts a step of a leader: the heartbeats that reached the cloud.
func (j *judge) forwarded(step, outcome string) {
	if step == heartbeat.Write.String() && outcome == heartbeat.OK.String() {
		j.w.locked(func() { j.v.Forwarded++ })
	}
}

func ofControllers(user string) bool { return user == api.NodeController || user == api.AllControllers }

func (j *judge) denied(string, *api.Object) { j.w.locked(func() { j.v.Denied++ }) }

// deleted judges an eviction.
func (j *judge) deleted(user string, o *api.Object) {
	if o.Resource != "pods" || !ofControllers(user) {
		return
	}
	j.w.locked(func() {
		n := j.w.named(o.Node)
		j.v.Evicted++
		if why := j.wrong(n); why != "" {
			j.fault(&j.v.Wrong, "pod %s is evicted: %s", o.Name, why)
		} else {
			j.w.trace("pod %s is evicted", o.Name)
		}
	})
}

// wrong tells why a pod of a node may not be evicted now; "": it may.
func (j *judge) wrong(n *node) string {
	now, t := j.w.now(), j.of(n)
	if n.pool == nil {
		return "its node is well and in no pool"
	}
	p := j.pools[n.pool]
	returned := t.open && now-t.since <= slack && t.mute >= stock-slack
	switch {
	case returned:
	case t.open:
		return fmt.Sprintf("its node can be heard, for %s", now-t.since)
	case now-t.grew < stock && !j.unmanaged(t.grew-slack, t.grew+slack):
		return fmt.Sprintf("its node was heard %s ago", now-t.grew)
	case n.lives() && j.alone(n) < slack && !t.givenUp && !p.mayEvict(now):
		if !j.unmanaged(now-slack, now) || !j.unmanaged(t.since-slack, t.since+settled) {
			return fmt.Sprintf("its node lives, and the whole pool was silent with it, of %s for all but %s", now-t.since,
				j.alone(n))
		}
	}
	return ""
}

// updated judges what becomes of nodes and pods, and notes heartbeats.
func (j *judge) updated(user string, before, after *api.Object) {
	switch after.Resource {
	case "leases":
		var was, is coordinationv1.Lease
		if after.Namespace != contract.NodeLeaseNamespace || before.Decode(&was) != nil || after.Decode(&is) != nil ||
			was.Spec.RenewTime == nil || !is.Spec.RenewTime.After(was.Spec.RenewTime.Time) {
			return
		}
		j.w.locked(func() {
			if n := j.w.named(after.Name); n != nil {
				j.of(n).grew = j.w.now()
				j.renewed(user, n)
			}
		})
	case "nodes":
		var was, is corev1.Node
		if before.Decode(&was) == nil && after.Decode(&is) == nil && readyOf(&was).Status == corev1.ConditionTrue &&
			readyOf(&is).Status == corev1.ConditionUnknown {
			j.w.locked(func() { j.unknown(j.w.named(after.Name)) })
		}
	case "pods":
		if ofControllers(user) && api.Ready(j.w.podOf(before)) && !api.Ready(j.w.podOf(after)) {
			j.w.locked(func() { j.marked(j.w.named(after.Node), after.Name) })
		}
	}
}

// renewed judges that the Lease of a node grew. The lock is held.
func (j *judge) renewed(user string, n *node) {
	if user == managerUser {
		j.v.Pooled++
	}
	if since, dead := j.dead[n]; dead && j.w.now()-since > heartbeat.RollLate+slack/3 {
		j.fault(&j.v.Risen, "%s is renewed by %s, and gave no sign of life for %s", n.name, user, j.w.now()-since)
	}
}

// unknown judges that the cloud holds a node for lost.
func (j *judge) unknown(n *node) {
	now, t := j.w.now(), j.of(n)
	j.v.Unknown++
	j.w.trace("%s is Unknown, its Lease grew %s ago", n.name, now-t.grew)
	lost := 0
	if n.pool != nil {
		for _, at := range j.pools[n.pool].lost {
			if now-at < calmed {
				lost++
			}
		}
	}
	if t.open && now-t.since >= settled && lost <= 1 {
		j.fault(&j.v.Unjust, "%s is Unknown, and can be heard for %s; its Lease grew %s ago", n.name, now-t.since, now-t.grew)
	}
}

// marked judges that a pod is not ready any more.
func (j *judge) marked(n *node, pod string) {
	now, t := j.w.now(), j.of(n)
	j.v.Marked++
	if n.pool == nil {
		j.fault(&j.v.WrongMarks, "pod %s is marked, its node is well", pod)
		return
	}
	p := j.pools[n.pool]
	switch {
	case t.open && now-t.since >= settled && !j.unmanaged(now-settled, now):
		j.fault(&j.v.WrongMarks, "pod %s is marked, its node can be heard for %s", pod, now-t.since)
	case n.lives() && j.alone(n) < time.Second && !t.givenUp && !p.mayEvict(now) && !j.unmanaged(t.since-slack, now):
		j.fault(&j.v.WrongMarks, "pod %s is marked, its pool is silent for %s", pod, now-p.since)
	}
}

// watch looks, until the context ends, for pods that should have been evicted.
func (j *judge) watch(ctx context.Context) {
	for sleep(ctx, sampling) {
		late := false
		j.w.locked(func() {
			for _, n := range j.w.nodes {
				since, due := j.due(n)
				late = late || due && j.w.now()-since > evictsBy
			}
		})
		j.crowds(ctx)
		if !late {
			continue
		}
		pods, err := j.w.admin.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		j.w.locked(func() {
			for _, p := range pods.Items {
				since, due := j.due(j.w.named(p.Spec.NodeName))
				if due && j.w.now()-since > evictsBy && !j.overdue[p.Name] {
					j.overdue[p.Name] = true
					j.fault(&j.v.Missed, "pod %s is not evicted %s after stock Kubernetes could know", p.Name, j.w.now()-since)
				}
			}
		})
	}
}

// crowds notes the zones in which stock Kubernetes stops to evict: of which 55 %, and three nodes, are lost, but not
// all.
func (j *judge) crowds(ctx context.Context) {
	if version := j.w.cloud.Changed("nodes"); version != j.nodesAt {
		nodes, err := j.w.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		j.nodesAt = version
		all, lost := map[string]int{}, map[string]int{}
		for i := range nodes.Items {
			zone := nodes.Items[i].Labels[corev1.LabelTopologyZone]
			all[zone]++
			if readyOf(&nodes.Items[i]).Status != corev1.ConditionTrue {
				lost[zone]++
			}
		}
		j.full = map[string]bool{}
		for zone, n := range lost {
			j.full[zone] = n > 2 && n < all[zone] && float64(n) >= 0.55*float64(all[zone])
		}
	}
	j.w.locked(func() {
		for zone, full := range j.full {
			if full {
				j.crowded[zone] = j.w.now()
			}
		}
	})
}

// due tells since when a pod of a node has to go: since the node is mute and others of its pool are not, or since its
// pool is given up.
func (j *judge) due(n *node) (since time.Duration, due bool) {
	if n.pool == nil || j.of(n).open {
		return 0, false
	}
	p := j.pools[n.pool]
	if since, due = p.mustEvict(); !due {
		if !p.voice {
			return 0, false
		}
		since = max(p.since, p.changed)
	}
	zone := n.pool.name
	if j.w.config.Schedule.Zoneless {
		zone = ""
	}
	return max(since, j.of(n).since, j.disturbance, j.crowded[zone]), true
}

// healed looks whether all is well in the end.
func (j *judge) healed(ctx context.Context) {
	nodes, err := j.w.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	pods, also := j.w.admin.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	kept, too := j.w.admin.CoreV1().ConfigMaps(contract.ManagerNamespace).Get(ctx, contract.KeptNodes, metav1.GetOptions{})
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	if err := errors.Join(err, also, too); err != nil {
		j.fault(&j.v.Left, "all is healed, but: %v", err)
		return
	}
	have := map[string]int{}
	for i := range pods.Items {
		if api.Ready(&pods.Items[i]) {
			have[pods.Items[i].Spec.NodeName]++
		}
	}
	for _, n := range nodes.Items {
		cutOff := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == contract.CutOffCondition && c.Status != corev1.ConditionFalse
		})
		_, listed := kept.Data[n.Name]
		if ready := readyOf(&n).Status; ready != corev1.ConditionTrue || len(n.Spec.Taints) > 0 || cutOff || listed ||
			have[n.Name] != podsPerNode {
			j.fault(&j.v.Left, "all is healed, and %s has Ready=%s, taints %v, cut off %t, kept %t, %d pods ready",
				n.Name, ready, n.Spec.Taints, cutOff, listed, have[n.Name])
		}
	}
}
