package coordinator

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// types are the Go types that this server decodes: Leases and the meta types of any Kubernetes API.
type types struct {
	scheme     *runtime.Scheme
	published  *runtime.Scheme // without the internal alias: names OpenAPI definitions
	codecs     serializer.CodecFactory
	parameters runtime.ParameterCodec
}

func newTypes() (*types, error) {
	t := &types{scheme: runtime.NewScheme(), published: runtime.NewScheme()}
	for _, s := range []*runtime.Scheme{t.scheme, t.published} {
		if err := coordinationv1.AddToScheme(s); err != nil {
			return nil, err
		}
		unversioned := schema.GroupVersion{Version: "v1"}
		metav1.AddToGroupVersion(s, unversioned)
		s.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{},
			&metav1.APIGroup{}, &metav1.APIResourceList{})
	}
	// There is one version of a Lease: the same Go types serve as the internal ones, and nothing is ever converted.
	internal := schema.GroupVersion{Group: coordinationv1.GroupName, Version: runtime.APIVersionInternal}
	t.scheme.AddKnownTypes(internal, &coordinationv1.Lease{}, &coordinationv1.LeaseList{})
	if err := t.scheme.SetVersionPriority(coordinationv1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	t.codecs = serializer.NewCodecFactory(t.scheme)
	t.parameters = runtime.NewParameterCodec(t.scheme)
	return t, nil
}
