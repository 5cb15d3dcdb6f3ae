package manifests

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// PullSecrets are the Secrets by which the images of a list are pulled, as its ConfigMap names them.
func PullSecrets(list *corev1.ConfigMap) (all []corev1.LocalObjectReference) {
	for _, name := range strings.Fields(list.Data[contract.PullSecretsKey]) {
		all = append(all, corev1.LocalObjectReference{Name: name})
	}
	return all
}
