package writes

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	toolsevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/store/queue"
)

// bothEncodings runs a test as a kubelet with protobuf and with JSON, while the cloud is away.
func bothEncodings(t *testing.T, f func(t *testing.T, b *bed, c kubernetes.Interface)) {
	for _, media := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		t.Run(media, func(t *testing.T) {
			b := newBed(t, clock.RealClock{})
			b.knowNode()
			b.set(member.CloudAway)
			f(t, b, b.client(media))
		})
	}
}

// patchPod is what the kubelet's status manager sends (k8s.io/kubernetes/pkg/util/pod).
func patchPod(t testing.TB, c kubernetes.Interface, pod *corev1.Pod, now corev1.PodStatus) (*corev1.Pod, error) {
	t.Helper()
	before, err := json.Marshal(corev1.Pod{Status: pod.Status})
	check(t, err)
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: now})
	check(t, err)
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	check(t, err)
	return c.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
}

func (b *bed) shown(r store.Resource, k store.Key, f store.Form) []byte {
	b.t.Helper()
	a := b.store.Get(component, r, f, k)
	if a.Knowledge != store.Known {
		b.t.Fatalf("%v %v is %v", r, k, a.Knowledge)
	}
	return b.writes.Overlay(r, f, a.Object).Raw
}

func TestKubeletRegisters(t *testing.T) {
	bothEncodings(t, func(t *testing.T, _ *bed, c kubernetes.Interface) {
		if _, err := c.CoreV1().Nodes().Create(t.Context(), testNode(), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(
			err) {
			t.Errorf("registering the own node: %v", err)
		}
	})
}

// TestKubeletNodeStatus: each write sees what the ones before it left, and all of them are one entry.
func TestKubeletNodeStatus(t *testing.T) {
	bothEncodings(t, func(t *testing.T, b *bed, c kubernetes.Interface) {
		before := testNode()
		for _, address := range []string{"10.0.0.2", "10.0.0.3"} {
			now := before.DeepCopy()
			now.Status.Addresses[0].Address = address // sent with $patch: replace
			now.Status.Conditions[0].LastHeartbeatTime = metav1.Now().Rfc3339Copy()
			now.Status.Conditions = append(now.Status.Conditions,
				corev1.NodeCondition{Type: corev1.NodeConditionType("C" + address), Status: corev1.ConditionTrue})
			now.Annotations = map[string]string{"seen": address}
			got, _, err := nodeutil.PatchNodeStatus(c.CoreV1(), nodeName, before, now)
			check(t, err)
			if got.ResourceVersion == "" || got.UID != "uid-node" || got.Status.Addresses[0].Address != address ||
				got.Annotations["seen"] != address ||
				len(got.Status.Conditions) != len(now.Status.Conditions) || got.Labels["zone"] != "a" {
				t.Fatalf("the answer: %+v", got)
			}
			var shown corev1.Node
			check(t, shown.Unmarshal(b.shown(nodes(), store.Key{Name: nodeName}, store.Protobuf)))
			if shown.Status.Addresses[0].Address != address || shown.Annotations["seen"] != address ||
				shown.ResourceVersion != got.ResourceVersion {
				t.Fatalf("what is shown: %+v", shown)
			}
			before = got
		}
		for _, e := range b.writes.queue.Entries() {
			if e.Kind != queue.NodeStatus && e.Kind != queue.NodeMetadata || e.UID != "uid-node" {
				t.Errorf("%v waits", e.Target)
			}
		}
		if n := b.writes.queue.Len(); n != 2 {
			t.Errorf("%d entries", n)
		}
		b.run()
		b.set(member.CloudHere)
		eventually(t, "the queue to be empty", func() bool { return b.writes.queue.Len() == 0 })
		var there corev1.Node
		d := b.cloud.get("/api/v1/nodes/" + nodeName)
		object, err := d.bytes()
		check(t, err)
		check(t, json.Unmarshal(object, &there))
		if there.Status.Addresses[0].Address != "10.0.0.3" || there.Annotations["seen"] != "10.0.0.3" ||
			len(there.Status.Conditions) != 4 {
			t.Errorf("the cloud has %+v", there)
		}
	})
}

func TestKubeletPodStatus(t *testing.T) {
	bothEncodings(t, func(t *testing.T, b *bed, c kubernetes.Interface) {
		b.knowPod("web")
		pod := testPod("web")
		now := *pod.Status.DeepCopy()
		now.Phase, now.Conditions[1].Status, now.Conditions[1].Reason = corev1.PodRunning, corev1.ConditionTrue, ""
		now.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Ready: true, ContainerID: "containerd://1"}}
		got, err := patchPod(t, c, pod, now)
		check(t, err)
		if got.Status.Phase != corev1.PodRunning || got.Status.Conditions[1].Status != corev1.ConditionTrue ||
			got.Status.Conditions[1].Reason != "" ||
			got.Spec.NodeName != nodeName || len(got.Status.ContainerStatuses) != 1 {
			t.Fatalf("the answer: %+v", got)
		}
		for _, f := range []store.Form{store.Protobuf, store.JSON} {
			raw := b.shown(pods(), store.Key{Namespace: "default", Name: "web"}, f)
			var shown corev1.Pod
			if f == store.JSON {
				check(t, json.Unmarshal(raw, &shown))
			} else {
				check(t, shown.Unmarshal(raw))
			}
			if shown.Status.Phase != corev1.PodRunning || shown.Spec.Containers[0].Image != "i" {
				t.Fatalf("what is shown in %v: %+v", f, shown)
			}
		}
		if _, err := patchPod(t, c, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "another"},
		}, now); !apierrors.IsConflict(err) {
			t.Errorf("the status of another pod of that name: %v", err)
		}
		stale := got.DeepCopy()
		stale.ResourceVersion = "1"
		if _, err := c.CoreV1().Pods("default").UpdateStatus(t.Context(), stale,
			metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("a PUT at an old version: %v", err)
		}
		got.Status.Phase = corev1.PodSucceeded
		if got, err = c.CoreV1().Pods("default").UpdateStatus(t.Context(), got, metav1.UpdateOptions{}); err != nil ||
			got.Status.Phase != corev1.PodSucceeded {
			t.Errorf("a PUT: %v", err)
		}
	})
}

