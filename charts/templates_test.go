package charts

import (
	"os"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/manager/manifests"
)

// TestTemplates: the chart has what weir-manager prints today.
func TestTemplates(t *testing.T) {
	want, err := Templates(manifests.All(), manifests.GateAccess(), manifests.GatePods())
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range want {
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s is not what weir-manager prints: run make generate (%v)", path, err)
		}
	}
}

// TestEveryManifestIsThere: no document of the manifests is lost on the way.
func TestEveryManifestIsThere(t *testing.T) {
	templates, err := Templates(manifests.All(), manifests.GateAccess(), manifests.GatePods())
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, text := range templates {
		all += text
	}
	if got, want := strings.Count(all, "\nkind: "), strings.Count("\n"+manifests.All()+"\n"+manifests.GateAccess()+"\n"+
		manifests.GatePods(), "\nkind: "); got != want || want < 30 {
		t.Errorf("%d documents, want %d", got, want)
	}
}

// TestBadManifests: what cannot be a template is an error.
func TestBadManifests(t *testing.T) {
	for bad, want := range map[string]string{
		"": "nothing for weir/templates/",
		"kind: Deployment\nmetadata: {name: x}\nspec: {}": "Deployment x: spec.selector is not there",
		"kind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {}": "CustomResourceDefinition x: metadata.annotations " +
			"are not where",
		"kind: [":                    "read manifests",
		"kind: Deployment\nspec: []": "read manifests",
	} {
		_, err := Templates(bad, manifests.GateAccess(), manifests.GatePods())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
	for _, grants := range [][2]string{{"\n", manifests.GatePods()}, {manifests.GateAccess(), "\n"}} {
		if _, err := Templates(manifests.All(), grants[0], grants[1]); err == nil ||
			!strings.Contains(err.Error(), "gate-access.yaml") {
			t.Errorf("no grants of weir-gate: %v", err)
		}
	}
}

// TestEscape: CEL may have what a template would take for its own.
func TestEscape(t *testing.T) {
	if got := escape("a {{ b }} c"); got != `a {{ "{{" }} b }} c` {
		t.Error(got)
	}
}
