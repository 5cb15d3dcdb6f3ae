package manifests

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/impl/pool"
)

// TestSchemaKnowsEveryField: kube-apiserver drops what a schema does not know. A field that was added, and `make
// generate` not run, would be lost.
// TestPauses: what fails for long is tried again soon after its cause is gone.
func TestPauses(t *testing.T) {
	l := Options(nil, 1).RateLimiter
	var r reconcile.Request
	if first := l.When(r); first > 10*time.Millisecond {
		t.Errorf("the first pause is %v", first)
	}
	for range 30 {
		l.When(r)
	}
	if pause := l.When(r); pause != 5*time.Second {
		t.Errorf("the pause is %v, want 5s", pause)
	}
}

func TestSchemaKnowsEveryField(t *testing.T) {
	type schema struct {
		Properties map[string]schema `json:"properties"`
		Items      *schema           `json:"items"`
	}
	type definition struct {
		Spec struct {
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	for _, c := range []struct {
		text, version string
		parts         map[string]reflect.Type
		least         int
	}{
		{
			NodePools(), nodepool.GroupVersion.Version, map[string]reflect.Type{
				"spec": reflect.TypeFor[nodepool.Spec](), "status": reflect.TypeFor[nodepool.Status](),
			}, 18,
		},
		{
			Pools(), pool.GroupVersion.Version, map[string]reflect.Type{
				"spec": reflect.TypeFor[pool.Spec](), "status": reflect.TypeFor[pool.Status](),
			}, 12,
		},
	} {
		var crd definition
		if err := yaml.Unmarshal([]byte(c.text), &crd); err != nil || len(crd.Spec.Versions) != 1 ||
			crd.Spec.Versions[0].Name != c.version {
			t.Fatalf("%+v, %v", crd, err)
		}
		root, fields := crd.Spec.Versions[0].Schema.OpenAPIV3Schema, 0
		for part, of := range c.parts {
			known := root.Properties[part].Properties
			for i := range of.NumField() {
				name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
				if _, ok := known[name]; !ok {
					t.Errorf("the schema does not know %s.%s: run make generate", part, name)
				}
				fields++
			}
			if len(known) != of.NumField() {
				t.Errorf("the schema has %d fields of %s, the type has %d: run make generate", len(known), part, of.NumField())
			}
		}
		if fields < c.least {
			t.Errorf("%d fields", fields)
		}
	}
}
