package manager

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/manager/manifests"
)

// shelf is a cluster that has the objects on it.
type shelf struct {
	client.Reader
	objects map[string]client.Object // by type and name
}

func keyOn(o client.Object, name string) string { return reflect.TypeOf(o).String() + " " + name }

func (s *shelf) Get(_ context.Context, k client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	have, ok := s.objects[keyOn(o, k.Name)]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, k.Name)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(have).Elem())
	return nil
}

// TestPolicies: weir-manager is ready where all of its policies are as it needs them. Where one is missing, is another
// one, or only warns, readiness names it.
func TestPolicies(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	var all []client.Object
	for _, doc := range strings.Split(manifests.Policies(), "\n---\n") {
		o, _, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.(client.Object))
	}
	// ready is what readiness says of a cluster that has all objects, of which one was changed; nil: it is not there.
	ready := func(at int, changed client.Object) string {
		s := &shelf{objects: map[string]client.Object{}}
		for i, o := range all {
			if i != at {
				s.objects[keyOn(o, o.GetName())] = o
			} else if changed != nil {
				s.objects[keyOn(o, o.GetName())] = changed
			}
		}
		p := &policies{reader: s, scheme: scheme, log: slog.New(slog.DiscardHandler)}
		if err := p.check(nil); err == nil {
			t.Error("ready before anybody looked")
		}
		p.note(p.look(t.Context()))
		if err := p.check(nil); err != nil {
			return err.Error()
		}
		return ""
	}
	if got := ready(-1, nil); got != "" {
		t.Errorf("with all policies: %s", got)
	}
	policies := map[string]bool{}
	anything := &metav1.LabelSelector{MatchLabels: map[string]string{"no": "body"}}
	other := func(i int, o client.Object, do func(client.Object)) {
		t.Helper()
		changed := o.DeepCopyObject().(client.Object)
		do(changed)
		if got := ready(i, changed); !strings.Contains(got, o.GetName()+" is not that of this version") {
			t.Errorf("with another %T %s: %q", o, o.GetName(), got)
		}
	}
	for i, o := range all {
		if got := ready(i, nil); !strings.Contains(got, o.GetName()+" does not exist") {
			t.Errorf("without %T %s: %q", o, o.GetName(), got)
		}
		switch o.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			of := func(do func(*admissionv1.ValidatingAdmissionPolicySpec)) {
				other(i, o, func(c client.Object) { do(&c.(*admissionv1.ValidatingAdmissionPolicy).Spec) })
			}
			of(func(s *admissionv1.ValidatingAdmissionPolicySpec) { s.Validations[0].Expression = "true" })
			of(func(s *admissionv1.ValidatingAdmissionPolicySpec) { // it is there, and sees nothing
				s.MatchConditions = append(s.MatchConditions, admissionv1.MatchCondition{Name: "none", Expression: "false"})
			})
			of(func(s *admissionv1.ValidatingAdmissionPolicySpec) { s.MatchConstraints.ObjectSelector = anything })
			of(func(s *admissionv1.ValidatingAdmissionPolicySpec) { s.MatchConstraints.NamespaceSelector = anything })
			of(func(s *admissionv1.ValidatingAdmissionPolicySpec) {
				s.MatchConstraints.ExcludeResourceRules = s.MatchConstraints.ResourceRules
			})
			policies[o.GetName()] = true
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			of := func(do func(*admissionv1.ValidatingAdmissionPolicyBindingSpec)) {
				other(i, o, func(c client.Object) { do(&c.(*admissionv1.ValidatingAdmissionPolicyBinding).Spec) })
			}
			of(func(s *admissionv1.ValidatingAdmissionPolicyBindingSpec) {
				s.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
			})
			of(func(s *admissionv1.ValidatingAdmissionPolicyBindingSpec) {
				s.MatchResources = &admissionv1.MatchResources{NamespaceSelector: anything}
			})
		}
	}
	for _, name := range []string{
		"weir-membership", "weir-forwarders", "weir-manager", "weir-keep-pods", "weir-manager-installer-images",
		"weir-manager-certificates",
	} {
		if !policies[name] {
			t.Errorf("no policy %s is asked for", name)
		}
	}
}
