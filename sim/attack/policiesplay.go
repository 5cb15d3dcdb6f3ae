package attack

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/sim/runtime"
)

// agents are accounts with the grants of what commonly runs on nodes, and one that may assign nodes to pools.
func agents(ctx context.Context, x *scene) error {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	for name, rules := range map[string][]rbacv1.PolicyRule{
		// flannel, calico.
		"cni": {
			rule("", "nodes", "get", "list", "watch"), rule("", "nodes/status", "patch", "update"),
			rule("", "pods/status", "patch"),
		},
		// aws-ebs-csi-node, cilium-operator.
		"csi":      {rule("", "nodes", "get", "patch"), rule("", "nodes/status", "patch")},
		"assigner": {rule("", "nodes", "get", "patch"), rule("apps.openyurt.io", "nodepools", "assign")},
	} {
		token, err := x.account(ctx, name)
		if err != nil {
			return err
		}
		x.let(name, actor{token: token})
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "attack:" + name}, Rules: rules}
		b := &rbacv1.ClusterRoleBinding{
			ObjectMeta: r.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "a", Name: name}},
		}
		_, first := x.admin.RbacV1().ClusterRoles().Create(ctx, r, metav1.CreateOptions{})
		_, second := x.admin.RbacV1().ClusterRoleBindings().Create(ctx, b, metav1.CreateOptions{})
		for _, err := range []error{first, second} {
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		if err := until(ctx, "the grant of "+name, func() bool {
			return x.send(ctx, ask{as: name, at: cloudDoor, path: "/api/v1/nodes/{node}"}).code == http.StatusOK
		}); err != nil {
			return err
		}
	}
	return nil
}

