package offlinetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	nodeutil "k8s.io/component-helpers/node/util"
)

// history is all that the cloud has shown of pods and nodes, by version.
type history struct {
	t  *testing.T
	mu sync.Mutex
	of map[string]runtime.Object
}

// remember keeps the history from now on.
func (b *bed) remember(t *testing.T) *history {
	h := &history{t: t, of: map[string]runtime.Object{}}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	for _, begin := range []func(context.Context, metav1.ListOptions) (watch.Interface, error){
		b.admin.CoreV1().Pods("").Watch, b.admin.CoreV1().Nodes().Watch,
	} {
		w, err := begin(t.Context(), metav1.ListOptions{})
		check(t, err)
		t.Cleanup(w.Stop)
		running.Go(func() {
			for ev := range w.ResultChan() {
				if o, err := meta.Accessor(ev.Object); err == nil {
					h.mu.Lock()
					h.of[o.GetResourceVersion()] = ev.Object
					h.mu.Unlock()
				}
			}
		})
	}
	return h
}

// has waits until the cloud has shown the version of an answer, and compares.
func (h *history) has(got runtime.Object) {
	h.t.Helper()
	o, err := meta.Accessor(got)
	check(h.t, err)
	var want runtime.Object
	eventually(h.t, "the cloud to show "+o.GetName()+" at "+o.GetResourceVersion(), func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		want = h.of[o.GetResourceVersion()]
		return want != nil
	})
	if !equality.Semantic.DeepEqual(untyped(want), untyped(got)) {
		h.t.Errorf("the answer is\n%v\nthe cloud shows\n%v", got, want)
	}
}

// writer is as much of a kubelet as writes.
type writer struct {
	*bed
	*agent
	t      *testing.T
	client kubernetes.Interface
}

// shows waits until the kubelet's watch has shown a pod or node at a version or a later one.
func (w *writer) shows(informer string, o metav1.Object) {
	w.t.Helper()
	key := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
	eventually(w.t, "the watch to show "+key, func() bool {
		got, ok, _ := w.informers[informer].GetStore().GetByKey(key)
		return ok && len(got.(metav1.Object).GetResourceVersion()) >= len(o.GetResourceVersion()) &&
			got.(metav1.Object).GetResourceVersion() >= o.GetResourceVersion()
	})
}

const (
	itsPods = "pods spec.nodeName=" + edge
	itsNode = "nodes metadata.name=" + edge
)

// patchOf is what the status manager of a kubelet sends.
func patchOf(t *testing.T, pod *corev1.Pod, is corev1.PodStatus) []byte {
	t.Helper()
	was, err := json.Marshal(corev1.Pod{Status: pod.Status})
	check(t, err)
	becomes, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: is})
	check(t, err)
	patch, err := strategicpatch.CreateTwoWayMergePatch(was, becomes, corev1.Pod{})
	check(t, err)
	return patch
}

func (w *writer) write(pod *corev1.Pod, is corev1.PodStatus) *corev1.Pod {
	w.t.Helper()
	got, err := w.client.CoreV1().Pods(pod.Namespace).Patch(w.t.Context(), pod.Name, types.StrategicMergePatchType,
		patchOf(w.t, pod, is), metav1.PatchOptions{}, "status")
	check(w.t, err)
	return got
}

