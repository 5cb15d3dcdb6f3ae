package operatortest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodejob"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
)

// window writes the hours of pool harbour, and returns what kube-apiserver says.
func (d *desk) window(text string) error {
	return d.cloud.Client().CoreV1().RESTClient().Patch(types.MergePatchType).
		AbsPath("/apis/weir.dev/v1alpha1/pools/harbour").
		Body([]byte(`{"spec":{"images":{"window":[` + text + `]}}}`)).Do(d.t.Context()).Error()
}

// pulls are the Jobs that bring images to pool harbour.
func (d *desk) pulls() []batchv1.Job {
	d.t.Helper()
	all, err := d.cloud.Client().BatchV1().Jobs(contract.ManagerNamespace).List(d.t.Context(),
		metav1.ListOptions{LabelSelector: contract.NameLabel + "=" + contract.PreloadName})
	must(d.t, err)
	return all.Items
}

// running is how many of them run.
func (d *desk) running() (n int) {
	for _, j := range d.pulls() {
		if !nodejob.Waits(&j) {
			n++
		}
	}
	return n
}

// ends says of the Jobs that run what the Job controller, which does not run here, says at the end.
func (d *desk) ends(well bool) {
	d.t.Helper()
	now := metav1.Now()
	for _, j := range d.pulls() {
		if nodejob.Waits(&j) || len(j.Status.Conditions) > 0 {
			continue
		}
		say := func(kinds ...batchv1.JobConditionType) {
			for _, kind := range kinds {
				j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
					Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, Reason: "Test", Message: "no such tag",
				})
			}
		}
		j.Status.StartTime, j.Status.UncountedTerminatedPods = &now, &batchv1.UncountedTerminatedPods{}
		if well {
			j.Status.CompletionTime, j.Status.Succeeded = &now, 1
			say(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
		} else {
			j.Status.Failed = 1
			say(batchv1.JobFailureTarget, batchv1.JobFailed)
		}
		_, err := d.cloud.Client().BatchV1().Jobs(j.Namespace).UpdateStatus(d.t.Context(), &j, metav1.UpdateOptions{})
		must(d.t, err)
	}
}

// TestImages: who has what, and images that come ahead of a roll-out: in the hours of the pool, one after the other.
func TestImages(t *testing.T) {
	c, _ := cloudtest.Start(t)
	kubeconfig, err := c.Kubeconfig("admin", "system:masters")
	must(t, err)
	d := &desk{t, c, kubeconfig}
	d.apply(manifests.NodePools(), manifests.Pools(), manifests.Policies(), manifests.RBAC(), manifests.Hubs())
	const image = "registry.example/app:2"
	if out, code := d.types("pool create harbour --leader-hubs=1"); code != 0 {
		t.Fatal(out)
	}
	if out, code := d.types("images pull --pool=harbour " + image); code != 1 || !strings.Contains(out, "has no node") {
		t.Errorf("a pool without nodes: exit code %d:\n%s", code, out)
	}
	d.node("edge-1", "10.0.0.1", 0)
	d.node("edge-2", "10.0.0.2", 0)
	for _, name := range []string{"edge-1", "edge-2"} {
		d.has(name, "registry.example/app:1")
	}
	d.has("edge-2", "registry.example/app:1", image)
	if out, code := d.types("images pull --pool=harbour " + image); code != 1 || !strings.Contains(out, "weir-manager") {
		t.Errorf("nobody lets it begin: exit code %d:\n%s", code, out)
	}
	if out, code := d.types("images list --pool=nowhere"); code != 2 || !strings.Contains(out, "harbour") {
		t.Errorf("no such pool: exit code %d:\n%s", code, out)
	}
	d.prints("images list --pool=harbour -o wide", "images.golden", 0)
	d.hours()
	d.manage()
	testkit.Until(t, time.Minute, "weir-manager to lead", func() bool {
		l, err := c.Client().CoordinationV1().Leases(contract.ManagerNamespace).Get(t.Context(), "weir-manager",
			metav1.GetOptions{})
		return err == nil && l.Spec.HolderIdentity != nil
	})

	at := func(after time.Duration) string { return time.Now().UTC().Add(after).Format("15:04") }
	must(t, d.window(`{"start":"`+at(2*time.Hour)+`","end":"`+at(4*time.Hour)+`"}`))
	if out, code := d.types("images pull --pool=harbour --nodes=all --wait=false " + image); code != 0 ||
		!strings.Contains(out, image+" on edge-2: Job kube-system/weir-preload-") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if n := len(d.pulls()); n != 2 || d.running() != 0 {
		t.Errorf("%d Jobs, of which %d run", n, d.running())
	}
	must(t, d.window(`{"start":"`+at(-2*time.Hour)+`","end":"`+at(2*time.Hour)+`"}`))
	testkit.Until(t, time.Minute, "one Job to run when the hours begin", func() bool { return d.running() == 1 })
	must(t, d.window(`{"start":"`+at(2*time.Hour)+`","end":"`+at(4*time.Hour)+`"}`))
	testkit.Until(t, time.Minute, "none to run when they end", func() bool { return d.running() == 0 })
	must(t, d.window(""))
	testkit.Until(t, time.Minute, "one to run where all hours count", func() bool { return d.running() == 1 })
	d.ends(true)
	testkit.Until(t, time.Minute, "the second to follow", func() bool { return d.running() == 2 })
	d.ends(true)
	d.cannot()

	done := make(chan string)
	go func() {
		out, code := d.types("images pull --pool=harbour " + image)
		done <- out + map[bool]string{true: "exit code 1", false: "another exit code"}[code == 1]
	}()
	testkit.Until(t, time.Minute, "a third to run", func() bool { return d.running() == 3 })
	d.ends(false)
	if out := <-done; !strings.Contains(out, image+" on edge-1: failed: no such tag") ||
		!strings.Contains(out, "1 of 1 pulls failed") || !strings.HasSuffix(out, "exit code 1") {
		t.Errorf("a pull that fails prints\n%s", out)
	}
}

