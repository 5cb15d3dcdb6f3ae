package managertest

import (
	"os"
	"testing"

	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/sim/audit"
)

// unasked are grants without a request here, and what needs them.
var unasked = map[string]string{
	"ClusterRole weir:manager: approve signers.certificates.k8s.io": decided,
	"ClusterRole weir:manager: sign signers.certificates.k8s.io":    decided,

	"ClusterRole weir:manager: bind clusterroles.rbac.authorization.k8s.io": "kube-apiserver looks for it when a " +
		"role is bound",
	"ClusterRole weir:manager: escalate clusterroles.rbac.authorization.k8s.io": "kube-apiserver looks for it when a " +
		"role is written",

	"ClusterRole weir:manager: list customresourcedefinitions.apiextensions.k8s.io":                 older,
	"ClusterRole weir:manager: list mutatingadmissionpolicies.admissionregistration.k8s.io":         older,
	"ClusterRole weir:manager: list mutatingadmissionpolicybindings.admissionregistration.k8s.io":   older,
	"ClusterRole weir:manager: list validatingadmissionpolicies.admissionregistration.k8s.io":       older,
	"ClusterRole weir:manager: list validatingadmissionpolicybindings.admissionregistration.k8s.io": older,
	"Role kube-system/weir:manager: list configmaps":                                                older,
	"Role kube-system/weir:manager: list leases.coordination.k8s.io":                                older,

	"Role kube-node-lease/weir:manager: list leases.coordination.k8s.io":             older,
	"Role kube-node-lease/weir:manager: list roles.rbac.authorization.k8s.io":        older,
	"Role kube-node-lease/weir:manager: list rolebindings.rbac.authorization.k8s.io": older,

	"Role kube-node-lease/weir:manager: get leases.coordination.k8s.io": "a Lease that somebody else has just written " +
		"is looked at again",
	"Role kube-node-lease/weir:manager: update leases.coordination.k8s.io": given,

	"ClusterRole weir:joins: create certificatesigningrequests.certificates.k8s.io": joins,
	"ClusterRole weir:joins: get certificatesigningrequests.certificates.k8s.io":    joins,

	"Role kube-system/weir:manager: patch events": "an Event that comes again within minutes is " +
		"counted, not written anew",
	"Role kube-system/weir:manager: patch jobs.batch": "a Job that pulls an image begins and waits by it: TestImages " +
		"of sim/operatortest",
	"Role weir-pki/weir:manager: update roles.rbac.authorization.k8s.io": "what somebody changed is put right when a " +
		"node joins or leaves",
}

const (
	decided = "kube-apiserver looks for it when a certificate is approved or signed"
	older   = "client-go lists where the cluster has no streaming lists"
	joins   = "the log is of weir-manager; without them no node joins by a token here"
	given   = "nobody may grant what he does not have, and forwarders have it"
)

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
	unused := map[string]bool{}
	for _, g := range use.Unused(grants) {
		unused[g.String()] = true
		if unasked[g.String()] == "" {
			t.Errorf("never used: %s", g)
		}
	}
	for g := range unasked {
		if !unused[g] {
			t.Errorf("used, or no grant, so it needs no excuse: %s", g)
		}
	}
	for _, r := range use.Refused {
		t.Errorf("refused: %s", r)
	}
	t.Logf("%d requests, %d grants", use.Events, len(grants))
}
