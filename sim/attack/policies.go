package attack

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// What manager's token is tried at. Everything is a dry run: admission is asked as ever, and nothing stays.
const (
	dryRun       = "?dryRun=All"
	systemPods   = "/api/v1/namespaces/kube-system/pods" + dryRun
	systemJobs   = "/apis/batch/v1/namespaces/kube-system/jobs" + dryRun
	rbacIn       = "/apis/rbac.authorization.k8s.io/v1/namespaces/"
	rbacGlobal   = "/apis/rbac.authorization.k8s.io/v1/"
	requestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	dnsLabel     = "k8s-app" // by which Services find CoreDNS
	rightImage   = "example.com/weir:1"
	anyAccounts  = `{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:serviceaccounts"}`
)

var deniedByPolicy = []int{http.StatusForbidden, http.StatusUnprocessableEntity}

// policyAttacks are attempts at what admission policies keep: what says where a node belongs, and what weir-manager may
// make.
func policyAttacks() []Attack {
	here := atCloud()
	ownBeat := ask{
		as: "cni", method: http.MethodPatch, path: "/api/v1/nodes/{node}/status", header: []string{strategicPatch}, codes: ok,
		body: `{"metadata":{"annotations":{"flannel.alpha.coreos.com/public-ip":"10.0.0.1"}},` +
			`"status":{"conditions":[{"type":"NetworkUnavailable","status":"False"}]}}`,
	}
	ownTaint := ask{
		as: "csi", method: http.MethodPatch, path: "/api/v1/nodes/{node}", header: []string{mergePatch}, codes: ok,
		body: `{"metadata":{"labels":{"topology.example.com/zone":"a"}}}`,
	}
	assigns := ask{
		as: "assigner", method: http.MethodPatch, path: "/api/v1/nodes/{node}" + dryRun, header: []string{mergePatch},
		codes: ok,
		body:  `{"metadata":{"labels":{"` + contract.NodePoolLabel + `":"` + foreign + `"}}}`,
	}
	all := []Attack{
		{
			Number: "105", Position: Member,
			Goal: "choose pool, leadership and coordinator of nodes by the token of an agent of the node",
			Sent: "as a CNI that may patch nodes/status: labels and annotations of Weir, by every kind of patch, at the " +
				"own Node and at another one",
			Expected: "403 or 422, and nothing changes", Control: "its own condition and annotation, at the same path",
			prepare: agents,
			play:    placing("cni", "/status"), controls: []ask{ownBeat},
		},
		{
			Number: "106", Position: Member, Goal: "the same with a token that may patch Nodes",
			Sent: "as a CSI driver that may patch Nodes: labels and annotations of Weir, by every kind of patch, at " +
				"Node and status",
			Expected: "403 or 422, and nothing changes",
			Control:  "a label of its own; somebody with the right to assign moves the Node", prepare: agents,
			play: placing("csi", "", "/status"), controls: []ask{ownTaint, assigns},
		},
		{
			Number: "107", Position: Member, Goal: "bind the pods of others to their nodes, by the token of an agent",
			Sent:     "as a CNI that may patch pods/status: the annotation apps.openyurt.io/binding",
			Expected: "403 or 422, and no annotation", Control: "its own annotation, at the same path",
			prepare: func(ctx context.Context, x *scene) error {
				if err := agents(ctx, x); err != nil {
					return err
				}
				_, err := x.pod(ctx, "sky-agent", x.node(2))
				return err
			},
			asks: []ask{{
				as: "cni", method: http.MethodPatch, path: "/api/v1/namespaces/a/pods/sky-agent/status",
				header: []string{mergePatch},
				body:   `{"metadata":{"annotations":{"` + contract.BindingAnnotation + `":"true"}}}`, codes: deniedByPolicy,
			}},
			controls: []ask{{
				as: "cni", method: http.MethodPatch,
				path: "/api/v1/namespaces/a/pods/sky-agent/status", header: []string{mergePatch},
				body: `{"metadata":{"annotations":{"cni.projectcalico.org/podIP":"10.1.1.1/32"}}}`, codes: ok,
			}},
		},
		{
			Number: "108", Position: Holder, Goal: "redirect DNS with weir-manager's token",
			Sent: "a coordinator's Pod that is also labelled as CoreDNS, or has one annotation, argument or field more " +
				"than weir-manager writes",
			Expected: "403", Control: "the Pod as weir-manager writes it", prepare: allowedImages, asks: badPods(),
			controls: []ask{goodPod()},
		},
		{
			Number: "109", Position: Holder, Goal: "run something on a node with weir-manager's token",
			Sent: "an installer's Job whose Pods are labelled as CoreDNS; with the volume of a token; with --pool=x " +
				"--host-root=/ in one argument; " +
				"for another node than it says",
			Expected: "403", Control: "the Job as weir-manager writes it", prepare: allowedImages, asks: badJobs(),
			controls: []ask{goodJob()},
		},
		{
			Number: "110", Position: Holder,
			Goal: "give Leases of nodes, or keys of pools, to anybody with weir-manager's token",
			Sent: "in kube-node-lease and weir-pki: Roles of other names, without names of objects, with more verbs; bindings " +
				"to groups, accounts and " +
				"other users, and of weir-manager's own Role",
			Expected: "403", Control: "it writes the Roles and bindings that are there", prepare: managerToken,
			asks: grantAsks(), play: rewritesGrants,
		},
		{
			Number: "111", Position: Holder, Goal: "run any image with weir-manager's token when the list of images is gone",
			Sent: "Job and Pod of weir-manager with another image, and with rights on the host, while both ConfigMaps " +
				"are deleted",
			Expected: "403 or 422", Control: "with the ConfigMaps: a Pod and a Job; without them: a Pod of somebody else",
			prepare: allowedImages,
			play:    withoutImages, controls: []ask{goodPod(), goodJob()},
		},
		{
			Number: "112", Position: Member, Goal: "write heartbeats of the pool for ever, as a node that may not lead it",
			Sent: "a request for the forwarder's certificate, by a node without the label of leaders, in a pool where " +
				"another one has it",
			Expected: "denied for that, and no grant on Leases",
			Control:  "the node with the label gets it, and so does a node of a pool without labels", play: forwardsUnlabelled,
		},
		{
			Number: "113", Position: Holder, Goal: "have weir-manager's token approve what is no node's",
			Sent: "approvals of requests of an account: CN=system:kube-controller-manager; and of a node's that asks to " +
				"serve, or for a year",
			Expected: "403", Control: "it approves what a node of the pool asks for", prepare: managerToken,
			play: approvesOthers,
		},
		{
			Number: "114", Position: Holder, Goal: "own the cluster by a role with weir-manager's token",
			Sent: "a ClusterRole bound in weir-pki; weir:hub-scope:<pool> with Secrets; the role of hubs for hubs of " +
				"another pool",
			Expected: "403", Control: "weir:hub-scope:<pool> to list and watch what a pool shares", prepare: managerToken,
			asks: roleAsks(),
			controls: []ask{{
				as: "manager", method: http.MethodPost, path: rbacGlobal + "clusterroles" + dryRun,
				codes: []int{http.StatusCreated},
				body:  clusterRole(`{"apiGroups":["example.com"],"resources":["things"],"verbs":["list","watch"]}`),
			}},
		},
	}
	for i := range all {
		all[i].place = here
		for _, asks := range [][]ask{all[i].asks, all[i].controls} {
			for j := range asks {
				asks[j].at = cloudDoor
			}
		}
	}
	apart := enrolling() // of the other one the second Node is deleted
	apart.name = "requests"
	requests := Attack{
		Number: "115", Position: Member,
		Goal:     "be another node, or another user, by a request that two readers read in two ways",
		Sent:     "node A's request for node B's hub; one with two common names; a bootstrap token for a second certificate",
		Expected: "denied, for that reason", Control: "requests for what is its own are signed", place: apart,
		play: func(ctx context.Context, x *scene) error {
			return x.forges(ctx, "two common names", "another node's, as the node", "a token that was used")
		},
	}
	return append(all, requests)
}

