package nodepool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the types here.
var GroupVersion = schema.GroupVersion{Group: "apps.openyurt.io", Version: "v1beta2"}

// AddToScheme adds the types to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(GroupVersion.WithKind("NodePool"), &NodePool{})
	s.AddKnownTypeWithName(GroupVersion.WithKind("NodePoolList"), &List{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