// TestRecorder: client-go's recorder creates an Event and counts it up; one that the cloud has from before is counted
// up as well.
func TestRecorder(t *testing.T) {
	bothEncodings(t, func(t *testing.T, b *bed, c kubernetes.Interface) {
		b.run()
		sink := &typedcorev1.EventSinkImpl{Interface: c.CoreV1().Events("")}
		broadcaster := record.NewBroadcaster(record.WithContext(t.Context()))
		watch := broadcaster.StartRecordingToSink(sink)
		defer broadcaster.Shutdown()
		defer watch.Stop()
		recorder := broadcaster.NewRecorder(scheme(), corev1.EventSource{Component: "kubelet", Host: nodeName})
		say := func(reason string, count int32) {
			t.Helper()
			recorder.Event(testPod("web"), corev1.EventTypeNormal, reason, "message")
			eventually(t, reason, func() bool {
				for _, e := range b.writes.queue.Entries() {
					var ev corev1.Event
					if json.Unmarshal(e.Ours, &ev) == nil && ev.Reason == reason && ev.Count == count {
						return true
					}
				}
				for _, d := range b.cloud.events() {
					if d.text("reason") == reason && string(d["count"]) == jsonOf(t, count) {
						return true
					}
				}
				return false
			})
		}
		b.set(member.CloudHere)
		say("Before", 1)
		b.set(member.CloudAway)
		say("Offline", 1)
		say("Offline", 2)
		say("Before", 2)
		b.set(member.CloudHere)
		eventually(t, "the queue to be empty", func() bool { return b.writes.queue.Len() == 0 })
		say("Offline", 3)
		say("Before", 3)
		if n := len(b.cloud.events()); n != 2 {
			t.Errorf("the cloud has %d events", n)
		}
	})
}

// TestGroupEvents is the same with events.k8s.io.
func TestGroupEvents(t *testing.T) {
	bothEncodings(t, func(t *testing.T, b *bed, c kubernetes.Interface) {
		sink := &toolsevents.EventSinkImpl{Interface: c.EventsV1()}
		ev := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e.1", ResourceVersion: "7"}, EventTime: metav1.NowMicro(),
			Reason: "R", Action: "A", Type: "Normal",
			ReportingController: "kubelet", ReportingInstance: nodeName,
			Regarding: corev1.ObjectReference{Namespace: "default", Name: "web", Kind: "Pod"},
		}
		got, err := sink.Create(t.Context(), ev)
		check(t, err)
		if got.CreationTimestamp.IsZero() || got.Reason != "R" {
			t.Errorf("the answer: %+v", got)
		}
		if _, err := sink.Create(t.Context(), ev); !apierrors.IsAlreadyExists(err) {
			t.Errorf("again: %v", err)
		}
		if got, err = sink.Patch(t.Context(), ev,
			[]byte(`{"series":{"count":5,"lastObservedTime":"2026-11-21T10:00:00.000000Z"}}`)); err != nil ||
			got.Series.Count != 5 {
			t.Errorf("a series: %v", err)
		}
		other := ev.DeepCopy()
		other.Name = "e.2"
		if _, err := sink.Patch(t.Context(), other, []byte(`{"series":{"count":5}}`)); !apierrors.IsNotFound(err) {
			t.Errorf("a patch of what is not here: %v", err)
		}
		b.run()
		b.set(member.CloudHere)
		eventually(t, "the queue to be empty", func() bool { return b.writes.queue.Len() == 0 })
		if all := b.cloud.events(); len(all) != 1 || all[0].in("series")["count"] == nil {
			t.Errorf("the cloud has %v", all)
		}
	})
}

func (c *fakeCloud) events() (all []document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, d := range c.objects {
		if k := kindAt(path); k.Kind.Kind == "Event" {
			all = append(all, d)
		}
	}
	return all
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	check(t, err)
	return string(b)
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = corev1.AddToScheme(s)
	return s
}