// lives are the statuses of a pod in the order in which a kubelet writes them.
func lives(pod *corev1.Pod) (all []corev1.PodStatus) {
	at := func(s int64) metav1.Time { return metav1.Unix(1_700_000_000+s, 0) }
	condition := func(name corev1.PodConditionType, is corev1.ConditionStatus, s int64) corev1.PodCondition {
		return corev1.PodCondition{Type: name, Status: is, LastTransitionTime: at(s), ObservedGeneration: pod.Generation}
	}
	start := at(0)
	s := corev1.PodStatus{
		Phase: corev1.PodPending, QOSClass: pod.Status.QOSClass, StartTime: &start, HostIP: "10.0.0.1",
		HostIPs: []corev1.HostIP{{IP: "10.0.0.1"}}, ObservedGeneration: pod.Generation,
	}
	container := func(name string, ready bool, state corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: name, Image: "example.com/image:1", ImageID: "sha256:" + strings.Repeat("0", 64), Ready: ready,
			ContainerID: "containerd://" + strings.Repeat("1", 64), Started: &ready, State: state,
			Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
			User:      &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{SupplementalGroups: []int64{0}}},
		}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	s.Conditions = []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, "False", 1), condition(corev1.PodInitialized, "True", 1),
		condition(corev1.PodReady, "False", 1), condition(corev1.ContainersReady, "False", 1),
		condition(corev1.PodScheduled, "True", 0),
	}
	s.ContainerStatuses = []corev1.ContainerStatus{container("main", false, waiting), container("side", false, waiting)}
	all = append(all, *s.DeepCopy())

	s.Phase, s.PodIP, s.PodIPs = corev1.PodRunning, "10.1.0.7", []corev1.PodIP{{IP: "10.1.0.7"}, {IP: "fd00::7"}}
	s.Conditions[0], s.Conditions[2] = s.Conditions[2], condition(corev1.PodReadyToStartContainers, "True", 2)
	s.Conditions[0].Status, s.Conditions[3] = "True", condition(corev1.ContainersReady, "True", 3)
	started := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(2)}}
	s.ContainerStatuses = []corev1.ContainerStatus{container("main", true, started), container("side", true, started)}
	all = append(all, *s.DeepCopy())

	s.Conditions = s.Conditions[1:] // one is taken away, another one comes
	s.Conditions = append(s.Conditions, condition(corev1.DisruptionTarget, "True", 4))
	s.PodIP, s.PodIPs = "fd00::8", []corev1.PodIP{{IP: "fd00::8"}, {IP: "10.1.0.7"}}
	s.Message, s.ContainerStatuses = "with \"quotes\" & <brackets>", s.ContainerStatuses[:1]
	s.ContainerStatuses[0].RestartCount = 3
	all = append(all, *s.DeepCopy())

	s.Phase, s.PodIP, s.PodIPs, s.Message = corev1.PodSucceeded, "", nil, ""
	s.ContainerStatuses[0].State = corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at(2), FinishedAt: at(9)},
	}
	return append(all, s)
}

// newPod makes a pod of two containers and a volume on this node.
func (w *writer) newPod(name string) *corev1.Pod {
	w.t.Helper()
	c := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "example.com/image:1", Env: []corev1.EnvVar{{Name: "A", Value: strings.Repeat("b", 200)}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("0.1")}},
		}
	}
	pod, err := w.admin.CoreV1().Pods("default").Create(w.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: edge, AutomountServiceAccountToken: new(bool), Containers: []corev1.Container{c("main"), c("side")},
		},
	}, metav1.CreateOptions{})
	check(w.t, err)
	w.shows(itsPods, pod)
	return pod
}

func (w *writer) count(resource, outcome string) float64 {
	return w.metric("weir_hub_brief_answers_total", fmt.Sprintf("resource=%q", resource),
		fmt.Sprintf("outcome=%q", outcome))
}

