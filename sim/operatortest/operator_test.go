package operatortest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/manager"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/operator"
	"github.com/weir-edge/weir/impl/operator/check"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/testca"
)

var update = flag.Bool("update", false, "write testdata")

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == plugin {
		cli.Main("kubectl weir", operator.Commands("kubectl weir").Run)
		os.Exit(0)
	}
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// desk is where an operator sits.
type desk struct {
	t          *testing.T
	cloud      *cloud.Cloud
	kubeconfig string
}

// types runs a command, and returns what it prints and its exit code.
func (d *desk) types(command string) (out string, code int) {
	d.t.Helper()
	var stdout bytes.Buffer
	code = d.typesTo(&stdout, command)
	return stdout.String(), code
}

// typesTo is types of a command that prints while it runs.
func (d *desk) typesTo(stdout io.Writer, command string) (code int) {
	err := operator.Commands("weir").Run(d.t.Context(), append(strings.Fields(command), "--kubeconfig="+d.kubeconfig),
		stdout, io.Discard)
	if code = cli.ExitCode(err); code != 0 {
		fmt.Fprintf(stdout, "weir: %v\n", err)
	}
	return code
}

// changes are what no two runs have in common.
var changes = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\b\d+(m\d+)?s ago +`), "Ns ago      "},
	{regexp.MustCompile(`(LeaderHubs .*)edge-\d `), "${1}edge-N "}, // one of them, by chance
	{regexp.MustCompile(`"told": "[^"]+"`), `"told": "T"`},
	{regexp.MustCompile(`"heartbeatSeconds": \d+`), `"heartbeatSeconds": N`},
	{regexp.MustCompile(`"manager": "[^"]+"`), `"manager": "HOST"`},
	{regexp.MustCompile(`was heard for \d+(m\d+)?s`), "was heard for Ns"},
	{regexp.MustCompile(`heartbeat is [0-9hms]+ old`), "heartbeat is N old"},
	{regexp.MustCompile(`and so are \d+ more`), "and so are N more"}, // each version has others
}

// prints holds that a command prints what is in testdata, with an exit code.
func (d *desk) prints(command, file string, want int) {
	d.t.Helper()
	got, code := d.types(command)
	for _, c := range changes {
		got = c.from.ReplaceAllString(got, c.to)
	}
	if code != want {
		d.t.Errorf("weir %s: exit code %d, want %d:\n%s", command, code, want, got)
	}
	path := filepath.Join("testdata", file)
	if *update {
		must(d.t, os.WriteFile(path, []byte(got), 0o600))
	}
	text, err := os.ReadFile(path)
	must(d.t, err)
	if got != string(text) {
		d.t.Errorf("weir %s prints\n%s\nand %s has\n%s", command, got, file, text)
	}
}

func (d *desk) apply(texts ...string) {
	d.t.Helper()
	for _, text := range texts {
		must(d.t, d.cloud.Apply(d.t.Context(), []byte(text)))
	}
}

// manage runs weir-manager.
func (d *desk) manage() {
	d.t.Helper()
	d.t.Cleanup(d.lead())
	status := []byte(`{"status":{"replicas":2,"readyReplicas":2,"availableReplicas":2}}`)
	must(d.t, deploy(d, status))
}

// lead runs a weir-manager until stop.
func (d *desk) lead() (stop func()) {
	d.t.Helper()
	token, err := d.cloud.ClientToken(d.t.Context(), "weir-manager")
	must(d.t, err)
	text, err := testca.Kubeconfig(d.cloud.URL(), d.cloud.CA().CertPEM(), nil, token)
	must(d.t, err)
	path := filepath.Join(d.t.TempDir(), "kubeconfig")
	must(d.t, os.WriteFile(path, text, 0o600))
	m, err := manager.New(manager.Config{
		Kubeconfig: path, LeaderElect: true, LeaderElectLeaseDuration: time.Minute,
		LeaderElectRenewDeadline: 50 * time.Second, LeaderElectRetryPeriod: 500 * time.Millisecond,
		MetricsBindAddress: "0", HealthProbeBindAddress: "0", NodeMonitorGracePeriod: time.Hour, WhenSilent: "keep",
		Certificates: "sign",
	})
	must(d.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	return func() { cancel(); <-done }
}

func deploy(d *desk, status []byte) error {
	_, err := d.cloud.Client().AppsV1().Deployments(contract.ManagerNamespace).Create(d.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-manager"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{"a": "b"},
				}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = d.cloud.Client().AppsV1().Deployments(contract.ManagerNamespace).Patch(d.t.Context(), "weir-manager",
			types.MergePatchType, status, metav1.PatchOptions{}, "status")
	}
	return err
}

