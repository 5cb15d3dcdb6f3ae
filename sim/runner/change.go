package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// changed is an object that a fault changes or removes.
type changed struct {
	kind scenario.ObjectKind
	is   map[string]any // the patch; nil: it is deleted
	in   dynamic.ResourceInterface
	name string
	was  *unstructured.Unstructured
	back map[string]any // the patch that undoes it
}

// objects are those of a kind in the cloud, in the namespace of leader-hub-<pool> if they have one.
func (r *run) objects(kind scenario.ObjectKind) (dynamic.ResourceInterface, error) {
	cloud, err := dynamic.NewForConfig(r.reach.through(r.site.Admin()))
	if err != nil {
		return nil, err
	}
	in := func(g, v, resource string) dynamic.NamespaceableResourceInterface {
		return cloud.Resource(schema.GroupVersionResource{Group: g, Version: v, Resource: resource})
	}
	switch kind {
	case scenario.NodePoolObject:
		return in(nodepool.GroupVersion.Group, nodepool.GroupVersion.Version, "nodepools"), nil
	case scenario.PoolObject:
		return in(poolv1.GroupVersion.Group, poolv1.GroupVersion.Version, "pools"), nil
	case scenario.NodeObject:
		return in("", "v1", "nodes"), nil
	case scenario.ServiceObject:
		return in("", "v1", "services").Namespace(contract.ManagerNamespace), nil
	case scenario.EndpointsObject:
		return in("", "v1", "endpoints").Namespace(contract.ManagerNamespace), nil
	case scenario.EndpointSliceObject:
		return in("discovery.k8s.io", "v1", "endpointslices").Namespace(contract.ManagerNamespace), nil
	}
	return nil, fmt.Errorf("there is no object %s", kind)
}

// ChangeObject implements scenario.Objects.
func (r *run) ChangeObject(ctx context.Context, at *scenario.Aim, of scenario.ObjectKind, patch map[string]any) (
	scenario.Going, error) {
	c, err := r.changeObject(ctx, at, of, patch)
	return scenario.Going{
		Hold: func(ctx context.Context) error { return r.changedFor(ctx, at, c) },
		Heal: func(ctx context.Context) error { return r.restoreObject(ctx, at.Pool, c) },
	}, err
}

