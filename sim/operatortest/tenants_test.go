package operatortest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/testkit"
)

// tenant is a person with one of Weir's roles.
type tenant struct {
	*typist
	kubeconfig string
}

// tenant binds a role to somebody who has no other.
func (y *typist) tenant(name, role string) tenant {
	y.t.Helper()
	kubeconfig, err := y.cloud.Kubeconfig(name)
	must(y.t, err)
	y.shell(fmt.Sprintf("kubectl create clusterrolebinding %s --clusterrole=%s --user=%[1]s", name, role), "")
	p := tenant{y, kubeconfig}
	testkit.Until(y.t, time.Minute, name+" to be let in", func() bool { return p.may(duties[0].line) })
	return p
}

// may reports whether the cluster lets somebody type a line. Whatever else fails ends the test.
func (p tenant) may(line string) bool {
	p.t.Helper()
	out, err := p.tries("export KUBECONFIG="+p.kubeconfig+"; "+line, "")
	if err != nil && !strings.Contains(strings.ToLower(out), "forbidden") &&
		!strings.HasSuffix(strings.TrimSpace(out), "no") {
		p.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return err == nil
}

// duties are lines, and from which of the roles on somebody may type them. In the end nobody may.
var duties = []struct{ line, least string }{
	{"kubectl get nodepools,pools.weir.dev harbour", "weir-view"},
	{"kubectl get --raw '/apis/weir.dev/v1alpha1/pools?watch=true&timeoutSeconds=1'", "weir-view"},
	{"kubectl get --raw '/apis/apps.openyurt.io/v1beta2/nodepools?watch=true&timeoutSeconds=1'", "weir-view"},
	{
		"kubectl patch pools.weir.dev harbour --type=merge -p '{\"spec\":{\"mode\":\"LeaderHubs\"}}' --dry-run=server",
		"weir-edit",
	},
	{
		"kubectl patch nodepools harbour --type=merge -p '{\"spec\":{\"labels\":{\"a\":\"b\"}}}' --dry-run=server",
		"weir-admin",
	},
	{"kubectl weir pool create pier --coordinator", "weir-admin"},
	{"kubectl delete pools.weir.dev,nodepools harbour --dry-run=server", "weir-admin"},
	{"kubectl auth can-i deletecollection pools.weir.dev", ""},
	{"kubectl auth can-i deletecollection nodepools", ""},
	{
		"kubectl patch pools.weir.dev harbour --subresource=status --type=merge -p '{\"status\":{\"members\":9}}' " +
			"--dry-run=server", "",
	},
	{
		"kubectl patch nodepools harbour --subresource=status --type=merge -p '{\"status\":{\"readyNodeNum\":9}}' " +
			"--dry-run=server", "",
	},
	{"kubectl auth can-i assign nodepools", ""},
	{"kubectl label node edge-1 apps.openyurt.io/nodepool=harbour --dry-run=server", ""},
	{"kubectl -n kube-system get configmaps weir-coordinator-images", ""},
	{"kubectl -n weir-pki get secrets", ""},
	{"kubectl get pods -A", ""},
}

// wrong are the lines that somebody of a role may type against duties, or may not.
func (p tenant) wrong(role string) (all []string) {
	p.t.Helper()
	roles := []string{"weir-view", "weir-edit", "weir-admin"}
	for _, d := range duties {
		want := d.least != "" && slices.Index(roles, role) >= slices.Index(roles, d.least)
		if p.may(d.line) != want {
			all = append(all, fmt.Sprintf("%s may: %t: %s", role, !want, d.line))
		}
	}
	return all
}

// TestTenants: what people with each of Weir's roles may do and what not, and which of Kubernetes' own roles takes it.
func TestTenants(t *testing.T) {
	y := newTypist(t)
	y.apply(manifests.Tenants())
	y.machine("edge-1", "10.0.0.1")
	y.released("registry.example/weir-coordinator:v0.1.0")
	y.shell("kubectl weir pool create harbour --coordinator", "")
	for _, own := range []string{"view", "edit", "admin"} {
		role := "weir-" + own
		if all := y.tenant("ann-"+own, role).wrong(role); len(all) > 0 {
			t.Errorf("%s", strings.Join(all, "\n"))
		}
		// A controller of kube-controller-manager adds what the selector selects.
		const selects = "kubectl get clusterrole %s -o go-template='{{range .aggregationRule.clusterRoleSelectors}}" +
			"{{range $k, $v := .matchLabels}}{{$k}}={{$v}}{{end}}{{end}}'"
		label := y.shell(fmt.Sprintf(selects, own), "")
		taken := y.shell("kubectl get clusterroles -l app.kubernetes.io/part-of=weir,"+label+" -o name", "")
		if want := "clusterrole.rbac.authorization.k8s.io/" + role; strings.TrimSpace(taken) != want {
			t.Errorf("%s takes %q by %s, want %s", own, taken, label, want)
		}
	}

	// Of one pool, as docs/objects.md has it.
	y.follow("objects.md", "Roles for people")
	ann := tenant{typist: y}
	var err error
	ann.kubeconfig, err = y.cloud.Kubeconfig("ann")
	must(t, err)
	operates := func(pool string) bool {
		return ann.may("kubectl patch pools.weir.dev " + pool + " --type=merge -p '{\"spec\":{\"mode\":\"LeaderHubs\"}}' " +
			"--dry-run=server")
	}
	testkit.Until(t, time.Minute, "ann to operate her pool", func() bool { return operates("harbour") })
	if operates("pier") {
		t.Error("ann operates another pool")
	}

	// Roles that grant more, or less, are found.
	for role, planted := range map[string]string{"weir-edit": "nodepools"} {
		p := y.tenant("eve-"+role, role)
		y.shell(fmt.Sprintf(`kubectl patch clusterrole %s --type=json -p '[{"op":"add","path":"/rules/-","value":`+
			`{"apiGroups":["apps.openyurt.io","weir.dev"],"resources":["%s"],"verbs":["patch"]}}]'`, role, planted), "")
		testkit.Until(t, 5*time.Minute, role+" to be found wrong with a right to patch "+planted,
			func() bool { return len(p.wrong(role)) == 1 })
		y.shell("kubectl patch clusterrole "+role+` --type=merge -p '{"rules":[]}'`, "")
		testkit.Until(t, 5*time.Minute, role+" to be found wrong without any right",
			func() bool { return len(p.wrong(role)) >= 3 })
	}
}