// node is one whose kubelet calls its hub.
func (d *desk) node(name, address string, age time.Duration) {
	d.t.Helper()
	ctx := d.t.Context()
	must(d.t, d.cloud.CreateNodes(ctx, cloud.Node{Name: name, Pool: "harbour", Address: address}))
	d.beat(name, age)
	ends := time.Date(2036, time.May, 1, 0, 0, 0, 0, time.UTC)
	holds := digest.Holding{
		Certificates: map[string]digest.Life{"hub": {Begin: ends.Add(-24 * time.Hour), End: ends, Renews: true}},
	}.Text()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{contract.HoldsAnnotation: holds}},
	})
	must(d.t, err)
	_, err = d.cloud.Client().CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	must(d.t, err)
	must(d.t, d.condition(name, corev1.ConditionTrue, "WeirJoined", "The kubelet calls its hub."))
}

func (d *desk) condition(node string, status corev1.ConditionStatus, reason, message string) error {
	patch, err := json.Marshal(map[string]any{
		"status": map[string]any{
			"conditions": []corev1.NodeCondition{
				{Type: contract.JoinedCondition, Status: status, Reason: reason, Message: message},
			},
		},
	})
	if err == nil {
		_, err = d.cloud.Client().CoreV1().Nodes().Patch(d.t.Context(), node, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}, "status")
	}
	return err
}

// follower is what the hub of edge-2 tells.
var follower = digest.Digest{Version: "v0.3.0", Role: digest.Follower, Age: 4 * time.Second, Started: time.Unix(0, 0)}

// tell says something of the hub of a node, as a heartbeat does.
func (d *desk) tell(node string, along map[string]string) {
	d.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": along}})
	must(d.t, err)
	_, err = d.cloud.Client().CoordinationV1().Leases(contract.NodeLeaseNamespace).Patch(d.t.Context(), node,
		types.MergePatchType, patch, metav1.PatchOptions{})
	must(d.t, err)
}

// parts holds that a pool whose ports a firewall drops is not called well, and that its hub has the cause.
func (d *desk) parts() {
	d.t.Helper()
	apart := follower
	apart.Role, apart.Cause = digest.Pending, digest.Timeout
	d.tell("edge-2", map[string]string{contract.DigestAnnotation: apart.Text()})
	testkit.Until(d.t, time.Minute, "check to say that a hub does not reach its pool", func() bool {
		_, code := d.types("check -o short")
		return code == 1
	})
	d.prints("check -o short", "apart.golden", 1)
	d.prints("connectivity", "connectivity-apart.golden", 1)
	d.tell("edge-2", map[string]string{contract.DigestAnnotation: follower.Text()})
	if out, code := d.types("check --wait=1m -o short"); code != 0 {
		d.t.Fatalf("check --wait: exit code %d:\n%s", code, out)
	}
}

// ways holds that a way that fails is named by its port, direction and cause: by the Pool, weir check and weir
// connectivity, which are green again when it works.
func (d *desk) ways() {
	d.t.Helper()
	if out, code := d.types("connectivity -o wide"); code != 2 || !strings.Contains(out, "table, json or yaml") {
		d.t.Errorf("a wrong form: exit code %d:\n%s", code, out)
	}
	if out, code := d.types("connectivity --pool nowhere"); code != 2 || !strings.Contains(out, "harbour") {
		d.t.Errorf("no pool: exit code %d:\n%s", code, out)
	}
	for _, w := range []digest.Way{digest.ToHub, digest.ToCoordinator, digest.FromCoordinator, "z"} {
		for _, cause := range []string{digest.Refused, digest.Timeout, digest.Stranger, digest.Clock, digest.Stalls} {
			fails := follower
			fails.Edges = digest.EdgesOf([]digest.Edge{{Way: w, Peer: "10.0.0.1", Port: 10269, Cause: cause}})
			d.tell("edge-2", map[string]string{contract.DigestAnnotation: fails.Text()})
			want := fmt.Sprintf(", port 10269: %s", digest.Likely(cause))
			testkit.Until(d.t, time.Minute, fmt.Sprintf("%v: %s to be told", w, cause), func() bool {
				out, code := d.types("check -o short")
				all, fails := d.types("connectivity")
				return code == 1 && fails == 1 && strings.Count(out, want) == 2 && strings.Contains(out, "EdgeFails: ") &&
					strings.Count(all, want) == 1
			})
		}
	}
	d.prints("connectivity -o json", "connectivity.json.golden", 1)
	d.tell("edge-2", map[string]string{contract.DigestAnnotation: follower.Text()})
	if out, code := d.types("check --wait=1m -o short"); code != 0 {
		d.t.Fatalf("check --wait: exit code %d:\n%s", code, out)
	}
	if out, code := d.types("connectivity --pool harbour"); code != 0 {
		d.t.Fatalf("connectivity: exit code %d:\n%s", code, out)
	}
}

