package eviction

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/pool"
	"github.com/weir-edge/weir/sim/scenario"
)

// SetPolicy implements scenario.Policies: it says at the cloud what happens to the pods of the pool when it is silent.
func (c *column) SetPolicy(ctx context.Context, p scenario.Policy) error {
	silent := map[string]any{"action": pool.Keep}
	if p.Evict {
		silent = map[string]any{"action": pool.Evict, "after": p.After.String()}
	}
	o, err := json.Marshal(map[string]any{
		"apiVersion": pool.GroupVersion.String(), "kind": "Pool", "metadata": map[string]any{"name": c.Pool},
		"spec": map[string]any{"whenSilent": silent},
	})
	if err != nil {
		return err
	}
	err = c.admin.Discovery().RESTClient().Patch(types.ApplyPatchType).AbsPath("/apis", pool.GroupVersion.Group,
		pool.GroupVersion.Version, "pools", c.Pool).
		Param("fieldManager", "weir-testbed").Param("force", "true").Body(o).Do(ctx).Error()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.history.Policy[len(c.history.Policy)-1]; last.Policy != p {
		c.history.Policy = append(c.history.Policy, PolicyChange{At: time.Now(), Policy: p})
	}
	return nil
}