func post(as, path string, o any) ask {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // a mistake of the table
	}
	return ask{as: as, at: cloudDoor, method: http.MethodPost, path: path, body: string(text), codes: deniedByPolicy}
}

func granted(q ask) ask {
	q.codes = []int{http.StatusCreated}
	return q
}

// coordinatorPod is one as weir-manager writes it.
func coordinatorPod(change func(*corev1.Pod)) *corev1.Pod {
	const host = "/var/lib/weir/coordinator/"
	kind, no, root := corev1.HostPathDirectoryOrCreate, false, int64(0)
	directory := func(name string) corev1.Volume {
		return corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: host + name, Type: &kind},
			},
		}
	}
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "weir-coordinator-x", Annotations: map[string]string{contract.BindingAnnotation: "true"},
			Labels: map[string]string{
				contract.ManagedLabel: contract.ManagedBy, contract.NameLabel: contract.CoordinatorPods,
				"app.kubernetes.io/part-of": "weir",
				contract.NodePoolLabel:      "sky", "weir.dev/placement": "p1",
			},
		},
		Spec: corev1.PodSpec{
			NodeName: "sky-1", HostNetwork: true, PriorityClassName: "system-node-critical", AutomountServiceAccountToken: &no,
			EnableServiceLinks: &no,
			Tolerations:        []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Volumes:            []corev1.Volume{directory("data"), directory("certificates")},
			Containers: []corev1.Container{{
				Name: "weir-coordinator", Image: rightImage,
				Args: []string{
					"--nodepool-name=sky", "--data-dir=" + host + "data", "--certificates-dir=" + host + "certificates",
					"--placement=p1",
				},
				SecurityContext: &corev1.SecurityContext{
					RunAsUser: &root, AllowPrivilegeEscalation: &no,
					Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
			}},
		},
	}
	change(p)
	return p
}