// TestBriefAnswers: the cloud answers the writes of a kubelet with metadata, and the kubelet gets what the cloud shows
// of that version, in its own encoding. A status of the whole life of a pod, of a Node, and the deletion; with another
// writer in between, who wins; and until an answer was wrong.
func TestBriefAnswers(t *testing.T) {
	b := newBed(t, nil)
	b.fill(0, 0)
	h := b.remember(t)
	w := &writer{bed: b, agent: b.startAgent("kubelet", runtime.ContentTypeProtobuf, 0), t: t}
	w.synced()
	clients := map[string]kubernetes.Interface{}
	for _, encoding := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		client, err := kubernetes.NewForConfig(b.kubelet("kubelet/v1.37", encoding))
		check(t, err)
		clients[encoding] = client
	}
	brief := 0.0
	w.client = clients[runtime.ContentTypeProtobuf]

	for encoding, client := range clients {
		w.client = client
		pod := w.newPod("pod-" + encoding[len("application/"):len("application/")+1])
		for i, is := range lives(pod) {
			if i == 2 { // somebody changes the spec, and so the generation
				_, err := b.admin.CoreV1().Pods("default").Patch(t.Context(), pod.Name, types.MergePatchType,
					[]byte(`{"spec":{"activeDeadlineSeconds":3600}}`), metav1.PatchOptions{})
				check(t, err)
				pod, err = b.admin.CoreV1().Pods("default").Get(t.Context(), pod.Name, metav1.GetOptions{})
				check(t, err)
				w.shows(itsPods, pod)
			}
			if i == 3 {
				grace := int64(30)
				check(t, b.admin.CoreV1().Pods("default").Delete(t.Context(), pod.Name,
					metav1.DeleteOptions{GracePeriodSeconds: &grace}))
				var err error
				pod, err = b.admin.CoreV1().Pods("default").Get(t.Context(), pod.Name, metav1.GetOptions{})
				check(t, err)
				w.shows(itsPods, pod)
			}
			pod = w.write(pod, is)
			brief++
			if got := w.count("pods/status", "brief"); got != brief {
				t.Fatalf("status %d of %s: %v brief answers, want %v", i, pod.Name, got, brief)
			}
			if h.has(pod); i < 3 {
				w.shows(itsPods, pod)
			}
		}
		var last corev1.Pod // deleted before the watch has shown its last status, or after
		check(t, client.CoreV1().RESTClient().Delete().Namespace("default").Resource("pods").Name(pod.Name).
			Body(&metav1.DeleteOptions{
				GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
			}).Do(t.Context()).Into(&last))
		if h.has(&last); last.UID != pod.UID {
			t.Errorf("the answer to the deletion is %v", last)
		}
	}
	if got := w.count("pods", "brief"); got != 2 {
		t.Errorf("%v brief answers to deletions, want 2", got)
	}
	w.client = clients[runtime.ContentTypeProtobuf]
	w.writesNode(h)
	w.meetsAnother(h)
	w.isUnheld(h)
	w.measures()
	for _, of := range []string{"pods", "pods/status", "nodes/status"} {
		for _, outcome := range []string{"differs", "refused", "failed"} {
			if n := w.count(of, outcome); n > 0 {
				t.Errorf("%s: %s %v times", of, outcome, n)
			}
		}
	}
	w.isTold(h)
}

// writesNode has the kubelet write what it does of its Node.
func (w *writer) writesNode(h *history) {
	t := w.t
	t.Helper()
	node, err := w.client.CoreV1().Nodes().Get(t.Context(), edge, metav1.GetOptions{})
	check(t, err)
	w.shows(itsNode, node)
	for i := range 4 {
		is := node.DeepCopy()
		is.Labels["kubernetes.io/os"] = "linux"
		is.Status.Images = nil
		for j := range 10 + 10*i {
			is.Status.Images = append(is.Status.Images, corev1.ContainerImage{
				Names: []string{
					fmt.Sprintf("example.com/image-%d@sha256:%064d", j, i), fmt.Sprintf("example.com/image-%d:1", j),
				},
				SizeBytes: int64(1000 * j),
			})
		}
		is.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i)}, {Type: corev1.NodeHostName, Address: edge},
		}
		is.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4039500Ki")}
		is.Status.Allocatable = is.Status.Capacity
		is.Status.Conditions = nil
		for _, c := range []corev1.NodeConditionType{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}[i%2:] {
			is.Status.Conditions = append(is.Status.Conditions, corev1.NodeCondition{
				Type: c, Status: "False", LastHeartbeatTime: metav1.Unix(1_700_000_000+int64(i), 0), Reason: "KubeletHas",
			})
		}
		node, _, err = nodeutil.PatchNodeStatus(w.client.CoreV1(), edge, node, is)
		check(t, err)
		if got := w.count("nodes/status", "brief"); got != float64(i+1) {
			t.Fatalf("%v brief answers to statuses of the node, want %d", got, i+1)
		}
		h.has(node)
		w.shows(itsNode, node)
	}
	w.keepsNode(h, node)
}

// keepsNode has the kubelet write that nothing has changed, until the cloud is to hear of it.
func (w *writer) keepsNode(h *history, node *corev1.Node) {
	t := w.t
	t.Helper()
	for _, c := range []struct {
		later time.Duration
		kept  float64
	}{{5 * time.Minute, 1}, {25 * time.Minute, 2}, {30 * time.Minute, 2}} {
		is := node.DeepCopy()
		for i := range is.Status.Conditions {
			at := &is.Status.Conditions[i].LastHeartbeatTime
			*at = metav1.NewTime(at.Add(c.later))
		}
		got, _, err := nodeutil.PatchNodeStatus(w.client.CoreV1(), edge, node, is)
		check(t, err)
		if kept := w.count("nodes/status", "kept"); kept != c.kept {
			t.Fatalf("%v later %v statuses are kept, want %v", c.later, kept, c.kept)
		}
		if passed := got.ResourceVersion != node.ResourceVersion; passed != (c.later == 30*time.Minute) {
			t.Errorf("%v later the node has version %s, before %s", c.later, got.ResourceVersion, node.ResourceVersion)
		}
		h.has(got)
	}
}

