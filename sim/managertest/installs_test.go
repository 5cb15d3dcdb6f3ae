package managertest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/impl/pool"
)

// installOf is the Job of a node; nil: it has none.
func (w poolWorld) installOf(node string) *batchv1.Job {
	w.t.Helper()
	all, err := w.client.BatchV1().Jobs(contract.ManagerNamespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range all.Items {
		if all.Items[i].Annotations[contract.InstallNode] == node {
			return &all.Items[i]
		}
	}
	return nil
}

// ends says of the Job of a node what the Job controller, which does not run here, says at the end.
func (w poolWorld) ends(node string, well bool) {
	w.t.Helper()
	j, now := w.installOf(node), metav1.Now()
	condition := func(kind batchv1.JobConditionType) batchv1.JobCondition {
		return batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, Reason: "Test", Message: "exit code 1",
		}
	}
	j.Status.StartTime = &now
	j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	if well {
		j.Status.CompletionTime, j.Status.Succeeded = &now, 1
		j.Status.Conditions = []batchv1.JobCondition{condition(batchv1.JobSuccessCriteriaMet), condition(batchv1.JobComplete)}
	} else {
		j.Status.Failed = 1
		j.Status.Conditions = []batchv1.JobCondition{condition(batchv1.JobFailureTarget), condition(batchv1.JobFailed)}
	}
	if _, err := w.client.BatchV1().Jobs(j.Namespace).UpdateStatus(w.t.Context(), j, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// testInstalls: a Job on one node of a pool after the other leads it to its hub, and one back when its label goes. A
// failure is told, and what is documented lets it begin again. The token of weir-manager can run nothing else in a Job.
func testInstalls(t *testing.T, w0 *world) {
	w := poolWorld{w0, t, w0.typed(t)}
	ctx := t.Context()
	for name, address := range map[string]string{"pier-1": "10.4.0.1", "pier-2": "10.4.0.2"} {
		w.nodeAt(t, "pier", name, address)
		w.speak(false, name)
	}
	own, of := &pool.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: "pier"},
	}, &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pier"}}
	for _, o := range []client.Object{own, of} {
		if err := w.typed.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	w.list(t, contract.InstallerImages, `{"`+contract.InstallerImagesKey+`":"weir-installer:1\n","`+
		contract.PullSecretsKey+`":"mirror\nspare\n"}`)
	w.eventually(t, "a Job begins on the first node", func() bool { return w.installOf("pier-1") != nil })
	if w.installOf("pier-2") != nil {
		t.Error("two nodes of a pool are at work at a time")
	}
	if got := w.installOf("pier-1").Spec.Template.Spec.ImagePullSecrets; !slices.Equal(got,
		[]corev1.LocalObjectReference{{Name: "mirror"}, {Name: "spare"}}) {
		t.Errorf("it is pulled by Secrets %v", got)
	}
	w.refusesBadJobs(w.installOf("pier-1"))
	says := func(reason, message string) func() bool {
		return func() bool {
			c := meta.FindStatusCondition(w.own("pier").Status.Conditions, pool.NodesInstalled)
			return c != nil && c.Reason == reason && strings.Contains(c.Message, message)
		}
	}
	w.eventually(t, "the Pool says so", says("Installing", "0 of 2 have joined; at work on node pier-1"))
	w.ends("pier-1", true)
	w.eventually(t, "then one on the second", func() bool { return w.installOf("pier-2") != nil })
	w.ends("pier-2", false)
	w.eventually(t, "the Pool says that it failed",
		says("InstallFailed", "node pier-2: exit code 1; mend the cause, then kubectl -n kube-system delete jobs"))
	failed := w.installOf("pier-2")
	selector := metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=weir-installer,apps.openyurt.io/nodepool=pier",
		FieldSelector: "status.successful=0",
	}
	if err := w.client.BatchV1().Jobs(contract.ManagerNamespace).DeleteCollection(ctx,
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}, selector); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "it begins anew when the Job was deleted",
		func() bool { j := w.installOf("pier-2"); return j != nil && j.UID != failed.UID })
	if w.installOf("pier-1") == nil {
		t.Error("the one that ended well is deleted, too")
	}
	w.ends("pier-2", true)
	w.eventually(t, "all have joined", says("Joined", "2 of 2 have joined"))
	patch := []byte(`{"metadata":{"labels":{"` + contract.NodePoolLabel + `":null}}}`)
	if _, err := w.client.CoreV1().Nodes().Patch(ctx, "pier-1", types.MergePatchType, patch, metav1.PatchOptions{}); err !=
		nil {
		t.Fatal(err)
	}
	w.eventually(t, "a node whose label goes leaves", func() bool {
		j := w.installOf("pier-1")
		return j != nil && j.Annotations[contract.InstallPool] == "" &&
			j.Spec.Template.Spec.Containers[0].Args[2] == "--pool="
	})
	w.ends("pier-1", true)
	w.eventually(t, "and nothing is left of it", func() bool { return w.installOf("pier-1") == nil })

	w.list(t, contract.InstallerImages, `{"`+contract.InstallerImagesKey+`":"","`+contract.PullSecretsKey+`":""}`)
	w.hush("pier-1", "pier-2")
	for _, o := range []client.Object{own, of} {
		if err := w.typed.Delete(ctx, o); err != nil {
			t.Error(err)
		}
	}
}

