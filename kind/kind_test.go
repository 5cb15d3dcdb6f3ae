package kind_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/weir-edge/weir/sim/cloud"
)

// TestOneKubernetesVersion keeps the modules that are built for local and for kind at the version of the testbed.
func TestOneKubernetesVersion(t *testing.T) {
	require := regexp.MustCompile(`(?m)^(?:require )?\s*k8s\.io/kubernetes (\S+)`)
	for _, path := range []string{
		"../sim/controlplane/go.mod", "../sim/controlplane/hollow-proxy/go.mod", "node-image/kubernetes/go.mod",
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if m := require.FindSubmatch(data); m == nil || string(m[1]) != cloud.Version {
			t.Errorf("%s requires k8s.io/kubernetes %q, sim/cloud/version.go says %s: change require and replace, then "+
				"go mod tidy", path, m, cloud.Version)
		}
	}
}
