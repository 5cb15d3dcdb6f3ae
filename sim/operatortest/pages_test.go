package operatortest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
)

// plugin is the name by which kubectl calls this program, which is kubectl-weir then: see TestMain.
const plugin = "kubectl-weir"

const documents = "../../docs"

// page is a document as a person reads it who types what it has.
type page struct {
	commands []string // indented
	boxes    []string // between fences
}

// read reads a section of a document; "": all of it.
func read(t testing.TB, path, heading string) (p page) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	inside, fenced := heading == "", false
	for line := range strings.Lines(string(text)) {
		start := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(start, "```"):
			if fenced = !fenced; fenced && inside {
				p.boxes = append(p.boxes, "")
			}
		case !fenced && strings.HasPrefix(line, "#") && heading != "":
			inside = strings.TrimLeft(start, "# ") == heading
		case !inside:
		case fenced:
			p.boxes[len(p.boxes)-1] += line
		case strings.HasPrefix(line, "    ") && start != "":
			p.commands = append(p.commands, strings.TrimSuffix(line, "\n"))
		}
	}
	if heading != "" && len(p.commands) == 0 {
		t.Fatalf("%s has no command below %q", path, heading)
	}
	return p
}

// typist is a desk with a shell, in a folder of its own.
type typist struct {
	*desk
	dir, bin string
}

func newTypist(t *testing.T) *typist {
	t.Helper()
	c, binaries := cloudtest.Start(t, cloud.Kubectl)
	kubeconfig, err := c.Kubeconfig("admin", "system:masters")
	must(t, err)
	y := &typist{&desk{t, c, kubeconfig}, t.TempDir(), t.TempDir()}
	self, err := os.Executable()
	must(t, err)
	for name, path := range map[string]string{"kubectl": binaries[cloud.Kubectl], plugin: self} {
		must(t, os.Symlink(path, filepath.Join(y.bin, name)))
	}
	y.apply(manifests.NodePools(), manifests.Pools(), manifests.Policies(), manifests.RBAC(), manifests.Hubs())
	return y
}

// shell types a line. A failure ends the test.
func (y *typist) shell(line, stdin string) string {
	y.t.Helper()
	out, err := y.tries(line, stdin)
	if err != nil {
		y.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

func (y *typist) tries(line, stdin string) (string, error) {
	run := exec.CommandContext(y.t.Context(), "/bin/sh", "-ec", line)
	run.Dir, run.Stdin = y.dir, strings.NewReader(stdin)
	run.Env = []string{"PATH=" + y.bin + ":/usr/bin:/bin", "HOME=" + y.dir, "KUBECONFIG=" + y.kubeconfig}
	out, err := run.CombinedOutput()
	return string(out), err
}

// follow types each command of a section of a document.
func (y *typist) follow(file, heading string) {
	y.t.Helper()
	for _, line := range read(y.t, filepath.Join(documents, file), heading).commands {
		y.t.Logf("$ %s\n%s", strings.TrimSpace(line), y.shell(line, ""))
	}
}

// released says in the cluster which image of the coordinator the release has, as the chart does.
func (y *typist) released(image string) {
	y.t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{contract.CoordinatorImagesRelease: image}})
	must(y.t, err)
	_, err = y.cloud.Client().CoreV1().ConfigMaps(contract.ManagerNamespace).Patch(y.t.Context(),
		contract.CoordinatorImages, types.MergePatchType, patch, metav1.PatchOptions{})
	must(y.t, err)
}

// machine is a node that has joined the cluster, and no pool.
func (y *typist) machine(name, address string) {
	y.t.Helper()
	nodes := y.cloud.Client().CoreV1().Nodes()
	n, err := nodes.Create(y.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{corev1.LabelHostname: name},
	}}, metav1.CreateOptions{})
	must(y.t, err)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = nodes.UpdateStatus(y.t.Context(), n, metav1.UpdateOptions{})
	must(y.t, err)
	y.beat(name, 0)
}

// counts waits until the Pools say how many nodes they have.
func (y *typist) counts(want string) {
	y.t.Helper()
	const line = `kubectl get pools.weir.dev -o jsonpath='{range .items[*]}{.metadata.name}={.status.members} {end}'`
	got := ""
	testkit.Until(y.t, 5*time.Minute, "the Pools to be "+want, func() bool {
		was := got
		if got = strings.TrimSpace(y.shell(line, "")); got != was {
			y.t.Logf("Pools: %s", got)
		}
		return got == want
	})
}

// TestSites: what docs/sites.md has for three sites is taken by kube-apiserver and makes three pools.
func TestSites(t *testing.T) {
	y := newTypist(t)
	const file, heading = "sites.md", "Three sites of four nodes behind NAT"
	var sites []string
	for _, site := range []string{"harbour", "mill", "quarry"} {
		sites = append(sites, site+"=4")
		for i := range 4 {
			y.machine(fmt.Sprintf("%s-%d", site, i+1), fmt.Sprintf("10.%d.0.%d", len(sites), i+1))
		}
	}
	box := read(t, filepath.Join(documents, file), heading).boxes[0]
	must(t, os.WriteFile(filepath.Join(y.dir, "sites.yaml"), []byte(box), 0o600))
	y.manage()
	y.follow(file, heading)
	y.counts(strings.Join(sites, " "))
	for _, c := range [][3]string{ // what, a field of it, its words
		{"node quarry-1", `{.metadata.labels.topology\.kubernetes\.io/zone}`, "quarry"},
		{"pools.weir.dev quarry", "{.status.replicas[*].node}", "quarry-1 quarry-2 quarry-3"},
		{"pools.weir.dev mill", "{.status.mode}", "LeaderHubs"},
	} {
		testkit.Until(t, 5*time.Minute, strings.Join(c[:], " "), func() bool {
			words := strings.Fields(y.shell("kubectl get "+c[0]+" -o jsonpath='"+c[1]+"'", ""))
			slices.Sort(words)
			return strings.Join(words, " ") == c[2]
		})
	}
	y.follow(file, "A node that its neighbours cannot reach")
}

