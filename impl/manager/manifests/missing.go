package manifests

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Missing compares the policies in a cluster with those of this version, and tells what differs. The scheme knows their types.
func Missing(ctx context.Context, reader client.Reader, scheme *runtime.Scheme) []error {
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var missing []error
	for _, doc := range strings.Split(Policies(), "\n---\n") {
		o, kind, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			return []error{fmt.Errorf("read manifests: %w", err)} // a test decodes them too
		}
		want := o.(client.Object)
		got := want.DeepCopyObject().(client.Object)
		switch err := reader.Get(ctx, client.ObjectKeyFromObject(want), got); {
		case meta.IsNoMatchError(err):
			missing = append(missing, fmt.Errorf("%s %s: this Kubernetes does not serve it, 1.36 is the first that does", kind.Kind, want.GetName()))
		case apierrors.IsNotFound(err):
			missing = append(missing, fmt.Errorf("%s %s does not exist", kind.Kind, want.GetName()))
		case err != nil:
			missing = append(missing, fmt.Errorf("%s %s: %w", kind.Kind, want.GetName(), err))
		case !same(want, got):
			missing = append(missing, fmt.Errorf("%s %s is not that of this version", kind.Kind, want.GetName()))
		}
	}
	return missing
}

// same compares specs; what a manifest does not say may be as the API's defaults are.
func same(want, got client.Object) bool {
	switch w := want.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		return equality.Semantic.DeepDerivative(w.Spec, got.(*admissionv1.ValidatingAdmissionPolicy).Spec)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return equality.Semantic.DeepDerivative(w.Spec, got.(*admissionv1.ValidatingAdmissionPolicyBinding).Spec)
	case *admissionv1.MutatingAdmissionPolicy:
		return equality.Semantic.DeepDerivative(w.Spec, got.(*admissionv1.MutatingAdmissionPolicy).Spec)
	case *admissionv1.MutatingAdmissionPolicyBinding:
		return equality.Semantic.DeepDerivative(w.Spec, got.(*admissionv1.MutatingAdmissionPolicyBinding).Spec)
	}
	return true
}
