package offlinetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// crafted are pods of which kubectl has something else to say, each.
func crafted() map[string]*corev1.Pod {
	last := corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, FinishedAt: metav1.NewTime(time.Now().Add(-time.Hour)),
			StartedAt: metav1.NewTime(time.Now().Add(-2 * time.Hour)),
		},
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := func(code, signal int32, reason string) corev1.ContainerState {
		return corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Signal: signal, Reason: reason},
		}
	}
	waits := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	initialized := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	type s = corev1.ContainerStatus
	pod := func(phase corev1.PodPhase, conditions []corev1.PodCondition, inits, all []s) *corev1.Pod {
		return &corev1.Pod{
			Status: corev1.PodStatus{Phase: phase, Conditions: conditions, InitContainerStatuses: inits, ContainerStatuses: all},
		}
	}
	pods := map[string]*corev1.Pod{
		"new": pod(corev1.PodPending, nil, nil, nil),
		"runs": pod(corev1.PodRunning, []corev1.PodCondition{ready, initialized}, nil,
			[]s{{Ready: true, State: running, RestartCount: 3, LastTerminationState: last}}),
		"crashes": pod(corev1.PodRunning, nil, nil,
			[]s{{State: waits("CrashLoopBackOff"), RestartCount: 7, LastTerminationState: last}}),
		"done":   pod(corev1.PodSucceeded, nil, nil, []s{{State: ended(0, 0, "Completed")}}),
		"failed": pod(corev1.PodFailed, nil, nil, []s{{State: ended(3, 0, "")}}),
		"killed": pod(corev1.PodFailed, nil, nil, []s{{State: ended(137, 9, "")}}),
		"half": pod(corev1.PodRunning, []corev1.PodCondition{ready}, nil,
			[]s{{State: ended(0, 0, "Completed")}, {Ready: true, State: running}}),
		"half-not-ready": pod(corev1.PodRunning, nil, nil,
			[]s{{State: ended(0, 0, "Completed")}, {Ready: true, State: running}}),
		"half-failed": pod(corev1.PodRunning, nil, nil,
			[]s{{State: ended(0, 0, "Completed")}, {State: ended(2, 0, "Error")}}),
		"first": pod(corev1.PodPending, nil, []s{
			{State: ended(0, 0, "Completed")}, {State: running, RestartCount: 2, LastTerminationState: last},
		}, nil),
		"init-waits":  pod(corev1.PodPending, nil, []s{{State: waits("ImagePullBackOff")}}, nil),
		"init-begins": pod(corev1.PodPending, nil, []s{{State: waits("PodInitializing")}}, nil),
		"init-failed": pod(corev1.PodPending, nil, []s{{State: ended(1, 0, "Error"), RestartCount: 1}}, nil),
		"init-code":   pod(corev1.PodPending, nil, []s{{State: ended(4, 0, "")}}, nil),
		"init-signal": pod(corev1.PodPending, nil, []s{{State: ended(4, 15, "")}}, nil),
		"sidecar": pod(corev1.PodRunning, []corev1.PodCondition{ready, initialized},
			[]s{
				{Started: ptr.To(true), Ready: true, State: running, RestartCount: 5, LastTerminationState: last},
				{State: ended(0, 0, "Completed"), RestartCount: 2},
			}, []s{{Ready: true, State: running, RestartCount: 1}}),
		"sidecar-restarts": pod(corev1.PodRunning, []corev1.PodCondition{initialized},
			[]s{{State: waits("CrashLoopBackOff"), RestartCount: 4}}, []s{{Ready: true, State: running}}),
		"evicted": pod(corev1.PodFailed, nil, nil, nil),
		"gates": pod(corev1.PodRunning, []corev1.PodCondition{
			{Type: "example.com/a", Status: corev1.ConditionTrue},
		}, nil, nil),
		"ends": pod(corev1.PodRunning, nil, nil, []s{{Ready: true, State: running}}),
	}
	pods["evicted"].Status.Reason = "Evicted"
	pods["runs"].Status.PodIPs = []corev1.PodIP{{IP: "10.1.2.3"}}
	pods["runs"].Status.PodIP = "10.1.2.3"
	pods["gates"].Spec.ReadinessGates = []corev1.PodReadinessGate{
		{ConditionType: "example.com/a"}, {ConditionType: "example.com/b"},
	}
	for name, p := range pods {
		p.Name, p.Spec.NodeName, p.Spec.AutomountServiceAccountToken = name, edge, ptr.To(false)
		for i := range max(1, len(p.Status.ContainerStatuses)) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
				Name: fmt.Sprint("c", i), Image: "example.com/image:1",
			})
		}
		for i := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[i].Name = fmt.Sprint("c", i)
		}
		for i := range p.Status.InitContainerStatuses {
			c := corev1.Container{Name: fmt.Sprint("i", i), Image: "example.com/image:1"}
			if i == 0 && strings.HasPrefix(name, "sidecar") {
				c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
			p.Status.InitContainerStatuses[i].Name = c.Name
		}
	}
	return pods
}

