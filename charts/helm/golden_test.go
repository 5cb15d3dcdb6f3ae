package helm

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden: what each value file renders is what was looked at and committed. The operator is there, so that nothing
// is left out.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	c := load(t)
	short(c)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".values.yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := render(t, c, data, "monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/PrometheusRule")
			path := strings.TrimSuffix(file, ".values.yaml") + ".golden.yaml"
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(path); err != nil || string(want) != got {
				t.Errorf("%s is not what the chart renders (%v). Look at: go test . -update; git diff", path, err)
			}
		})
	}
}

// TestWithoutOperator: where the Prometheus operator is not there, nothing of it is rendered.
func TestWithoutOperator(t *testing.T) {
	if got := render(t, load(t), nil); strings.Contains(got, "monitoring.coreos.com") ||
		strings.Contains(got, "weir-dashboard") || !strings.Contains(got, "kind: Deployment") {
		t.Error("monitoring is rendered where nobody reads it")
	}
}

// TestRegistry: one value has all images come from another registry, with its port and folders, by tag or digest. None
// is named in another way.
func TestRegistry(t *testing.T) {
	const at = "registry.example:5000/mirrors/weir"
	digest := "sha256:" + strings.Repeat("a", 64)
	for values, want := range map[string]string{
		"": ":devel", "image: {tag: v1}": ":v1", "image: {digest: " + digest + "}": "@" + digest,
	} {
		texts, err := all(t, load(t), []byte("registry: "+at+"\nmanager: {"+values+"}\ninstaller: {"+values+"}\n"+
			"coordinator: {"+values+"}\ngate: {enabled: true, address: \"gate:1\", "+values+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, text := range texts {
			for _, image := range regexp.MustCompile(`\S*/weir-(manager|installer|coordinator|gate)[:@][^"\s]*`).
				FindAllString(text, -1) {
				found[strings.TrimPrefix(image, `"`)]++
			}
		}
		if !maps.Equal(found, map[string]int{ // the manager in its Deployment and in two hooks
			at + "/weir-manager" + want: 3, at + "/weir-installer" + want: 1, at + "/weir-coordinator" + want: 1,
			at + "/weir-gate" + want: 1,
		}) {
			t.Errorf("%s: want images of %s, %s, found %v", values, at, want, found)
		}
	}
	for _, bad := range []string{
		"https://registry.example", "registry.example/", "/weir", "registry.example:x", "registry.example//weir",
		"registry.example/Weir", "registry.example/weir:v1", "registry.example/weir@" + digest, "a b",
	} {
		if _, err := all(t, load(t), []byte("registry: \""+bad+"\"\n")); err == nil ||
			!strings.Contains(err.Error(), "/registry") {
			t.Errorf("registry %s: %v", bad, err)
		}
	}
}

// TestPullSecrets: all that pulls an image of the chart does so by the same Secrets: manager, gate, hooks. So do Jobs
// and coordinators, by the lists that the manager reads.
func TestPullSecrets(t *testing.T) {
	for values, want := range map[string][2]string{
		"": {"imagePullSecrets: []\n", ""},
		"imagePullSecrets: [{name: a}, {name: b}]": {
			`imagePullSecrets: [{"name":"a"},{"name":"b"}]` + "\n", `pullSecrets: "a\nb\n"` + "\n",
		},
	} {
		texts, err := all(t, load(t), []byte("gate: {enabled: true, address: \"gate:1\"}\n"+values))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(slices.Collect(maps.Values(texts)), "")
		lists := strings.Count(text, "\n  pullSecrets: ")
		if want[1] != "" && strings.Count(text, "\n  "+want[1]) != 2 || want[1] == "" && lists > 0 ||
			strings.Count(text, want[0]) != 4 {
			t.Errorf("%s: %d Pods with %s, %d lists, want 4, and 2 with %s", values, strings.Count(text, want[0]), want[0],
				lists, want[1])
		}
	}
}

// TestLint: helm finds nothing to say.
func TestLint(t *testing.T) {
	for _, m := range lint.RunAll("../weir", map[string]any{}, "weir-system").Messages {
		if m.Severity > 1 || m.Err != nil && !strings.Contains(m.Err.Error(), "icon") {
			t.Error(m)
		}
	}
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load("../weir")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// short stands for the rules and the dashboard, which have tests of their own.
func short(c *chart.Chart) {
	for _, f := range c.Files {
		if f.Name == "monitoring/rules.yaml" {
			f.Data = []byte("groups:\n- name: all of them\n")
		}
		if f.Name == "monitoring/dashboard.json" {
			f.Data = []byte("{}\n")
		}
	}
}

// render is what a release would be, without what weir-manager prints as it is: that is compared with weir-manager
// itself.
func render(t *testing.T, c *chart.Chart, values []byte, apis ...string) string {
	t.Helper()
	texts, err := all(t, c, values, apis...)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, name := range []string{"manager", "disruption", "network", "monitoring", "uninstall"} {
		out.WriteString(strings.TrimSpace(texts["weir/templates/"+name+".yaml"]) + "\n")
	}
	if gate := strings.TrimSpace(texts["weir/templates/gate.yaml"]); gate != "" {
		out.WriteString(gate + "\n")
	}
	switch crds := texts["weir/templates/crds.yaml"]; {
	case strings.Contains(crds, "helm.sh/resource-policy: keep"):
		out.WriteString("# definitions, kept\n")
	case strings.Contains(crds, "kind: CustomResourceDefinition"):
		out.WriteString("# definitions, not kept\n")
	default:
		out.WriteString("# no definitions\n")
	}
	out.WriteString("# notes:\n" + texts["weir/templates/NOTES.txt"])
	return out.String()
}

// all are the texts of all templates, by their paths.
func all(t *testing.T, c *chart.Chart, values []byte, apis ...string) (map[string]string, error) {
	t.Helper()
	var given map[string]any
	if err := yaml.Unmarshal(values, &given); err != nil {
		t.Fatal(err)
	}
	caps := common.DefaultCapabilities.Copy()
	caps.KubeVersion = common.KubeVersion{Version: "v1.37.1", Major: "1", Minor: "37"}
	caps.APIVersions = append(caps.APIVersions, apis...)
	options := common.ReleaseOptions{Name: "weir", Namespace: "weir-system", Revision: 1, IsInstall: true}
	release, err := util.ToRenderValuesWithSchemaValidation(c, given, options, caps, false)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, release)
}
