package manager

import (
	"os"
	"testing"

	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/sim/audit"
)

// unasked are grants without a request of their own: kube-apiserver looks whether weir-manager has them when it asks for something else.
var unasked = map[string]string{}

// testGrants: in all that was shown here weir-manager was refused nothing, and each of its grants was needed.
func testGrants(t *testing.T, w *world) {
	f, err := os.Open(w.cloud.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var use audit.Use
	if err := use.Read(f); err != nil {
		t.Fatal(err)
	}
	grants, err := audit.Grants(manifests.RBAC())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range use.Unused(grants) {
		if unasked[g.String()] == "" {
			t.Errorf("never used: %s", g)
		}
	}
	for _, r := range use.Refused {
		t.Errorf("refused: %s", r)
	}
	t.Logf("%d requests, %d grants", use.Events, len(grants))
}