// beat writes the Lease of a node, so long ago.
func (d *desk) beat(name string, age time.Duration) {
	d.t.Helper()
	leases := d.cloud.Client().CoordinationV1().Leases(contract.NodeLeaseNamespace)
	_ = leases.Delete(d.t.Context(), name, metav1.DeleteOptions{})
	meta := metav1.ObjectMeta{Name: name}
	is := follower
	if name == "edge-1" {
		is = digest.Digest{
			Version: "v0.3.0", Role: digest.Leader, Age: 12 * time.Second,
			Started: time.Date(2026, time.November, 23, 14, 0, 0, 0, time.UTC),
			Down:    1_234_567, Up: 98_765, Feed: 1_300_000, Served: 4_800_000,
			Images: digest.Images{Pulled: 52_428_800, Served: 52_428_800},
		}
	}
	meta.Annotations = map[string]string{contract.DigestAnnotation: is.Text()}
	_, err := leases.Create(d.t.Context(), &coordinationv1.Lease{ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &name, LeaseDurationSeconds: ptr.To[int32](3600),
		RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-age))),
	}}, metav1.CreateOptions{})
	must(d.t, err)
}

// TestOperator: from a cluster without Weir to a pool that is well, and what is said of it when something is not.
func TestOperator(t *testing.T) {
	c, _ := cloudtest.Start(t)
	kubeconfig, err := c.Kubeconfig("admin", "system:masters")
	must(t, err)
	d := &desk{t, c, kubeconfig}
	d.prints("check --pre", "pre.golden", 0)
	d.prints("check", "bare.golden", 1)
	d.prints("pool create harbour --leader-hubs=1", "too-early.golden", 1)
	d.apply(manifests.NodePools(), manifests.Pools(), manifests.Policies(), manifests.RBAC(), manifests.Hubs())
	d.manage()
	d.prints("pool create harbour --leader-hubs=1", "create.golden", 0)
	d.prints("pool create harbour --leader-hubs=1", "create-again.golden", 0)
	d.node("edge-1", "10.0.0.1", 0)
	d.node("edge-2", "10.0.0.2", 0)
	if out, code := d.types("check --wait=2m"); code != 0 {
		t.Fatalf("check --wait: exit code %d:\n%s", code, out)
	}
	testkit.Until(t, time.Minute, "the manager to count both nodes and name a leader", func() bool {
		out, _ := d.types("status")
		return strings.Contains(out, "harbour   LeaderHubs   2       2       0         2        edge-") &&
			strings.Contains(out, "3.5 MB")
	})
	d.prints("check", "well.golden", 0)
	d.prints("status -o wide", "status.golden", 0)
	d.prints("check -o json --node edge-2", "well.json.golden", 0)
	out, _ := d.types("pool describe harbour")
	if !strings.Contains(out, "ModeApplied=True") || !strings.Contains(out, "LeaderHubSynced=True") {
		t.Errorf("describe prints\n%s", out)
	}
	out, code := d.types("pool list")
	if out != "harbour\n" || code != 0 {
		t.Errorf("list prints %q, %d", out, code)
	}

	d.prints("connectivity", "connectivity.golden", 0)
	d.parts()
	d.ways()
	d.suggests()

	d.dump()
	d.deletes()

	d.beat("edge-2", 2*time.Hour)
	must(t, d.condition("edge-1", corev1.ConditionFalse, "WeirJoinUndone", "the hub serves: not within 2m0s"))
	policy := "weir-membership"
	must(t, c.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.Context(), policy,
		metav1.DeleteOptions{}))
	d.prints("check -o short", "ill.golden", 1)
	d.prints("check -o short --node edge-2", "ill-node.golden", 1)
	d.people()
	d.coordinates()
}

