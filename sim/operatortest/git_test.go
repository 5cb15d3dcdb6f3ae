package operatortest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/testkit"
)

// The agent of a folder in Git, which labels Nodes, too.
const (
	applies = "kubectl apply --server-side --field-manager=gitops -f sites/ -f nodes.yaml"
	differs = "kubectl diff --server-side --field-manager=gitops -f sites/ -f nodes.yaml"
)

// owned is an object as far as it says who wrote what.
type owned struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name          string `json:"name"`
		Generation    int64  `json:"generation"`
		ManagedFields []struct {
			Manager     string `json:"manager"`
			Subresource string `json:"subresource"`
		} `json:"managedFields"`
	} `json:"metadata"`
}

// owners are the objects of the folder with their generations. Nobody but the agent may have written more than a
// status.
func (y *typist) owners() (generations string) {
	y.t.Helper()
	var all struct {
		Items []owned `json:"items"`
	}
	must(y.t, json.Unmarshal([]byte(y.shell("kubectl get nodepools,pools.weir.dev --show-managed-fields -o json", "")),
		&all))
	for _, o := range all.Items {
		generations += fmt.Sprintf("%s/%s %d\n", o.Kind, o.Metadata.Name, o.Metadata.Generation)
		for _, f := range o.Metadata.ManagedFields {
			if f.Manager != "gitops" && f.Subresource != "status" {
				y.t.Errorf("%s wrote into %s %s", f.Manager, o.Kind, o.Metadata.Name)
			}
		}
	}
	return generations
}

// says waits until a field of an object has these words.
func (y *typist) says(what, field, want string) {
	y.t.Helper()
	testkit.Until(y.t, 5*time.Minute, what+" to have "+want, func() bool {
		return strings.Join(strings.Fields(y.shell("kubectl get "+what+" -o jsonpath='"+field+"'", "")), " ") == want
	})
}

// TestGit: the folder of docs/examples/sites, as an agent of Git applies it again and again: without a conflict and
// without a difference, whatever weir-manager has written since, and over an upgrade of the release. When its files go,
// nothing of the pools is left.
func TestGit(t *testing.T) {
	y := newTypist(t)
	y.released("registry.example/weir-coordinator:v0.1.0")
	y.shell("kubectl -n kube-system create serviceaccount default", "")
	folder := filepath.Join(documents, "examples", "sites")
	must(t, os.CopyFS(filepath.Join(y.dir, "sites"), os.DirFS(folder)))
	var example, nodes strings.Builder
	for i, site := range []string{"harbour", "quarry", "mill"} {
		text, err := os.ReadFile(filepath.Join(folder, site+".yaml"))
		must(t, err)
		if i > 0 {
			example.WriteString("---\n")
		}
		example.Write(text)
		for n := range 4 {
			name := fmt.Sprintf("%s-%d", site, n+1)
			y.machine(name, fmt.Sprintf("10.%d.0.%d", i+1, n+1))
			fmt.Fprintf(&nodes, "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: %s\n"+
				"  labels: {apps.openyurt.io/nodepool: %s}\n", name, site)
		}
	}
	if box := read(t, filepath.Join(documents, "sites.md"), "Three sites of four nodes behind NAT").boxes[0]; box !=
		example.String() {
		t.Errorf("%s has\n%s\nand sites.md has\n%s", folder, example.String(), box)
	}
	must(t, os.WriteFile(filepath.Join(y.dir, "nodes.yaml"), []byte(nodes.String()), 0o600))
	y.manage()
	y.shell(applies, "")
	y.shell(applies, "")
	still := func() {
		t.Helper()
		before := y.owners()
		y.shell(differs, "")
		y.shell(applies, "")
		if after := y.owners(); after != before || strings.Count(after, "\n") != 6 {
			t.Errorf("generations were\n%s\nand are\n%s", before, after)
		}
	}
	y.counts("harbour=4 mill=4 quarry=4")
	y.says("pools.weir.dev quarry", "{.status.replicas[*].ready}", "false false false")
	y.says("node quarry-1", `{.metadata.labels.topology\.kubernetes\.io/zone}`, "quarry")
	const pod, image = "pods -n kube-system -l apps.openyurt.io/nodepool=harbour", "{.items[*].spec.containers[*].image}"
	y.says(pod, image, "registry.example/weir-coordinator:v0.1.0")
	still()
	y.released("registry.example/weir-coordinator:v0.2.0")
	y.says(pod, image, "registry.example/weir-coordinator:v0.2.0")
	still()

	// What an agent would see if somebody else did write.
	y.shell(`kubectl patch pools.weir.dev mill --type=merge -p '{"spec":{"whenSilent":{"after":"48h"}}}'`, "")
	for _, line := range []string{differs, applies} {
		if out, err := y.tries(line, ""); err == nil || !strings.Contains(out, "conflict") {
			t.Errorf("somebody else wrote: %s: %v, %s", line, err, out)
		}
	}

	y.shell("kubectl delete -f sites/", "")
	const names = "{.items[*].metadata.name}"
	y.says("nodepools,pools.weir.dev", names, "")
	y.says("clusterroles -l app.kubernetes.io/managed-by=weir-manager", names, "")
	y.says("nodes", `{.items[*].metadata.labels.topology\.kubernetes\.io/zone}`, "")
	// These are left to the garbage collection of Kubernetes, by their owners.
	y.says("services -n kube-system -l app.kubernetes.io/managed-by=weir-manager",
		"{.items[*].metadata.ownerReferences[*].kind}", "NodePool NodePool NodePool")
}