// has says what the kubelet of a node says of its images.
func (d *desk) has(node string, images ...string) {
	d.t.Helper()
	all := []corev1.ContainerImage{}
	for _, i := range images {
		all = append(all, corev1.ContainerImage{Names: []string{i}, SizeBytes: 52_000_000})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"images": all, "conditions": []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
	}}})
	must(d.t, err)
	_, err = d.cloud.Client().CoreV1().Nodes().Patch(d.t.Context(), node, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	must(d.t, err)
}

// hours holds which hours kube-apiserver takes.
func (d *desk) hours() {
	d.t.Helper()
	for text, want := range map[string]string{
		`{"start":"22:00","end":"05:00","timeZone":"Europe/Berlin"}`:    "",
		`{"start":"22:00","end":"05:00"}`:                               "",
		`{"start":"24:00","end":"05:00"}`:                               "spec.images.window[0].start",
		`{"start":"22:00","end":"5:00"}`:                                "spec.images.window[0].end",
		`{"start":"22:00","end":"22:00"}`:                               "two times",
		`{"start":"22:00"}`:                                             "spec.images.window[0].end",
		`{"start":"22:00","end":"05:00","timeZone":"Europe/Atlantis"}`:  "spec.images.window[0].timeZone",
		`{"start":"22:00","end":"05:00","timeZone":"Local"}`:            "a time zone, as in Europe/Berlin",
		`{"start":"22:00","end":"05:00","timeZone":"../etc/localtime"}`: "spec.images.window[0].timeZone",
	} {
		if err := d.window(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			d.t.Errorf("window %s: %v, want %q", text, err, want)
		} else if err != nil {
			d.t.Log(err)
		}
	}
}

// cannot holds that weir-manager can do nothing else with these Jobs, whatever its token is used for.
func (d *desk) cannot() {
	d.t.Helper()
	m := d.as("system:serviceaccount:kube-system:weir-manager", "system:serviceaccounts",
		"system:serviceaccounts:kube-system", "system:authenticated").BatchV1().Jobs(contract.ManagerNamespace)
	j := nodejob.Preload{Pool: "harbour", Node: "nowhere", Image: "registry.example/app:3", Deadline: time.Hour}.Job()
	j, err := d.cloud.Client().BatchV1().Jobs(j.Namespace).Create(d.t.Context(), j, metav1.CreateOptions{})
	must(d.t, err)
	name := j.Name
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	for patch, may := range map[string]bool{
		`{"spec":{"suspend":false}}`:                                                       true,
		`{"spec":{"parallelism":5}}`:                                                       false,
		`{"spec":{"suspend":true,"parallelism":5}}`:                                        false,
		`{"spec":{"ttlSecondsAfterFinished":null}}`:                                        false,
		`{"metadata":{"labels":{"x":"y"}}}`:                                                false,
		`{"metadata":{"labels":{"app.kubernetes.io/name":"x"}}}`:                           false,
		`{"metadata":{"annotations":{"weir.dev/preload-now":"true"}}}`:                     false,
		`{"metadata":{"finalizers":["weir.dev/x"]}}`:                                       false,
		`{"spec":{"template":{"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}}}}`: false,
	} {
		_, err := m.Patch(d.t.Context(), name, types.MergePatchType, []byte(patch), dry)
		if may != (err == nil) || !may && !strings.Contains(err.Error(), "weir-manager-preload") {
			d.t.Errorf("%s: %v", patch, err)
		}
	}
	if err := m.Delete(d.t.Context(), name, metav1.DeleteOptions{DryRun: dry.DryRun}); err == nil {
		d.t.Error("weir-manager deletes a Job of a person")
	}
}