func goodPod() ask {
	return granted(post("manager", systemPods, coordinatorPod(func(*corev1.Pod) {})))
}

// badPods are coordinators but for one thing.
func badPods() []ask {
	var asks []ask
	for _, change := range []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Labels[dnsLabel] = "kube-dns" },
		func(p *corev1.Pod) { p.Annotations["k8s.v1.cni.cncf.io/networks"] = "mgmt" },
		func(p *corev1.Pod) { p.Finalizers = []string{"example.com/for-ever"} },
		func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "coredns", UID: "1"}}
		},
		func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
		},
		func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext.SeccompProfile.Type = corev1.SeccompProfileTypeUnconfined
		},
		func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}},
			}
		},
		func(p *corev1.Pod) {
			p.Spec.Containers[0].Args = append(p.Spec.Containers[0].Args,
				"--client-ca-file=/var/lib/weir/coordinator/data/evil.crt")
		},
	} {
		asks = append(asks, post("manager", systemPods, coordinatorPod(change)))
	}
	return asks
}

// installerJob is one as weir-manager writes it.
func installerJob(change func(*batchv1.Job, *corev1.PodSpec)) *batchv1.Job {
	labels := func() map[string]string {
		return map[string]string{
			contract.ManagedLabel: contract.ManagedBy, contract.NameLabel: contract.InstallerName,
			"app.kubernetes.io/part-of": "weir",
		}
	}
	yes, no, root := true, false, int64(0)
	j := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Name: contract.InstallerName + "-x", Labels: labels(),
			Annotations: map[string]string{contract.InstallNode: "sky-1", contract.InstallPool: "sky"},
		},
	}
	j.Spec.Template.Labels = labels()
	j.Spec.Template.Spec = corev1.PodSpec{
		NodeName: "sky-1", HostPID: true, HostNetwork: true, PriorityClassName: "system-node-critical",
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: &no, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{
			Name: "installer", Image: rightImage, Args: []string{"node", "install", "--pool=sky"},
			SecurityContext: &corev1.SecurityContext{Privileged: &yes, RunAsUser: &root},
		}},
	}
	change(j, &j.Spec.Template.Spec)
	return j
}

func goodJob() ask {
	return granted(post("manager", systemJobs, installerJob(func(*batchv1.Job, *corev1.PodSpec) {})))
}

// badJobs are installers but for one thing.
func badJobs() []ask {
	seconds := int64(3600)
	token := corev1.VolumeProjection{
		ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds},
	}
	var asks []ask
	for _, change := range []func(*batchv1.Job, *corev1.PodSpec){
		func(j *batchv1.Job, _ *corev1.PodSpec) { j.Spec.Template.Labels[dnsLabel] = "kube-dns" },
		func(j *batchv1.Job, _ *corev1.PodSpec) { j.Labels[dnsLabel] = "kube-dns" },
		func(j *batchv1.Job, _ *corev1.PodSpec) {
			j.Spec.Template.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "mgmt"}
		},
		func(_ *batchv1.Job, p *corev1.PodSpec) {
			p.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{token}},
			}}}
		},
		func(_ *batchv1.Job, p *corev1.PodSpec) { p.Containers[0].Args[2] = "--pool=x --host-root=/" },
		func(_ *batchv1.Job, p *corev1.PodSpec) { p.ServiceAccountName = "weir-manager" },
		func(j *batchv1.Job, _ *corev1.PodSpec) { j.Annotations[contract.InstallNode] = "sky-2" },
		func(_ *batchv1.Job, p *corev1.PodSpec) { p.Containers[0].WorkingDir = "/proc/1/root" },
		func(_ *batchv1.Job, p *corev1.PodSpec) {
			p.HostAliases = []corev1.HostAlias{{IP: "6.6.6.6", Hostnames: []string{"api"}}}
		},
	} {
		asks = append(asks, post("manager", systemJobs, installerJob(change)))
	}
	return asks
}

// clusterRole is weir:hub-scope:sky-x with rules.
func clusterRole(rules string) string {
	return `{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1",` +
		`"metadata":{"name":"weir:hub-scope:sky-x"},"rules":[` + rules + `]}`
}

