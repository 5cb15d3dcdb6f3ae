package eviction

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/scenario"
)

// setPolicy says at the cloud what happens to the pods of the pool when it is silent.
func (c *column) setPolicy(ctx context.Context, p scenario.Policy) error {
	word := "keep"
	if p.Evict {
		word = "evict:" + p.After.String()
	}
	maps := c.admin.CoreV1().ConfigMaps(contract.ManagerNamespace)
	all := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: contract.PoolPolicies}, Data: map[string]string{c.Pool: word}}
	_, err := maps.Update(ctx, all, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, all, metav1.CreateOptions{})
	}
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