// refusesBadJobs tries with the rights of weir-manager what is like a good Job but for one thing.
func (w poolWorld) refusesBadJobs(good *batchv1.Job) {
	t := w.t
	m, dry := w.as(managerUser, accounts...), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for what, do := range map[string]func(*batchv1.Job, *corev1.PodSpec){
		"": func(*batchv1.Job, *corev1.PodSpec) {},
		"fine: it stands aside": func(j *batchv1.Job, _ *corev1.PodSpec) {
			j.Spec.Suspend = ptr.To(true)
			j.Annotations[contract.InstallStalled], j.Annotations[contract.InstallTries] = "no progress", "1"
		},
		"fine: it is pulled without a Secret": func(_ *batchv1.Job, p *corev1.PodSpec) { p.ImagePullSecrets = nil },
		"a Secret more": func(_ *batchv1.Job, p *corev1.PodSpec) {
			p.ImagePullSecrets = append(p.ImagePullSecrets, corev1.LocalObjectReference{Name: "bootstrap-token-abcdef"})
		},
		"a Secret without a name": func(_ *batchv1.Job, p *corev1.PodSpec) {
			p.ImagePullSecrets = []corev1.LocalObjectReference{{}}
		},
		"an annotation more":  func(j *batchv1.Job, _ *corev1.PodSpec) { j.Annotations["weir.dev/x"] = "x" },
		"another image":       func(_ *batchv1.Job, p *corev1.PodSpec) { p.Containers[0].Image = "evil" },
		"another name":        func(j *batchv1.Job, _ *corev1.PodSpec) { j.Name = "x" },
		"another label":       func(j *batchv1.Job, _ *corev1.PodSpec) { j.Labels["app.kubernetes.io/name"] = "x" },
		"a label more":        func(j *batchv1.Job, _ *corev1.PodSpec) { j.Labels["k8s-app"] = "kube-dns" },
		"a label of its Pods": func(j *batchv1.Job, _ *corev1.PodSpec) { j.Spec.Template.Labels["k8s-app"] = "kube-dns" },
		"another node":        func(j *batchv1.Job, _ *corev1.PodSpec) { j.Annotations[contract.InstallNode] = "x" },
		"the disk": func(_ *batchv1.Job, p *corev1.PodSpec) {
			p.Volumes = []corev1.Volume{
				{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
			}
		},
		"another command": func(_ *batchv1.Job, p *corev1.PodSpec) { p.Containers[0].Command = []string{"sh"} },
		"other arguments": func(_ *batchv1.Job, p *corev1.PodSpec) { p.Containers[0].Args[1] = "leave" },
		"more arguments": func(_ *batchv1.Job, p *corev1.PodSpec) {
			p.Containers[0].Args = append(p.Containers[0].Args, "--host-root=/x")
		},
		"its environment": func(_ *batchv1.Job, p *corev1.PodSpec) {
			p.Containers[0].Env = []corev1.EnvVar{{Name: "PATH", Value: "/x"}}
		},
		"a second one": func(_ *batchv1.Job, p *corev1.PodSpec) {
			p.Containers = append(p.Containers, corev1.Container{
				Name: "b", Image: "evil", TerminationMessagePolicy: "File", ImagePullPolicy: "Always",
			})
		},
		"one before": func(_ *batchv1.Job, p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{{Name: "b", Image: "evil"}}
		},
		"no node": func(_ *batchv1.Job, p *corev1.PodSpec) { p.NodeName = "" },
		"a token": func(_ *batchv1.Job, p *corev1.PodSpec) { p.AutomountServiceAccountToken = nil },
		"a hook at its end": func(_ *batchv1.Job, p *corev1.PodSpec) {
			p.Containers[0].Lifecycle = &corev1.Lifecycle{
				PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}},
			}
		},
	} {
		j := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Name: "weir-installer-x", Labels: map[string]string{}, Annotations: maps.Clone(good.Annotations),
			}, Spec: *good.Spec.DeepCopy(),
		}
		maps.Copy(j.Labels, good.Labels)
		j.Spec.Selector, j.Spec.Template.Labels = nil, maps.Clone(good.Labels)
		do(j, &j.Spec.Template.Spec)
		_, err := m.BatchV1().Jobs(contract.ManagerNamespace).Create(t.Context(), j, dry)
		fine := what == "" || strings.HasPrefix(what, "fine: ")
		if fine && err != nil ||
			!fine && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "weir-manager-installer")) {
			t.Errorf("a Job with %q: %v", what, err)
		}
	}
}