// changeObject does what a patch says to an object, or deletes it, and remembers what it was.
func (r *run) changeObject(ctx context.Context, at *scenario.Aim, of scenario.ObjectKind, patch map[string]any) (
	c *changed, err error) {
	c = &changed{kind: of, is: patch, name: at.Pool.Name}
	switch {
	case of == scenario.NodeObject:
		c.name = at.Node
	case of.Kept():
		c.name = contract.LeaderHubPrefix + at.Pool.Name
	}
	if c.in, err = r.objects(of); err != nil {
		return nil, err
	}
	if c.was, err = c.in.Get(ctx, c.name, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	if patch == nil {
		return c, c.in.Delete(ctx, c.name, metav1.DeleteOptions{})
	}
	c.back = undo(patch, c.was.Object)
	return c, c.patch(ctx, patch)
}

// patch changes the object. A field that the cloud does not know is an error.
func (c *changed) patch(ctx context.Context, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.in.Patch(ctx, c.name, types.MergePatchType, data,
		metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// undo is the merge patch that puts back what another one changes.
func undo(patch, was map[string]any) map[string]any {
	back := map[string]any{}
	for key, v := range patch {
		old, had := was[key]
		deeper, isMap := v.(map[string]any)
		before, wasMap := old.(map[string]any)
		switch {
		case isMap && (wasMap || !had):
			back[key] = undo(deeper, before)
		case had:
			back[key] = old
		default:
			back[key] = nil
		}
	}
	return back
}

// restoreObject puts back what was, and waits until the pool goes by it. What weir-manager keeps it has to have put
// right by now.
func (r *run) restoreObject(ctx context.Context, p scenario.Pool, c *changed) error {
	if c.kind.Kept() {
		is, err := c.in.Get(ctx, c.name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("%s %s was not put right: %w", c.kind, c.name, err)
		}
		if what := differs(c.kind, c.was.Object, is.Object); what != "" {
			return fmt.Errorf("%s %s was not put right: %s is %v, and was %v", c.kind, c.name, what, is.Object[what],
				c.was.Object[what])
		}
		return nil
	}
	if c.is == nil {
		anew := &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": c.was.GetAPIVersion(), "kind": c.was.GetKind(), "spec": c.was.Object["spec"]},
		}
		anew.SetName(c.name)
		anew.SetLabels(c.was.GetLabels())
		anew.SetAnnotations(c.was.GetAnnotations())
		if _, err := c.in.Create(ctx, anew, metav1.CreateOptions{}); err != nil {
			return err
		}
	} else if err := c.patch(ctx, c.back); err != nil {
		return err
	}
	err := r.until(ctx, settlePatience, func() (bool, string) { return r.goesBy(ctx, p) })
	r.leads(ctx, p)
	return err
}

// differs names the part of an object that weir-manager keeps and that is not as it was; "": it is. What others add
// beside stays.
func differs(kind scenario.ObjectKind, was, is map[string]any) string {
	for _, part := range []string{"subsets", "endpoints", "ports"} {
		if !reflect.DeepEqual(was[part], is[part]) {
			return part
		}
	}
	if kind == scenario.ServiceObject && !reflect.DeepEqual(was["spec"], is["spec"]) {
		return "spec"
	}
	old, now := &unstructured.Unstructured{Object: was}, &unstructured.Unstructured{Object: is}
	for _, pair := range [][2]map[string]string{
		{old.GetLabels(), now.GetLabels()}, {old.GetAnnotations(), now.GetAnnotations()},
	} {
		for k, v := range pair[0] {
			if !says(k, pair[1][k], v) {
				return "metadata"
			}
		}
	}
	return ""
}

// says reports whether a label or an annotation says what it said. What is made again is signed again, with a later
// version.
func says(key, is, was string) bool {
	if key != contract.LeaderHubSigned {
		return is == was
	}
	var now, before struct {
		Directory map[string]any `json:"directory"`
		Signature []byte         `json:"signature"`
	}
	if json.Unmarshal([]byte(is), &now) != nil || json.Unmarshal([]byte(was), &before) != nil {
		return false
	}
	delete(now.Directory, "version")
	delete(before.Directory, "version")
	return len(now.Signature) > 0 && reflect.DeepEqual(now.Directory, before.Directory)
}

// changedFor lasts as long as the object is changed, and notes when the pool went by it.
func (r *run) changedFor(ctx context.Context, at *scenario.Aim, c *changed) error {
	taken := func() (bool, string) { return r.goesBy(ctx, at.Pool) }
	if c.kind.Kept() {
		taken = func() (bool, string) { return true, "" } // the heal looks whether it was put right
	}
	if err := r.until(ctx, at.Fault.For, taken); err != nil {
		return fmt.Errorf("pool %s has not taken up the change: %w", at.Pool.Name, err)
	}
	r.leads(ctx, at.Pool)
	now := time.Now()
	r.outages.mu.Lock()
	r.applied = max(r.applied, now.Sub(at.Began))
	r.outages.mu.Unlock()
	if err := sleep(ctx, time.Until(at.Began.Add(at.Fault.For))); err != nil {
		return err
	}
	if err := r.countWatches(ctx); err != nil {
		return err
	}
	told, _, err := r.told(ctx, at.Pool)
	// each of them reads every change.
	if err == nil && told != nil && told.Annotations[contract.LeaderHubMode] == contract.ModeLeaderHubs {
		leaders := 0
		for _, s := range told.Subsets {
			leaders += len(s.Addresses)
		}
		at.Due = r.truth().bytes(now, time.Now()) * int64(max(leaders-1, 0))
	}
	if err != nil {
		return err
	}
	added, err := r.newcomers(ctx, c)
	at.Due += added
	return err
}

// relayLists is how often each hub has refilled a relay, by "<node>, <why>": by a list, or by comparing. If the scope
// changes, only relays count that are there all the time.
func (r *run) relayLists(ctx context.Context) (map[string]float64, error) {
	stays, err := r.stays()
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for _, node := range r.weir().nodes {
		p, err := r.site.Part(runtime.HubOf(node))
		if err != nil {
			return nil, err
		}
		m, err := p.Metrics(ctx)
		if err != nil {
			return nil, fmt.Errorf("metrics of the hub of %s: %w", node, err)
		}
		for _, labels := range stays {
			all[node+", by comparing"] += m.Sum("weir_hub_relay_source_resyncs_total", labels...)
			for cause := range (source.Lists{}).All() {
				all[node+", by a list, "+string(cause)] += m.Sum("weir_hub_relay_source_lists_total",
					append(slices.Clone(labels), fmt.Sprintf("cause=%q", cause))...)
			}
		}
	}
	return all, nil
}

// addRelayLists counts how often hubs have refilled a relay since all caches were there.
func (r *run) addRelayLists(ctx context.Context) error {
	now, err := r.relayLists(ctx)
	if err != nil {
		return err
	}
	var sum float64
	for _, which := range slices.Sorted(maps.Keys(now)) {
		if n := now[which] - r.lists[which]; n > 0 {
			r.Progress(fmt.Sprintf("a relay was refilled by the hub of %s, times %v", which, n))
			sum += n
		}
	}
	r.metrics["relay_lists"] = sum
	return nil
}

// addMismatches counts differences between relays of the pool that did not fit, by the parts that answer in the end.
func (r *run) addMismatches(ctx context.Context) {
	var sum float64
	for _, id := range r.site.Parts() {
		var s status
		if kind := id.Kind(); kind != "hub" && kind != "coordinator" || r.ask(ctx, id, &s) != nil {
			continue
		}
		for _, x := range s.Resources {
			sum += float64(x.Mismatches)
		}
	}
	r.metrics["delta_mismatches"] = sum
}

// goesBy reports whether a pool does what its objects say: weir-manager has seen them, nodes have what the NodePool
// puts on them, and all hubs that hear the cloud know of it and lead or follow.
func (r *run) goesBy(ctx context.Context, p scenario.Pool) (bool, string) {
	told, why, err := r.told(ctx, p)
	if err != nil || why != "" {
		return false, fmt.Sprintf("waiting for weir-manager: %s (%v)", why, err)
	}
	if told == nil {
		return true, ""
	}
	version, err := strconv.ParseUint(told.ResourceVersion, 10, 64)
	if err != nil {
		return false, err.Error()
	}
	relays := func(s *status) (ok bool) {
		ok, why = s.relays(told)
		return ok
	}
	for _, node := range r.present(p) {
		var s status
		if err := r.ask(ctx, runtime.HubOf(node), &s); err != nil {
			return false, fmt.Sprintf("waiting for the hub of %s: %v", node, err)
		}
		switch mode := told.Annotations[contract.LeaderHubMode]; {
		case !s.Directory.Live: // cut off: it goes on with what it heard last
		case s.Directory.Version < version:
			return false, fmt.Sprintf("waiting for the hub of %s to be told: it is at %d of %d", node, s.Directory.Version,
				version)
		case mode != "" && s.Directory.Mode != mode:
			return false, fmt.Sprintf("the hub of %s is told the mode %s, and is at %q", node, mode, s.Directory.Mode)
		case !relays(&s):
			return false, fmt.Sprintf("waiting for the hub of %s: %s", node, why)
		case !s.holds():
			return false, fmt.Sprintf("waiting for the hub of %s to lead or follow: it is %s of %s", node, s.Role, s.Source)
		case mode == contract.ModeLeaderHubs && (s.Role == roleLeader) != names(told, node):
			return false, fmt.Sprintf("waiting for the hub of %s, which is %s and is named a leader hub: %v", node, s.Role,
				names(told, node))
		}
	}
	return true, ""
}

// names reports whether a node is one of the leader hubs.
func names(told *corev1.Endpoints, node string) bool {
	return slices.ContainsFunc(told.Subsets, func(s corev1.EndpointSubset) bool {
		return slices.ContainsFunc(s.Addresses, func(a corev1.EndpointAddress) bool {
			return a.NodeName != nil && *a.NodeName == node
		})
	})
}

// told is what weir-manager tells the hubs of a pool, and what it has still to do; nil: nothing, since there is no
// NodePool.
func (r *run) told(ctx context.Context, p scenario.Pool) (told *corev1.Endpoints, why string, err error) {
	var n nodepool.NodePool
	var own poolv1.Pool
	described, err := r.read(ctx, scenario.NodePoolObject, p.Name, &n)
	if err != nil {
		return nil, "", err
	}
	has, err := r.read(ctx, scenario.PoolObject, p.Name, &own)
	if err != nil {
		return nil, "", err
	}
	told, err = r.admin.CoreV1().Endpoints(contract.ManagerNamespace).Get(ctx, contract.LeaderHubPrefix+p.Name,
		metav1.GetOptions{})
	gone := apierrors.IsNotFound(err)
	switch {
	case err != nil && !gone:
		return nil, "", err
	case has && own.Status.ObservedGeneration < own.Generation:
		return nil, fmt.Sprintf("it has seen generation %d of %d of the Pool", own.Status.ObservedGeneration, own.Generation),
			nil
	case !described && !gone:
		return nil, "it tells of a NodePool that is gone", nil
	case !described:
		return nil, "", nil
	case gone:
		return nil, "it tells hubs nothing", nil
	}
	if want, have := scopeOf(n.Spec.PoolScopeMetadata), scopeTold(told); !slices.Equal(want, have) {
		return nil, fmt.Sprintf("hubs are told to share %q: want %q", have, want), nil
	}
	why, err = r.attributes(ctx, &n)
	return told, why, err
}

// scopeOf is what a NodePool asks to share, and scopeTold what hubs are told to.
func scopeOf(all []nodepool.Resource) (names []string) {
	for _, s := range all {
		names = append(names, s.Group+"/"+s.Version+"/"+s.Resource)
	}
	slices.Sort(names)
	return names
}

func scopeTold(told *corev1.Endpoints) (names []string) {
	for s := range strings.SplitSeq(told.Annotations[contract.LeaderHubScope], ",") {
		if name, _, _ := strings.Cut(s, "="); name != "" { // behind a custom resource is its kind
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// read reads an object into its type; false: there is none.
func (r *run) read(ctx context.Context, kind scenario.ObjectKind, name string, into any) (bool, error) {
	in, err := r.objects(kind)
	if err != nil {
		return false, err
	}
	o, err := in.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	data, err := o.MarshalJSON()
	return true, errors.Join(err, json.Unmarshal(data, into))
}

// attributes says which node of a pool lacks what the NodePool puts on it.
func (r *run) attributes(ctx context.Context, p *nodepool.NodePool) (string, error) {
	nodes, err := r.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{
		LabelSelector: contract.NodePoolLabel + "=" + p.Name,
	})
	if err != nil {
		return "", err
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if !slices.Contains(p.Status.Nodes, n.Name) {
			return n.Name + " is not in the status of the NodePool", nil
		}
		for _, pair := range [][2]map[string]string{{p.Spec.Labels, n.Labels}, {p.Spec.Annotations, n.Annotations}} {
			for _, k := range slices.Sorted(maps.Keys(pair[0])) {
				if pair[1][k] != pair[0][k] {
					return fmt.Sprintf("%s has not got %s=%s", n.Name, k, pair[0][k]), nil
				}
			}
		}
		for _, t := range p.Spec.Taints {
			if !slices.ContainsFunc(n.Spec.Taints, func(o corev1.Taint) bool {
				return o.Key == t.Key && o.Value == t.Value && o.Effect == t.Effect
			}) {
				return fmt.Sprintf("%s has not got the taint %s", n.Name, t.Key), nil
			}
		}
	}
	if len(p.Status.Nodes) != len(nodes.Items) {
		return fmt.Sprintf("the status of the NodePool has %d nodes of %d", len(p.Status.Nodes), len(nodes.Items)), nil
	}
	return "", nil
}