// suggests holds that what clients of two nodes read of the whole cluster, as their hubs tell, becomes a line of weir
// status, and the lines that share it.
func (d *desk) suggests() {
	d.t.Helper()
	if out, code := d.types("pool suggest harbour"); code != 0 || !strings.Contains(out, "no hub has told yet") {
		d.t.Errorf("suggest: exit code %d:\n%s", code, out)
	}
	if out, code := d.types("pool suggest nowhere"); code != 2 || !strings.Contains(out, "harbour") {
		d.t.Errorf("suggest of no pool: exit code %d:\n%s", code, out)
	}
	if out, code := d.types("pool suggest harbour -o wide"); code != 2 || !strings.Contains(out, "table, json or yaml") {
		d.t.Errorf("suggest in a wrong form: exit code %d:\n%s", code, out)
	}
	for node, bytes := range map[string]int64{"edge-1": 31_000_000, "edge-2": 30_000_000} {
		d.tell(node, map[string]string{contract.ReadsAnnotation: digest.Reads{
			Passed: []digest.Passed{
				{Resource: "ciliumidentities.v2.cilium.io", Bytes: bytes}, {Resource: "secrets.v1.", Bytes: 7_000},
			}, Rest: 500, Unread: []string{"endpoints.v1."},
		}.Text()})
	}
	testkit.Until(d.t, time.Minute, "status to say that there is something to suggest", func() bool {
		out, _ := d.types("status")
		return strings.Contains(out, "pool harbour: sharing 1 more resource would save 30.0 MB a day: weir pool "+
			"suggest harbour")
	})
	d.prints("pool suggest harbour", "suggest.golden", 0)
}

// coordinates holds that a pool's coordinator is of the release that is installed, so that its Pool names no image, and
// that weir-manager may run another one beside those of before if the Pool names that. What is printed instead is the
// same, and makes nothing.
func (d *desk) coordinates() {
	d.t.Helper()
	if out, code := d.types("pool create pier --coordinator"); code != 2 || !strings.Contains(out, "--coordinator-image") {
		d.t.Errorf("no release is installed, and this program is of none: exit code %d:\n%s", code, out)
	}
	image := "registry.example/weir-coordinator@sha256:" + strings.Repeat("c", 64)
	maps := d.cloud.Client().CoreV1().ConfigMaps(contract.ManagerNamespace)
	patch, err := json.Marshal(map[string]any{
		"data": map[string]string{
			contract.CoordinatorImagesRelease: image, contract.CoordinatorImagesKey: "weir-coordinator:1",
		},
	})
	must(d.t, err)
	_, err = maps.Patch(d.t.Context(), contract.CoordinatorImages, types.MergePatchType, patch, metav1.PatchOptions{})
	must(d.t, err)
	spec := func(pool string) string {
		d.t.Helper()
		text, err := d.cloud.Client().CoreV1().RESTClient().Get().AbsPath("/apis/weir.dev/v1alpha1/pools/" + pool).DoRaw(
			d.t.Context())
		must(d.t, err)
		var own struct {
			Spec json.RawMessage `json:"spec"`
		}
		must(d.t, json.Unmarshal(text, &own))
		return string(own.Spec)
	}
	may := func(want string) {
		d.t.Helper()
		m, err := maps.Get(d.t.Context(), contract.CoordinatorImages, metav1.GetOptions{})
		must(d.t, err)
		if got := m.Data[contract.CoordinatorImagesKey]; got != want {
			d.t.Errorf("weir-manager may run %q", got)
		}
	}
	const printed = "pool create mole --coordinator --coordinator-replicas=3 -o yaml"
	d.prints(printed, "printed.golden", 0)
	if out, code := d.types("pool describe mole"); code == 0 {
		d.t.Errorf("%s has made\n%s", printed, out)
	}
	out, _ := d.types(printed)
	d.apply(out)
	if out, code := d.types("pool create pier --coordinator --coordinator-replicas=3"); code != 0 ||
		strings.Contains(out, "weir-manager may run") {
		d.t.Errorf("exit code %d:\n%s", code, out)
	}
	if pier := spec("pier"); pier != spec("mole") || strings.Contains(pier, "image") {
		d.t.Errorf("made is %s, and what was printed is %s", pier, spec("mole"))
	}
	may("weir-coordinator:1")
	if out, code := d.types("pool create jetty --coordinator-image=" + image); code != 0 ||
		!strings.Contains(out, "weir-manager may run "+image+"\n") ||
		!strings.Contains(spec("jetty"), `"image":"`+image+`"`) {
		d.t.Errorf("exit code %d:\n%s%s", code, out, spec("jetty"))
	}
	may("weir-coordinator:1\n" + image)
}

