package certificates

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/trust"
)

// AskRotation asks weir-manager to replace the authority of a pool. It does not wait for that.
func AskRotation(ctx context.Context, c kubernetes.Interface, pool string, o trust.Order) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, _, err := trust.ParseOrder(string(text)); err != nil {
		return err
	}
	told, err := authorityOf(ctx, c, pool)
	if err != nil {
		return err
	}
	p, err := progressOf(told)
	switch _, asked := told.Annotations[contract.RotateAnnotation]; {
	case err != nil:
		return err
	case asked:
		return fmt.Errorf("pool %s: somebody has asked for a rotation, and weir-manager has not answered yet: is it there, "+
			"with --certificates=sign?", pool)
	case !o.StolenKey && (p.Step == trust.Prepared || p.Step == trust.Replaced): // after a theft nobody waits
		return fmt.Errorf("pool %s: a rotation is under way (%s): wait until %s", pool, p.Step, p.Due.Format(time.RFC3339))
	}
	metav1.SetMetaDataAnnotation(&told.ObjectMeta, contract.RotateAnnotation, string(text))
	if _, err := c.CoreV1().ConfigMaps(contract.KeyNamespace).Update(ctx, told, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("pool %s: ask for a rotation: %w", pool, err)
	}
	return nil
}

// Rotation is how far the rotation of a pool's authority is.
func Rotation(ctx context.Context, c kubernetes.Interface, pool string) (trust.Progress, error) {
	told, err := authorityOf(ctx, c, pool)
	if err != nil {
		return trust.Progress{}, err
	}
	return progressOf(told)
}

func authorityOf(ctx context.Context, c kubernetes.Interface, pool string) (*corev1.ConfigMap, error) {
	told, err := c.CoreV1().ConfigMaps(contract.KeyNamespace).Get(ctx, contract.AuthorityPrefix+pool, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil,
			fmt.Errorf("pool %s has no authority: ConfigMap %s/%s%[1]s does not exist; weir-manager makes it with the first "+
				"certificate of the pool",
				pool, contract.KeyNamespace, contract.AuthorityPrefix)
	}
	if err != nil {
		return nil, fmt.Errorf("pool %s: read its authority: %w", pool, err)
	}
	return told, nil
}

func progressOf(told *corev1.ConfigMap) (p trust.Progress, err error) {
	if text := told.Annotations[contract.RotationAnnotation]; text != "" {
		if err = json.Unmarshal([]byte(text), &p); err != nil {
			err = fmt.Errorf("annotation %s of ConfigMap %s/%s: %w", contract.RotationAnnotation, told.Namespace, told.Name, err)
		}
	}
	return p, err
}