// placing tries to write what says where nodes belong, at the subresources of two Nodes, by every kind of patch.
func placing(as string, subresources ...string) func(context.Context, *scene) error {
	type entry struct{ of, key, value string }
	entries := []entry{
		{"labels", contract.NodePoolLabel, foreign}, {"labels", contract.LeaderLabel, "true"},
		{"labels", contract.CoordinatorLabel, "x"},
		{"annotations", contract.BindingAnnotation, "true"}, {"annotations", contract.AutonomyAnnotation, "true"},
		{"annotations", contract.AutonomyDurationAnnotation, "0"}, {"annotations", contract.PoolAttributes, "label a=b"},
		{"annotations", contract.PoolDescribed, foreign},
	}
	return func(ctx context.Context, x *scene) error {
		nodes := x.admin.CoreV1().Nodes()
		for _, node := range []string{x.node(1), x.node(2)} {
			before, err := nodes.Get(ctx, node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, e := range entries {
				for _, subresource := range subresources {
					bodies := map[string][]string{
						mergePatch:     {fmt.Sprintf(`{"metadata":{%q:{%q:%q}}}`, e.of, e.key, e.value)},
						strategicPatch: {fmt.Sprintf(`{"metadata":{%q:{%q:%q}}}`, e.of, e.key, e.value)},
						applyPatch: {
							fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,%q:{%q:%q}}}`, node, e.of, e.key, e.value),
						},
						jsonPatch: {fmt.Sprintf(`[{"op":"add","path":"/metadata/%s","value":{%q:%q}}]`, e.of, e.key, e.value)},
					}
					if e.key == contract.NodePoolLabel {
						bodies[mergePatch] = append(bodies[mergePatch], fmt.Sprintf(`{"metadata":{%q:{%q:null}}}`, e.of, e.key),
							`{"metadata":{"labels":null}}`)
					}
					for _, kind := range slices.Sorted(maps.Keys(bodies)) {
						for _, body := range bodies[kind] {
							q := ask{
								as: as, at: cloudDoor, method: http.MethodPatch, path: "/api/v1/nodes/" + node + subresource,
								header: []string{kind}, body: body,
							}
							if kind == applyPatch {
								q.path += "?fieldManager=x&force=true"
							}
							a := x.insist(ctx, q)
							after, err := nodes.Get(ctx, node, metav1.GetOptions{})
							if err != nil {
								return err
							}
							same := before.Labels[e.key] == after.Labels[e.key] && before.Annotations[e.key] == after.Annotations[e.key]
							x.judge(same && a.code != http.StatusOK || kind == applyPatch && same, "%s, %s: %s", q, e.key, a)
							if same {
								continue
							}
							after.Labels, after.Annotations = before.Labels, before.Annotations // so that the next one shows something
							if _, err := nodes.Update(ctx, after, metav1.UpdateOptions{}); err != nil {
								return err
							}
						}
					}
				}
			}
		}
		return nil
	}
}

// setImages writes both lists of images, as anyone who administers the cluster does.
func setImages(ctx context.Context, x *scene) error {
	maps := x.admin.CoreV1().ConfigMaps(contract.ManagerNamespace)
	for _, name := range []string{contract.CoordinatorImages, contract.InstallerImages} {
		m := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": "weir"}},
			Data:       map[string]string{"images": rightImage + "\n"},
		}
		_, err := maps.Update(ctx, m, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = maps.Create(ctx, m, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
	}
	var pod, job answer
	if err := until(ctx, "the images to count", func() bool {
		pod, job = x.send(ctx, goodPod()), x.send(ctx, goodJob())
		return pod.code == http.StatusCreated && job.code == http.StatusCreated
	}); err != nil {
		return fmt.Errorf("%w: Pod: %s %.300s; Job: %s %.300s", err, pod, pod.body, job, job.body)
	}
	return nil
}

func allowedImages(ctx context.Context, x *scene) error {
	// which a controller makes that may not run here.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := x.admin.CoreV1().ServiceAccounts(contract.ManagerNamespace).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := managerToken(ctx, x); err != nil {
		return err
	}
	return setImages(ctx, x)
}

// withoutImages deletes the lists of images, and tries others.
func withoutImages(ctx context.Context, x *scene) error {
	images := x.admin.CoreV1().ConfigMaps(contract.ManagerNamespace)
	failed := errors.Join(
		images.Delete(ctx, contract.CoordinatorImages, metav1.DeleteOptions{}),
		images.Delete(ctx, contract.InstallerImages, metav1.DeleteOptions{}),
	)
	evil := func(p *corev1.PodSpec) { p.Containers[0].Image = "example.com/evil:1" }
	bad := []ask{
		post("manager", systemPods, coordinatorPod(func(p *corev1.Pod) { evil(&p.Spec) })),
		post("manager", systemPods, coordinatorPod(func(p *corev1.Pod) {
			evil(&p.Spec)
			p.Spec.HostPID, p.Spec.Volumes[0].HostPath.Path, p.Name = true, "/", "evil"
		})),
		post("manager", systemJobs, installerJob(func(_ *batchv1.Job, p *corev1.PodSpec) { evil(p) })),
		post("manager", systemJobs, installerJob(func(j *batchv1.Job, p *corev1.PodSpec) {
			evil(p)
			p.Containers[0].Command, j.Name = []string{"sh"}, "evil"
		})),
	}
	// The server hears of the deletion a moment later.
	closed := within(ctx, patience/3, func() bool {
		return x.send(ctx, goodPod()).code != http.StatusCreated && x.send(ctx, goodJob()).code != http.StatusCreated
	})
	x.judge(closed, "without the lists the right Pod and Job are refused, too")
	for _, q := range bad {
		x.try(ctx, q)
	}
	foreigner := coordinatorPod(func(p *corev1.Pod) {
		p.Name, p.Labels = "somebody", map[string]string{"app": "somebody"}
	})
	_, err := x.admin.CoreV1().Pods("kube-system").Create(ctx, foreigner,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	x.control(err == nil, "somebody else's Pod without the lists: %v", err)
	return errors.Join(failed, setImages(ctx, x))
}

// rewritesGrants shows that weir-manager may write the Roles and bindings that are there.
func rewritesGrants(ctx context.Context, x *scene) error {
	for namespace, name := range map[string]string{
		contract.NodeLeaseNamespace: contract.ForwarderRolePrefix + x.place.name, contract.KeyNamespace: "weir-pool-" +
			x.place.name,
	} {
		for _, resource := range []string{"roles", "rolebindings"} {
			path := rbacIn + namespace + "/" + resource + "/" + name
			var text []byte
			if err := until(ctx, path, func() (there bool) {
				raw, err := x.admin.RbacV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
				text = raw
				return err == nil
			}); err != nil {
				return err
			}
			x.check(ctx, ask{
				as: "manager", at: cloudDoor, method: http.MethodPut, path: path + dryRun, body: string(text), codes: ok,
			})
		}
	}
	return nil
}

// forwardsUnlabelled asks for the certificate of a forwarder as a node that may not lead.
func forwardsUnlabelled(ctx context.Context, x *scene) error {
	label := func(value string) error {
		patch := []byte(`{"metadata":{"labels":{"` + contract.LeaderLabel + `":` + value + `}}}`)
		_, err := x.admin.CoreV1().Nodes().Patch(ctx, x.node(1), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	err := errors.Join(x.asksToForward(ctx, true, "kubelet 2", x.node(2)), label(`"true"`))
	subjects := func() (names []string) {
		b, err := x.admin.RbacV1().RoleBindings(contract.NodeLeaseNamespace).Get(ctx,
			contract.ForwarderRolePrefix+x.place.name, metav1.GetOptions{})
		if err == nil {
			for _, s := range b.Subjects {
				names = append(names, s.Name)
			}
		}
		return names
	}
	bound := within(ctx, patience/3, func() bool {
		return slices.Equal(subjects(), []string{contract.ForwarderUserPrefix + x.place.name + ":" + x.node(1)})
	})
	x.judge(bound, "rights on Leases are bound to %s", strings.Join(subjects(), ", "))
	// weir-manager has seen the label: what it judged before would be judged by the pool without one.
	return errors.Join(err, x.asksToForward(ctx, false, "kubelet 2", x.node(2)),
		x.asksToForward(ctx, true, "kubelet", x.node(1)), label("null"))
}

// asksToForward asks for the certificate of a forwarder as a node, and judges what comes of it.
func (x *scene) asksToForward(ctx context.Context, may bool, as, node string) error {
	key, err := weirpki.NewKey()
	if err != nil {
		return err
	}
	text, err := weirpki.Must(weirpki.Forwarder).Request(weirpki.Subject{Pool: x.place.name, Node: node}, key)
	if err != nil {
		return err
	}
	made, err := x.request(ctx, as, text, anHour, forClients()...)
	if err != nil {
		return err
	}
	defer x.forget(ctx, made)
	requests := x.admin.CertificatesV1().CertificateSigningRequests()
	if err := until(ctx, "weir-manager to judge a request", func() bool {
		is, err := requests.Get(ctx, made.Name, metav1.GetOptions{})
		if err == nil {
			made = is
		}
		return len(made.Status.Conditions) > 0
	}); err != nil {
		return err
	}
	is := made.Status.Conditions[0]
	if may {
		x.control(is.Type == certificatesv1.CertificateApproved, "%s asks to forward: %s %s", node, is.Type,
			brief(is.Message))
		return nil
	}
	refused := is.Type == certificatesv1.CertificateDenied && strings.Contains(is.Message, contract.LeaderLabel)
	x.judge(refused, "%s asks to forward, beside a node that has the label: %s %s", node, is.Type, brief(is.Message))
	return nil
}

// anHour is the life of a certificate, in seconds.
const anHour = 60 * 60

func forClients() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
}

// request makes a request for a certificate, at kube-apiserver's signer, as somebody, which weir-manager judges. The
// caller that made it forgets it, or the testbed's signer is asked for it all the time.
func (x *scene) request(
	ctx context.Context, as string, text []byte, seconds int32, usages ...certificatesv1.KeyUsage,
) (*certificatesv1.CertificateSigningRequest, error) {
	r := &certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "attack-", Labels: map[string]string{runtime.ManagersLabel: "true"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: text, SignerName: contract.CloudSigner, ExpirationSeconds: &seconds, Usages: usages,
		},
	}
	a := x.insist(ctx, post(as, requestsPath, r))
	if a.code != http.StatusCreated {
		return nil, fmt.Errorf("ask for a certificate as %s: %s %.200s", as, a, a.body)
	}
	return r, json.Unmarshal([]byte(a.body), r)
}

func (x *scene) forget(ctx context.Context, r *certificatesv1.CertificateSigningRequest) {
	_ = x.admin.CertificatesV1().CertificateSigningRequests().Delete(context.WithoutCancel(ctx), r.Name,
		metav1.DeleteOptions{})
}

// requestFor is a request of a common name, for a fresh key.
func requestFor(name string) ([]byte, error) {
	key, err := weirpki.NewKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}},
		key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}

// approvesOthers approves requests with weir-manager's token that weir-manager never would.
func approvesOthers(ctx context.Context, x *scene) error {
	token, err := x.account(ctx, "asker")
	if err != nil {
		return err
	}
	x.let("asker", actor{token: token})
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "attack:asker"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weir:joins"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "a", Name: "asker"}},
	}
	if _, err := x.admin.RbacV1().ClusterRoleBindings().Create(ctx, b, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := until(ctx, "the grant of asker", func() bool {
		return x.send(ctx, ask{as: "asker", at: cloudDoor, path: requestsPath + "/x"}).code == http.StatusNotFound
	}); err != nil {
		return err
	}
	const year = 366 * 24 * anHour
	serves := append(forClients(), certificatesv1.UsageServerAuth)
	// None has a name of Weir's, or weir-manager itself would judge it first.
	for _, c := range []struct {
		what, as, name string
		seconds        int32
		usages         []certificatesv1.KeyUsage
		may            bool
	}{
		{"an account's, as the controller manager", "asker", "system:kube-controller-manager", anHour, forClients(), false},
		{"a node's, for a year", "kubelet", "x", year, forClients(), false},
		{"a node's, to serve", "kubelet", "x", anHour, serves, false},
		{"a node's, for an hour", "kubelet", "x", anHour, forClients(), true},
	} {
		text, err := requestFor(c.name)
		if err != nil {
			return err
		}
		made, err := x.request(ctx, c.as, text, c.seconds, c.usages...)
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		defer x.forget(ctx, made)
		made.Status.Conditions = append(made.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "WeirApproved",
			Message: "for node " + x.node(1),
		})
		body, err := json.Marshal(made)
		if err != nil {
			return err
		}
		q := ask{
			as: "manager", at: cloudDoor, method: http.MethodPut, path: requestsPath + "/" + made.Name + "/approval",
			body: string(body),
		}
		switch a := x.insist(ctx, q); {
		case c.may: // what remains: no policy can read the name that is asked for
			x.control(a.code == http.StatusOK, "%s: %s", c.what, a)
		default:
			x.judge(a.code == http.StatusForbidden, "%s: %s", c.what, a)
		}
	}
	return nil
}
