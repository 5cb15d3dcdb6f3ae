package check

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestKubernetesVersion: what is older than the chart takes is refused, and what does not say its version is not
// judged.
func TestKubernetesVersion(t *testing.T) {
	for minor, want := range map[string]string{
		fmt.Sprint(least): "", fmt.Sprint(least + 1): "", fmt.Sprintf("%d+", least): "",
		fmt.Sprint(least - 1): "it does not serve MutatingAdmissionPolicies",
		"":                    "it says that it is",
	} {
		disc := &fake.FakeDiscovery{
			Fake: &clienttesting.Fake{}, FakedServerVersion: &version.Info{
				Major: "1", Minor: minor, GitVersion: "v1." + minor + ".0",
			},
		}
		err := checkVersion(t.Context(), &looker{disc: disc})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("minor %q: %v, want %q", minor, err, want)
		}
		if s := (skip{}); errors.As(err, &s) != (minor == "") {
			t.Errorf("minor %q: %v is skipped, or is not", minor, err)
		}
	}
}
