package coordinators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// ErrNoImage is that a coordinator has no image.
var ErrNoImage = errors.New("the Pool names no image, and the ConfigMap " + contract.ManagerNamespace + "/" +
	contract.CoordinatorImages + " has none under " + contract.CoordinatorImagesRelease + ", as the chart writes it")

// Runs reports whether a Pool asks weir-manager to run its coordinator.
func Runs(own *poolv1.Pool) bool {
	return own.Spec.Coordinator != nil && len(own.Spec.Coordinator.Servers) == 0
}

// Images is the ConfigMap that has the image of the release, without what it says.
func Images() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: contract.ManagerNamespace, Name: contract.CoordinatorImages,
	}}
}

// imageOf is what replicas are to run, and by which Secrets it is pulled; "": the Pool names none, and no release is
// known.
func imageOf(ctx context.Context, c *poolv1.Coordinator, images manifests.Getter) (image string,
	secrets []corev1.LocalObjectReference, err error) {
	var m corev1.ConfigMap
	if err := images.Get(ctx, client.ObjectKeyFromObject(Images()), &m); err != nil && !apierrors.IsNotFound(err) {
		return c.Image, nil, fmt.Errorf("which image of weir-coordinator the release has: %w", err)
	}
	image = cmp.Or(c.Image, strings.TrimSpace(m.Data[contract.CoordinatorImagesRelease]))
	return image, manifests.PullSecrets(&m), nil
}