// listed waits until the roster of the pool has a node, or has it no more.
func (d *desk) listed(node string, want bool) {
	d.t.Helper()
	testkit.Until(d.t, time.Minute, fmt.Sprintf("the roster to have node %s: %t", node, want), func() bool {
		c, err := d.cloud.Client().CoreV1().ConfigMaps(contract.KeyNamespace).Get(d.t.Context(),
			contract.RosterPrefix+"harbour", metav1.GetOptions{})
		return err == nil && (c.Data[node] != "") == want
	})
}

// says waits until weir check tells of the deletion of a node, or does no more.
func (d *desk) says(node string, want bool) {
	d.t.Helper()
	testkit.Until(d.t, 2*time.Minute, fmt.Sprintf("check to tell of the deletion of %s: %t", node, want), func() bool {
		out, _ := d.types("check -o short")
		return strings.Contains(out, "DeletedUnconfirmed") == want &&
			strings.Contains(out, "kubectl weir node restore "+node+"; if they are lost or stolen: kubectl weir node revoke "+
				node) == want
	})
}

// deletes holds that a Node that a controller deletes is told of, with the commands that take it back or confirm it,
// and that one that an administrator revokes is not.
func (d *desk) deletes() {
	d.t.Helper()
	ctx, nodes := d.t.Context(), d.cloud.Client().CoreV1().Nodes()
	told := func(node string) bool {
		all, err := d.cloud.Client().CoreV1().Events("default").List(ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,reason=DeletedUnconfirmed,involvedObject.name=" + node})
		must(d.t, err)
		return len(all.Items) > 0
	}
	d.node("edge-3", "10.0.0.3", 0)
	d.listed("edge-3", true)
	must(d.t, nodes.Delete(ctx, "edge-3", metav1.DeleteOptions{}))
	d.says("edge-3", true)
	testkit.Until(d.t, time.Minute, "an Event", func() bool { return told("edge-3") })
	if out, code := d.types("node restore edge-3"); code != 0 ||
		!strings.Contains(out, "node edge-3: its Node is there again, in pool harbour") {
		d.t.Errorf("restore: exit code %d:\n%s", code, out)
	}
	n, err := nodes.Get(ctx, "edge-3", metav1.GetOptions{})
	if err != nil || n.Labels[contract.NodePoolLabel] != "harbour" {
		d.t.Errorf("the Node is %v, %v", n.Labels, err)
	}
	d.says("edge-3", false)
	d.listed("edge-3", true)
	if out, code := d.types("node restore edge-3"); code != 1 || !strings.Contains(out, "was restored already") {
		d.t.Errorf("restore again: exit code %d:\n%s", code, out)
	}

	must(d.t, nodes.Delete(ctx, "edge-3", metav1.DeleteOptions{}))
	d.says("edge-3", true)
	if out, code := d.types("node revoke edge-3"); code != 0 ||
		!strings.Contains(out, "node edge-3: its deletion is confirmed") {
		d.t.Errorf("revoke later: exit code %d:\n%s", code, out)
	}
	d.says("edge-3", false)

	d.node("edge-4", "10.0.0.4", 0)
	d.listed("edge-4", true)
	if out, code := d.types("node revoke edge-4 nobody"); code != 1 ||
		!strings.Contains(out, "node edge-4: its Node is deleted") ||
		!strings.Contains(out, "node nobody: there is no Node of this name") {
		d.t.Errorf("revoke: exit code %d:\n%s", code, out)
	}
	d.listed("edge-4", false)
	barred, err := d.cloud.Client().CoreV1().ConfigMaps(contract.ManagerNamespace).Get(ctx, contract.RevokedNodes,
		metav1.GetOptions{})
	must(d.t, err)
	if barred.Data["edge-4"] == "" || strings.Contains(barred.Data["edge-4"], "unconfirmed") || told("edge-4") {
		d.t.Errorf("edge-4 was revoked: barred %q, told %t", barred.Data["edge-4"], told("edge-4"))
	}
	d.says("edge-4", false)
}

// dump holds that an archive has what helps, and not what nobody may see.
func (d *desk) dump() {
	d.t.Helper()
	const planted = "eyJhbGciOiJSUzI1NiJ9.eyJwbGFudGVkIjoxfQ.cGxhbnRlZC1zaWduYXR1cmU"
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{"example.com/note": "token " + planted}},
	})
	must(d.t, err)
	_, err = d.cloud.Client().CoreV1().Nodes().Patch(d.t.Context(), "edge-1", types.MergePatchType, patch,
		metav1.PatchOptions{})
	must(d.t, err)
	testkit.Until(d.t, time.Minute, "the manager to write down who is in the pool", func() bool {
		_, err := d.cloud.Client().CoreV1().ConfigMaps(contract.KeyNamespace).Get(d.t.Context(),
			contract.RosterPrefix+"harbour", metav1.GetOptions{})
		return err == nil
	})
	path := filepath.Join(d.t.TempDir(), "dump.tar.gz")
	if out, code := d.types("sysdump -o " + path); code != 0 {
		d.t.Fatalf("sysdump: exit code %d:\n%s", code, out)
	}
	raw, err := os.Open(path)
	must(d.t, err)
	defer raw.Close()
	z, err := gzip.NewReader(raw)
	must(d.t, err)
	seen := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(d.t, err)
		text, err := io.ReadAll(r)
		must(d.t, err)
		seen[strings.TrimPrefix(h.Name, "dump/")] = string(text)
		if strings.Contains(string(text), planted) || strings.Contains(string(text), "PRIVATE KEY") {
			d.t.Errorf("%s has a secret", h.Name)
		}
	}
	for file, want := range map[string]string{
		"check.txt": "√ pool harbour: it has nodes", "status.yaml": "name: harbour", "cluster/nodes.yaml": "name: edge-2",
		"cluster/pools.yaml":    "mode: LeaderHubs",
		"cluster/services.yaml": "leader-hub-harbour", "cluster/configmaps-of-authorities.yaml": "nodes-harbour",
		"version.txt": "weir ",
	} {
		if !strings.Contains(seen[file], want) {
			d.t.Errorf("%s of the archive does not have %q: %.300s", file, want, seen[file])
		}
	}
	if !strings.Contains(seen["cluster/nodes.yaml"], "REMOVED") {
		d.t.Error("nothing was removed from Nodes")
	}
}

