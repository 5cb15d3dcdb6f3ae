package pool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/contract"
)

// GroupVersion of the types here.
var GroupVersion = schema.GroupVersion{Group: contract.PoolGroup, Version: "v1alpha1"}

// AddToScheme adds the types to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(GroupVersion.WithKind("Pool"), &Pool{})
	s.AddKnownTypeWithName(GroupVersion.WithKind("PoolList"), &List{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