// TestProcedures: the procedures of docs/day-two.md that need no machine, as a person types them.
func TestProcedures(t *testing.T) {
	const file = "day-two.md"
	y := newTypist(t)
	y.released("registry.example/weir-coordinator:v0.1.0")
	for i, name := range []string{"edge-1", "edge-2", "edge-3", "edge-4"} {
		y.machine(name, fmt.Sprintf("10.0.0.%d", i+1))
	}
	y.manage()

	const git = "Pools in Git*"
	y.follow(file, git)
	y.counts("harbour=2")
	const generations = "kubectl get nodepools,pools.weir.dev -o jsonpath='{.items[*].metadata.generation}'"
	before := y.shell(generations, "")
	y.shell("kubectl diff --server-side --field-manager=gitops -f sites/", "") // weir-manager has written what it writes
	y.shell("kubectl apply --server-side --field-manager=gitops -f sites/", "")
	if after := y.shell(generations, ""); after != before {
		t.Errorf("generations were %s, and are %s", before, after)
	}

	y.shell("kubectl label node edge-3 edge-4 apps.openyurt.io/nodepool=harbour", "")
	y.counts("harbour=4")
	y.follow(file, "Split a pool*")
	y.counts("barge=2 harbour=2")
	y.follow(file, "Merge two pools*")
	y.counts("harbour=4")

	y.follow(file, "Replace a node*")
	y.counts("harbour=4")
	barred := func() map[string]string {
		m, err := y.cloud.Client().CoreV1().ConfigMaps(contract.ManagerNamespace).Get(t.Context(), contract.RevokedNodes,
			metav1.GetOptions{})
		must(t, err)
		return m.Data
	}
	if all := barred(); len(all) > 0 {
		t.Errorf("the new node is barred: %v", all)
	}

	y.follow(file, "A site burns*")
	y.counts("")
	if left := y.shell("kubectl get nodes -l apps.openyurt.io/nodepool=harbour -o name", ""); left != "" {
		t.Errorf("Nodes are left: %s", left)
	}
	if all := barred(); len(all) != 4 {
		t.Errorf("barred are %v, want all four", all)
	}
}

// heredoc is a manifest that a document gives to kubectl apply.
var heredoc = regexp.MustCompile(`(?ms)^ *kubectl apply [^\n]*-f - <<'END'\n(.*?)^ *END$`)

// objects are the manifests of a document that have objects of Weir.
func objects(t testing.TB, path string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	for _, m := range heredoc.FindAllStringSubmatch(string(text), -1) {
		lines := strings.SplitAfter(m[1], "\n")
		margin := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
		for i, line := range lines {
			lines[i] = line[min(margin, len(line)):]
		}
		all = append(all, strings.Join(lines, ""))
	}
	all = append(all, read(t, path, "").boxes...)
	return slices.DeleteFunc(all, func(text string) bool {
		return !strings.Contains(text, "apiVersion: weir.dev/") && !strings.Contains(text, "apiVersion: apps.openyurt.io/")
	})
}

// TestManifests: kube-apiserver takes each object of Weir in a document or an example, and knows all of its fields.
func TestManifests(t *testing.T) {
	y := newTypist(t)
	const takes = "kubectl apply --server-side --dry-run=server --validate=strict -f -"
	n := 0
	must(t, filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{"testdata", "bin", "reports", ".git"}, e.Name()):
			return fs.SkipDir
		case e.IsDir() || filepath.Ext(path) != ".md" && !strings.HasPrefix(path, filepath.Join(documents, "examples")):
			return nil
		}
		all := objects(t, path)
		if filepath.Ext(path) == ".yaml" {
			text, err := os.ReadFile(path)
			must(t, err)
			all = []string{string(text)}
		}
		for _, text := range all {
			n++
			if out, err := y.tries(takes, text); err != nil {
				t.Errorf("%s: %v: %s of\n%s", path, err, out, text)
			}
		}
		return nil
	}))
	if n < 6 {
		t.Errorf("%d manifests were found", n)
	}
	for _, wrong := range [][2]string{
		{"interConnectivity: true", "interConnected: true"}, {"replicas: 3", "replicas: 2"}, {"after: 24h", "after: soon"},
	} {
		good := objects(t, filepath.Join(documents, "sites.md"))[0]
		planted := strings.Replace(good, wrong[0], wrong[1], 1)
		if out, err := y.tries(takes, planted); err == nil || planted == good {
			t.Errorf("with %s: %s", wrong[1], out)
		}
	}
}