// TestHelp: each command has --help, which says how to call it.
func TestHelp(t *testing.T) {
	for _, c := range operator.Commands("kubectl weir").Leaves() {
		var out bytes.Buffer
		words := slices.Concat(strings.Fields(c.CommandPath())[2:], []string{"--help"})
		err := operator.Commands("kubectl weir").Run(t.Context(), words, &out, &out)
		if err != nil || !strings.Contains(out.String(), "\n\nUsage:\n  "+c.UseLine()+"\n") {
			t.Errorf("%s: %v:\n%s", words, err, &out)
		}
	}
}

// TestHints: each check has its heading in the documentation.
func TestHints(t *testing.T) {
	doc, err := os.ReadFile("../../docs/operations.md")
	must(t, err)
	ids := check.IDs()
	if len(ids) < 15 || !slices.IsSorted(ids) {
		t.Errorf("checks: %v", ids)
	}
	for _, id := range ids {
		if !strings.Contains(string(doc), "\n### "+id+"\n") {
			t.Errorf("docs/operations.md has no heading ### %s", id)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### ([a-z-]+)$`).FindAllStringSubmatch(string(doc), -1) {
		if !slices.Contains(ids, m[1]) {
			t.Errorf("docs/operations.md has a heading for %s, which no check has", m[1])
		}
	}
}