// ages are what passes while one looks.
var ages = regexp.MustCompile(`\b\d+[smhdy](\d+[smhd])?\b`)

// table is what kubectl asks for to print, without ages.
func (b *bed) table(c *http.Client, path string) (t metav1.Table) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+path, http.NoBody)
	check(b.t, err)
	req.Header.Set("Accept",
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json")
	req.Header.Set("User-Agent", "kubectl/v1.37")
	resp, err := c.Do(req)
	check(b.t, err)
	defer resp.Body.Close()
	check(b.t, json.NewDecoder(resp.Body).Decode(&t))
	if resp.StatusCode != http.StatusOK || t.Kind != "Table" {
		b.t.Fatalf("GET %s: %s %s", path, resp.Status, t.Kind)
	}
	for i := range t.Rows {
		for j, cell := range t.Rows[i].Cells {
			if s, ok := cell.(string); ok {
				t.Rows[i].Cells[j] = ages.ReplaceAllString(s, "T")
			}
		}
		var object map[string]any
		check(b.t, json.Unmarshal(t.Rows[i].Object.Raw, &object))
		t.Rows[i].Object.Raw, err = json.Marshal(object)
		check(b.t, err)
	}
	return t
}

// TestTables: without the cloud a node's pods and nodes look as with it.
func TestTables(t *testing.T) {
	b := newBed(t, nil)
	b.fill(0, 0)
	core := b.admin.CoreV1()
	for name, p := range crafted() {
		created, err := core.Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
		check(t, err)
		created.Status = p.Status
		_, err = core.Pods("default").UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		check(t, err)
		if name == "ends" {
			check(t, core.Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
	}
	n, err := core.Nodes().Get(t.Context(), edge, metav1.GetOptions{})
	check(t, err)
	n.Labels["node-role.kubernetes.io/edge"], n.Labels["kubernetes.io/role"], n.Spec.Unschedulable = "", "far", true
	n, err = core.Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
	check(t, err)
	n.Status.NodeInfo = corev1.NodeSystemInfo{
		KernelVersion: "6.1", Architecture: "arm64", KubeletVersion: "v1.37.1", ContainerRuntimeVersion: "containerd://2",
	}
	_, err = core.Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
	check(t, err)

	b.nodeReads()
	a := b.startAgent("kubelet", runtime.ContentTypeProtobuf, 0)
	a.synced()
	client := b.httpClient()
	paths := []string{
		"/api/v1/pods?fieldSelector=spec.nodeName%3D" + edge, "/api/v1/namespaces/default/pods/sidecar",
		"/api/v1/nodes?fieldSelector=metadata.name%3D" + edge, "/api/v1/nodes/" + edge,
	}
	want := map[string]metav1.Table{}
	for _, path := range paths {
		want[path] = b.table(client, path)
	}
	if out, err := b.run("get", "nodes"); err != nil { // it reads what there is
		t.Fatalf("kubectl: %v: %s", err, out)
	}
	b.kept(2)
	b.cut()
	b.restart()
	for _, path := range paths {
		got, want := b.table(client, path), want[path]
		got.ResourceVersion, want.ResourceVersion = "", "" // of a collection it is the kubelet's
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("GET %s (-with the cloud +without):\n%s", path, diff)
		}
	}
	out, err := b.run("get", "pods", "-A", "-o", "wide", "--field-selector=spec.nodeName="+edge)
	if err != nil || !strings.Contains(out, "CrashLoopBackOff") || !strings.Contains(out, "READINESS GATES") {
		t.Errorf("kubectl says %v:\n%s", err, out)
	}
	t.Logf("kubectl says:\n%s", out)
}