// meetsAnother has somebody else write the same pod at the same time.
func (w *writer) meetsAnother(h *history) {
	t := w.t
	t.Helper()
	pod := w.newPod("contended")
	all := lives(pod)
	for i := 0; w.count("pods/status", "conflict") == 0; i++ {
		if i == 200 {
			t.Fatal("nobody has written in between")
		}
		var other sync.WaitGroup
		other.Go(func() {
			for j := range 5 {
				_, err := w.admin.CoreV1().Pods("default").Patch(t.Context(), pod.Name, types.MergePatchType,
					fmt.Appendf(nil, `{"metadata":{"annotations":{"at":"%d.%d"}}}`, i, j), metav1.PatchOptions{})
				check(t, err)
			}
		})
		pod = w.write(pod, all[i%2])
		h.has(pod)
		other.Wait()
	}
}

// isUnheld has another component of the node write, for which no watch holds the pod.
func (w *writer) isUnheld(h *history) {
	t := w.t
	t.Helper()
	client, err := kubernetes.NewForConfig(w.kubelet("another/v1", runtime.ContentTypeProtobuf))
	check(t, err)
	other := *w
	other.client = client
	pod, before := w.newPod("unheld"), w.count("pods/status", "brief")
	h.has(other.write(pod, lives(pod)[0]))
	if n := w.count("pods/status", "not held"); n != 1 || w.count("pods/status", "brief") != before {
		t.Errorf("%v writes of a pod that is not held, want 1", n)
	}
}

// measures tells how long an answer is whole, and of metadata.
func (w *writer) measures() {
	t := w.t
	t.Helper()
	pod := w.newPod("measured")
	of := map[string][]byte{
		"namespaces/default/pods/" + pod.Name: patchOf(t, pod, lives(pod)[1]), "nodes/" + edge: []byte(`{"status":{}}`),
	}
	for path, patch := range of {
		for _, media := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
			size := func(as string) int {
				body, err := w.admin.CoreV1().RESTClient().Patch(types.StrategicMergePatchType).
					AbsPath("/api/v1/"+path+"/status").SetHeader("Accept", media+as).Body(patch).DoRaw(t.Context())
				check(t, err)
				return len(body)
			}
			whole, metadata := size(""), size(";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
			t.Logf("a status of %s is answered with %d bytes of %s, of metadata %d", path, whole, media, metadata)
			if 3*metadata > 2*whole {
				t.Errorf("metadata is not worth asking for")
			}
		}
	}
}

// isTold has the cloud do what the hub cannot know: the first answer is wrong, and no other one.
func (w *writer) isTold(h *history) {
	t := w.t
	t.Helper()
	pod := w.newPod("planted")
	ctx, admission := t.Context(), w.admin.AdmissionregistrationV1()
	_, err := admission.MutatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "planted"},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{"UPDATE"},
						Rule: admissionregistrationv1.Rule{
							APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"},
						},
					},
				}},
			},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
					Expression: `Object{status: Object.status{reason: "Planted"}}`,
				},
			}},
		},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = admission.MutatingAdmissionPolicyBindings().Create(ctx,
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "planted"},
			Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "planted"},
		}, metav1.CreateOptions{})
	check(t, err)
	all, n := lives(pod), 0
	eventually(t, "the hub to see that its answer was wrong", func() bool {
		n++
		pod = w.write(pod, all[n%2])
		w.shows(itsPods, pod)
		return w.count("pods/status", "differs") > 0
	})
	for i := range 3 {
		pod = w.write(pod, all[i%2])
		if h.has(pod); pod.Status.Reason != "Planted" {
			t.Errorf("the answer is %v", pod)
		}
	}
	if n := w.count("pods/status", "differs"); n != 1 {
		t.Errorf("%v wrong answers", n)
	}
}
