package shelter

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

const (
	podPath   = "/api/v1/namespaces/default/pods/web"
	clientGo  = "application/vnd.kubernetes.protobuf,application/json"
	protobufs = runtime.ContentTypeProtobuf
)

var podKind = wire.Kind{APIVersion: "v1", Kind: "Pod"}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newPod() *corev1.Pod {
	at := metav1.Unix(1_700_000_000, 0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "default", UID: "uid-1", ResourceVersion: "100", Generation: 3,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: "Update"}},
		},
		Spec: corev1.PodSpec{NodeName: "edge-1", Containers: []corev1.Container{{Name: "main", Image: "example.com/web:1"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort, ObservedGeneration: 3,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at, ObservedGeneration: 3},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at, Reason: "ContainersNotReady"},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "main", Image: "example.com/web:1", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"},
				}},
			},
		},
	}
}

// running is the status of a pod that runs, as a kubelet writes it.
func running(was corev1.PodStatus) corev1.PodStatus {
	s := *was.DeepCopy()
	at := metav1.Unix(1_700_000_060, 0)
	s.Phase, s.PodIP, s.PodIPs = corev1.PodRunning, "10.1.0.7", []corev1.PodIP{{IP: "10.1.0.7"}}
	s.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: at},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at},
		s.Conditions[0],
	}
	s.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	s.ContainerStatuses[0].Ready = true
	return s
}

// statusPatch is what a kubelet sends.
func statusPatch(t testing.TB, uid types.UID, was, is corev1.PodStatus) []byte {
	t.Helper()
	before, err := json.Marshal(corev1.Pod{Status: was})
	check(t, err)
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: is})
	check(t, err)
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	check(t, err)
	return patch
}

// cloud has one pod, and answers as kube-apiserver does.
type cloud struct {
	t       *testing.T
	pod     *corev1.Pod
	version int
	sent    []*http.Request
	bodies  []string
	refuses int               // a code for what asks for metadata; 0: it is taken
	does    func(*corev1.Pod) // beyond what is asked
	before  func()            // it answers
}

func (c *cloud) next() {
	c.version++
	c.pod.ResourceVersion = strconv.Itoa(100 + c.version)
}

func (c *cloud) raw() *wire.Object {
	raw, err := c.pod.Marshal()
	check(c.t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(c.t, err)
	return o
}

func (c *cloud) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	check(c.t, err)
	check(c.t, req.Body.Close())
	c.sent, c.bodies = append(c.sent, req), append(c.bodies, string(body))
	brief := strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")
	if brief && c.refuses != 0 {
		return c.says(req, c.refuses, nil), nil
	}
	var condition string
	if req.Method == http.MethodPatch {
		var on struct{ Metadata metav1.ObjectMeta }
		check(c.t, json.Unmarshal(body, &on))
		condition = on.Metadata.ResourceVersion
	} else if _, raw, err := wire.SplitEnvelope(body); err == nil {
		var options metav1.DeleteOptions
		check(c.t, options.Unmarshal(raw))
		if p := options.Preconditions; p != nil && p.ResourceVersion != nil {
			condition = *p.ResourceVersion
		}
	}
	if condition != "" && condition != c.pod.ResourceVersion {
		return c.says(req, http.StatusConflict, nil), nil
	}
	if req.Method == http.MethodPatch {
		was, err := json.Marshal(c.pod)
		check(c.t, err)
		is, err := strategicpatch.StrategicMergePatch(was, body, corev1.Pod{})
		check(c.t, err)
		c.pod = &corev1.Pod{}
		check(c.t, json.Unmarshal(is, c.pod))
	}
	if c.does != nil {
		c.does(c.pod)
	}
	c.next()
	if c.before != nil {
		c.before()
	}
	var o any = c.pod.DeepCopy()
	kind := podKind
	if brief {
		kind = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
		o = &metav1.PartialObjectMetadata{ObjectMeta: *c.pod.ObjectMeta.DeepCopy()}
	}
	if strings.HasPrefix(req.Header.Get("Accept"), protobufs) {
		raw, err := o.(interface{ Marshal() ([]byte, error) }).Marshal()
		check(c.t, err)
		return c.says(req, http.StatusOK, wire.Envelope(kind, raw)), nil
	}
	o.(runtime.Object).GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	raw, err := json.Marshal(o)
	check(c.t, err)
	resp := c.says(req, http.StatusOK, raw)
	resp.Header.Set("Content-Type", runtime.ContentTypeJSON)
	return resp, nil
}

