package manifests

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Wanted are the objects of Policies. The scheme knows their types.
func Wanted(scheme *runtime.Scheme) (all []client.Object, err error) {
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, doc := range strings.Split(Policies(), "\n---\n") {
		o, _, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err) // a test decodes them too
		}
		all = append(all, o.(client.Object))
	}
	return all, nil
}

// Awaited are the definitions of kinds that may come later, or are somebody else's. They wake the parts that
// wait at a Gate.
func Awaited() (all []client.Object) {
	for _, name := range []string{"nodepools.apps.openyurt.io", "pools.weir.dev"} {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		o.SetGroupVersionKind(schema.GroupVersionKind{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		})
		all = append(all, o)
	}
	return all
}

// Getter gets an object, as a client.Reader does.
type Getter interface {
	Get(ctx context.Context, name client.ObjectKey, into client.Object, opts ...client.GetOption) error
}

// Watcher gets objects that are watched.
type Watcher interface {
	Getter
	// Follow calls changed, which does not block, when an object is another than before.
	Follow(o client.Object, changed func(is client.Object)) error
}

// Missing compares the policies in a cluster with those of this version, and tells what differs. The scheme knows their
// types.
func Missing(ctx context.Context, reader Getter, scheme *runtime.Scheme) []error {
	all, err := Wanted(scheme)
	if err != nil {
		return []error{err}
	}
	var missing []error
	for _, want := range all {
		kind := want.GetObjectKind().GroupVersionKind()
		got := want.DeepCopyObject().(client.Object)
		switch err := reader.Get(ctx, client.ObjectKeyFromObject(want), got); {
		case meta.IsNoMatchError(err):
			missing = append(missing, fmt.Errorf("%s %s: this Kubernetes does not serve it, 1.36 is the first that does",
				kind.Kind, want.GetName()))
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

// same compares specs; what a manifest does not say may be as the API's defaults are. What would let a policy see less
// is no default: another condition, resources or names that are left out.
func same(want, got client.Object) bool {
	switch w := want.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		g := got.(*admissionv1.ValidatingAdmissionPolicy)
		return equality.Semantic.DeepDerivative(w.Spec, g.Spec) &&
			len(w.Spec.MatchConditions) == len(g.Spec.MatchConditions) &&
			sameMatch(w.Spec.MatchConstraints, g.Spec.MatchConstraints)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		g := got.(*admissionv1.ValidatingAdmissionPolicyBinding)
		return equality.Semantic.DeepDerivative(w.Spec, g.Spec) && sameMatch(w.Spec.MatchResources, g.Spec.MatchResources)
	case *admissionv1.MutatingAdmissionPolicy:
		g := got.(*admissionv1.MutatingAdmissionPolicy)
		return equality.Semantic.DeepDerivative(w.Spec, g.Spec) && len(w.Spec.MatchConditions) == len(
			g.Spec.MatchConditions) &&
			sameMatch(w.Spec.MatchConstraints, g.Spec.MatchConstraints)
	case *admissionv1.MutatingAdmissionPolicyBinding:
		g := got.(*admissionv1.MutatingAdmissionPolicyBinding)
		return equality.Semantic.DeepDerivative(w.Spec, g.Spec) && sameMatch(w.Spec.MatchResources, g.Spec.MatchResources)
	}
	return true
}

// sameMatch compares what is matched. nil is everything that the policy names.
func sameMatch(want, got *admissionv1.MatchResources) bool {
	if want == nil {
		want = &admissionv1.MatchResources{}
	}
	if got == nil {
		got = &admissionv1.MatchResources{}
	}
	selects := func(s *metav1.LabelSelector) *metav1.LabelSelector {
		if s == nil {
			return &metav1.LabelSelector{}
		}
		return s
	}
	return equality.Semantic.DeepEqual(selects(want.NamespaceSelector), selects(got.NamespaceSelector)) &&
		equality.Semantic.DeepEqual(selects(want.ObjectSelector), selects(got.ObjectSelector)) &&
		len(got.ExcludeResourceRules) == len(want.ExcludeResourceRules)
}