// role and binding are of a namespace.
func roleOf(namespace, name, rules string) ask {
	return ask{
		as: "manager", method: http.MethodPost, path: rbacIn + namespace + "/roles" + dryRun, codes: deniedByPolicy,
		body: `{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"` + name + `"},"rules":[` +
			rules + `]}`,
	}
}

func binding(namespace, name, kind, of, subject string) ask {
	return ask{
		as: "manager", method: http.MethodPost, path: rbacIn + namespace + "/rolebindings" + dryRun, codes: deniedByPolicy,
		body: `{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"` + name +
			`"},"roleRef":` +
			`{"apiGroup":"rbac.authorization.k8s.io","kind":"` + kind + `","name":"` + of + `"},"subjects":[` + subject + `]}`,
	}
}

func user(name string) string {
	return `{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"` + name + `"}`
}

// grantAsks are Roles and bindings that weir-manager never writes, of rights that it has.
func grantAsks() []ask {
	const leases, keys = contract.NodeLeaseNamespace, contract.KeyNamespace
	forwarder, pool := contract.ForwarderRolePrefix+"sky-x", "weir-pool-sky-x"
	rule := func(group, resource, names, verbs string) string {
		if names != "" {
			names = `,"resourceNames":[` + names + `]`
		}
		return `{"apiGroups":["` + group + `"],"resources":["` + resource + `"],"verbs":[` + verbs + `]` + names + `}`
	}
	const beats = "coordination.k8s.io"
	return []ask{
		roleOf(leases, "mine", rule(beats, "leases", "", `"get","list","watch","update","patch"`)),
		roleOf(leases, forwarder, rule(beats, "leases", "", `"get","update","patch"`)),
		roleOf(leases, forwarder, rule(beats, "leases", `"sky-1"`, `"get","list","watch"`)),
		roleOf(leases, forwarder, rule("rbac.authorization.k8s.io", "roles", `"x"`, `"update"`)),
		binding(leases, "mine", "Role", "weir:manager", anyAccounts),
		binding(leases, forwarder, "Role", "weir:manager", user(contract.ForwarderUserPrefix+"sky-x:sky-1")),
		binding(leases, contract.ForwarderRolePrefix+"sky", "Role", contract.ForwarderRolePrefix+"sky", anyAccounts),
		binding(leases, contract.ForwarderRolePrefix+"sky", "Role", contract.ForwarderRolePrefix+"sky",
			user(contract.ForwarderUserPrefix+foreign+":"+foreign+"-1")),
		roleOf(keys, "mine", rule("", "secrets", "", `"get"`)),
		roleOf(keys, pool, rule("", "secrets", `"pool-sky"`, `"get"`)),
		roleOf(keys, pool, rule("", "configmaps", "", `"get","update"`)),
		roleOf(keys, pool, rule("", "configmaps", `"pool-sky-x"`, `"get","update"`)),
		binding(keys, "mine", "Role", "weir:manager", anyAccounts),
		binding(keys, pool, "Role", "weir:manager", user(contract.HubUserPrefix+"sky-x:sky-1")),
		binding(keys, pool, "Role", "weir-pool-sky", `{"kind":"ServiceAccount","namespace":"a","name":"reader"}`),
	}
}

// roleAsks are grants beyond a namespace.
func roleAsks() []ask {
	hubs := user(contract.HubUserPrefix + foreign + ":" + foreign + "-1")
	global := func(name, of, subject string) ask {
		q := binding("x", name, "ClusterRole", of, subject)
		q.path = rbacGlobal + "clusterrolebindings" + dryRun
		q.body = strings.Replace(q.body, `"RoleBinding"`, `"ClusterRoleBinding"`, 1)
		return q
	}
	scope := func(rules string) ask {
		return ask{
			as: "manager", method: http.MethodPost, path: rbacGlobal + "clusterroles" + dryRun, codes: deniedByPolicy,
			body: clusterRole(rules),
		}
	}
	return []ask{
		binding(contract.KeyNamespace, "weir-pool-sky-x", "ClusterRole", "cluster-admin", hubs),
		binding(contract.KeyNamespace, "weir-pool-sky-x", "ClusterRole", "weir:hub", hubs),
		scope(`{"apiGroups":[""],"resources":["secrets"],"verbs":["list","watch"]}`),
		scope(`{"apiGroups":["*"],"resources":["things"],"verbs":["list"]}`),
		scope(`{"apiGroups":["example.com"],"resources":["things"],"verbs":["list","create"]}`),
		global("weir:hub:sky-x", "weir:hub", hubs),
		global("weir:hub:sky-x", "weir:hub-topology", user(contract.HubUserPrefix+"sky-x:sky-1")),
		global("weir:hub:sky-x", "weir:hub", anyAccounts),
	}
}
