package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/sim/scenario"
)

// sharedBy are the resources that the spec of a NodePool shares.
func sharedBy(object map[string]any) (all []nodepool.Resource, err error) {
	var p struct {
		Spec struct {
			PoolScopeMetadata []nodepool.Resource `json:"poolScopeMetadata"`
		} `json:"spec"`
	}
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	return p.Spec.PoolScopeMetadata, err
}

// scopes reports whether a patch is about what a pool shares.
func scopes(patch map[string]any) bool {
	spec, _ := patch["spec"].(map[string]any)
	_, changes := spec["poolScopeMetadata"]
	return changes
}

// stays are the labels of each resource that all changes of the scope leave in it; one without labels if none is about
// the scope.
func (r *run) stays() (labels [][]string, err error) {
	var all []nodepool.Resource
	some := false
	for _, f := range r.s.Faults {
		k, ok := f.Kind.(*scenario.Change)
		if !ok || !scopes(k.Patch) {
			continue
		}
		is, err := sharedBy(k.Patch)
		if err != nil {
			return nil, err
		}
		if !some {
			all, some = is, true
		}
		all = slices.DeleteFunc(all, func(x nodepool.Resource) bool { return !slices.Contains(is, x) })
	}
	if !some {
		return [][]string{nil}, nil
	}
	for _, x := range all {
		labels = append(labels, []string{fmt.Sprintf("resource=%q", x.Resource+"."+x.Version+"."+x.Group)})
	}
	return labels, nil
}

// newcomers are the bytes of one list of each resource that a change of a NodePool lets the pool share, or its end
// does.
func (r *run) newcomers(ctx context.Context, c *changed) (n int64, err error) {
	if c.kind != scenario.NodePoolObject || !scopes(c.is) {
		return 0, nil
	}
	was, err := sharedBy(c.was.Object)
	if err != nil {
		return 0, err
	}
	is, err := sharedBy(c.is)
	if err != nil {
		return 0, err
	}
	for _, x := range slices.Concat(was, is) {
		if slices.Contains(was, x) && slices.Contains(is, x) {
			continue
		}
		path := "/apis/" + x.Group
		if x.Group == "" {
			path = "/api"
		}
		one, err := measureList(ctx, r.reach.through(r.site.Admin()), path+"/"+x.Version+"/"+x.Resource)
		if err != nil {
			return 0, err
		}
		n += one
	}
	return n, nil
}

// relays reports whether a part relays what its pool is told to share and nothing else, and holds it all.
func (s *status) relays(told *corev1.Endpoints) (bool, string) {
	var want, have []string
	for _, name := range strings.Split(told.Annotations[contract.LeaderHubScope], ",") {
		if p := strings.Split(name, "/"); len(p) == 3 {
			resource, _, _ := strings.Cut(p[2], "=")
			want = append(want, resource+"."+p[1]+"."+p[0])
		}
	}
	for _, r := range s.Resources {
		if !r.Synced {
			return false, "it does not hold " + r.Resource
		}
		have = append(have, r.Resource)
	}
	have = append(have, s.Idle...)
	slices.Sort(want)
	slices.Sort(have)
	if len(want) > 0 && !slices.Equal(want, have) {
		return false, fmt.Sprintf("it relays %v and is to relay %v", have, want)
	}
	return true, ""
}