func (c *cloud) says(req *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {protobufs}}, Body: io.NopCloser(bytes.NewReader(body)),
		Request: req, ContentLength: int64(len(body)),
	}
}

// site is a Brief before a cloud.
type site struct {
	*Brief
	t     *testing.T
	cloud *cloud
	held  *wire.Object
	log   bytes.Buffer
}

func newSite(t *testing.T) *site {
	s := &site{t: t, cloud: &cloud{t: t, pod: newPod()}}
	s.held = s.cloud.raw()
	s.Brief = NewBrief(BriefConfig{
		Held:   func(string, *request.Request) *wire.Object { return s.held },
		Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	return s
}

// send sends a request as a kubelet, and returns the answer; metadata alone is none.
func (s *site) send(method, uri, contentType, accept string, body []byte) (code int, got *corev1.Pod, made uint64) {
	s.t.Helper()
	req := httptest.NewRequest(method, uri, bytes.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", accept)
	var via http.RoundTripper = s.cloud
	trip := TripOf(s.Brief, "kubelet", request.Parse(req), req.Header, via)
	if trip != nil {
		via = trip
	}
	resp, err := via.RoundTrip(req)
	check(s.t, err)
	raw, err := io.ReadAll(resp.Body)
	check(s.t, err)
	check(s.t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil, trip.Version()
	}
	if n, given := resp.Header.Get("Content-Length"), strconv.Itoa(len(raw)); n != "" && n != given {
		s.t.Errorf("Content-Length %s of %s bytes", n, given)
	}
	got = &corev1.Pod{}
	switch media := resp.Header.Get("Content-Type"); {
	case media == protobufs:
		kind, raw, err := wire.SplitEnvelope(raw)
		check(s.t, err)
		if kind != podKind {
			s.t.Fatalf("the answer is a %v", kind)
		}
		check(s.t, got.Unmarshal(raw))
	case media == runtime.ContentTypeJSON && !strings.HasPrefix(accept, protobufs):
		check(s.t, json.Unmarshal(raw, got))
		if got.Kind != "Pod" || got.APIVersion != "v1" {
			s.t.Fatalf("the answer is a %s %s", got.APIVersion, got.Kind)
		}
		got.TypeMeta = metav1.TypeMeta{}
	default:
		s.t.Fatalf("who accepts %s gets %s", accept, media)
	}
	return resp.StatusCode, got, trip.Version()
}

func (s *site) patch(accept string, is corev1.PodStatus) (code int, got *corev1.Pod, made uint64) {
	s.t.Helper()
	body := statusPatch(s.t, "uid-1", s.cloud.pod.Status, is)
	return s.send(http.MethodPatch, podPath+"/status", string(types.StrategicMergePatchType), accept, body)
}

// delete deletes as a kubelet does.
func (s *site) delete() (code int, got *corev1.Pod, made uint64) {
	s.t.Helper()
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions("uid-1")}
	raw, err := options.Marshal()
	check(s.t, err)
	body := wire.Envelope(wire.Kind{APIVersion: "v1", Kind: "DeleteOptions"}, raw)
	return s.send(http.MethodDelete, podPath, protobufs, clientGo, body)
}

// watched has the watch show what the cloud holds.
func (s *site) watched() bool {
	s.held = s.cloud.raw()
	return s.Shown(request.Resource{Version: "v1", Name: "pods"}, s.held)
}

func (s *site) wants(resource, outcome string, n int) {
	s.t.Helper()
	if got := testutil.ToFloat64(s.count.WithLabelValues(resource, outcome)); got != float64(n) {
		s.t.Errorf("%s %s: %v, want %d", resource, outcome, got, n)
	}
}

// terminating marks the pod as one that ends.
func (s *site) terminating() {
	now, grace := metav1.NewTime(time.Unix(1_700_000_100, 0)), int64(30)
	s.cloud.pod.DeletionTimestamp, s.cloud.pod.DeletionGracePeriodSeconds = &now, &grace
	s.held = s.cloud.raw()
}
