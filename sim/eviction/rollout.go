package eviction

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// settles is how long the last changes of a rollout may take to reach all that watch.
const settles = 15 * time.Second

// rollOut replaces all pods of the pool, as kubectl rollout restart does, as often as the scenario says, and measures
// what that costs on the uplink.
func (c *column) rollOut(ctx context.Context) error {
	c.updates.From = time.Now()
	defer func() {
		c.updates.To = time.Now()
		c.said += c.saved(ctx)
		c.weigh()
	}()
	for n := range c.about.Rollouts {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]string{
				"kubectl.kubernetes.io/restartedAt": time.Now().Format(time.RFC3339Nano),
			}},
		}}})
		if err != nil {
			return err
		}
		d, err := c.admin.AppsV1().Deployments(corev1.NamespaceDefault).Patch(ctx, appName, types.StrategicMergePatchType,
			patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("restart the Deployment: %w", err)
		}
		if err := c.Until(ctx, fillPatience, func() (bool, string) {
			now, err := c.admin.AppsV1().Deployments(corev1.NamespaceDefault).Get(ctx, appName, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			s, all := now.Status, *now.Spec.Replicas
			return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == all && s.AvailableReplicas == all &&
					s.Replicas == all,
				fmt.Sprintf("rolling update %d of %d: %d of %d pods are new, %d available", n+1, c.about.Rollouts,
					s.UpdatedReplicas, all, s.AvailableReplicas)
		}); err != nil {
			return err
		}
	}
	if c.about.Rollouts == 0 {
		return nil
	}
	return c.idle(ctx, time.Now().Add(settles), "the last changes may take")
}
