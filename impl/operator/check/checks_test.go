package check

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
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

// TestGate: weir-gate is looked at where there is one, or pools are told of one, and the two have to fit.
func TestGate(t *testing.T) {
	gate := func(want, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Replicas: &want}, Status: appsv1.DeploymentStatus{AvailableReplicas: available},
		}
	}
	told := func(ways string) map[string]corev1.Service {
		s := corev1.Service{}
		s.Annotations = map[string]string{contract.LeaderHubGate: "https://gate:1", contract.LeaderHubGateWays: ways}
		return map[string]corev1.Service{"harbour": s, "mill": s}
	}
	silent := map[string]corev1.Service{"harbour": {}}
	failed := map[string]error{commands.Gate: errors.New("forbidden")}
	for name, c := range map[string]struct {
		view         commands.View
		result, says string
	}{
		"none":            {commands.View{LeaderHubs: silent}, "", ""},
		"well":            {commands.View{Gate: gate(2, 2), LeaderHubs: told("")}, OK, ""},
		"well, a way in":  {commands.View{Gate: gate(2, 2), LeaderHubs: told("2")}, OK, ""},
		"before any pool": {commands.View{Gate: gate(1, 1)}, OK, ""},
		"gone":            {commands.View{LeaderHubs: told("")}, Warning, "https://gate:1"},
		"not told":        {commands.View{Gate: gate(2, 2), LeaderHubs: silent}, Error, "no pool is told of it"},
		"down":            {commands.View{Gate: gate(2, 0), LeaderHubs: told("2")}, Error, "none of its 2 replicas"},
		"half":            {commands.View{Gate: gate(2, 1), LeaderHubs: told("2")}, Warning, "1 of its 2 replicas"},
		"scaled":          {commands.View{Gate: gate(3, 3), LeaderHubs: told("2")}, Warning, "3 replicas, and hubs keep"},
		"may not be read": {commands.View{LeaderHubs: told(""), Failed: failed}, Skipped, "forbidden"},
	} {
		err := checkGate(t.Context(), &looker{view: &c.view})
		if errors.Is(err, errNone) != (c.result == "") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r := result("gate", "", err); c.result != "" && (r.Result != c.result || !strings.Contains(r.Cause, c.says)) {
			t.Errorf("%s: %s %s, want %s %s", name, r.Result, r.Cause, c.result, c.says)
		}
	}
}
