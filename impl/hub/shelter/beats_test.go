package shelter

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

func newNode() *corev1.Node {
	at := metav1.Unix(1_700_000_000, 0)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "uid-1", ResourceVersion: "100"}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: "NetworkUnavailable", Status: corev1.ConditionFalse, LastHeartbeatTime: at, LastTransitionTime: at},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: at, LastTransitionTime: at},
	}
	n.Status.Images = []corev1.ContainerImage{{Names: []string{"example.com/web:1"}, SizeBytes: 1 << 20}}
	return n
}

// beats are what a kubelet tells when nothing has changed.
func beats(n *corev1.Node, later time.Duration) {
	c := &n.Status.Conditions[1]
	c.LastHeartbeatTime = metav1.NewTime(c.LastHeartbeatTime.Add(later))
}

// TestNodeStatusKept: the status of a node that brings nothing but later heartbeat times is answered here, until they
// are old at the cloud. Any other passes.
func TestNodeStatusKept(t *testing.T) {
	const period = 30 * time.Minute
	for name, c := range map[string]struct {
		period time.Duration
		does   func(*corev1.Node)
		body   string // "": what a kubelet makes of that
		kept   bool
	}{
		"nothing":          {period, func(*corev1.Node) {}, "", true},
		"later":            {period, func(n *corev1.Node) { beats(n, 5*time.Minute) }, "", true},
		"almost too late":  {period, func(n *corev1.Node) { beats(n, period-time.Second) }, "", true},
		"too late":         {period, func(n *corev1.Node) { beats(n, period) }, "", false},
		"a clock set back": {period, func(n *corev1.Node) { beats(n, -time.Second) }, "", false},
		"none is kept":     {0, func(n *corev1.Node) { beats(n, 5*time.Minute) }, "", false},
		"another reason": {period, func(n *corev1.Node) {
			beats(n, 5*time.Minute)
			n.Status.Conditions[1].Reason = "KubeletReady"
		}, "", false},
		"not ready": {period, func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionFalse }, "", false},
		"another condition": {period, func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodePIDPressure})
		}, "", false},
		"an image":   {period, func(n *corev1.Node) { n.Status.Images = n.Status.Images[:0] }, "", false},
		"a volume":   {period, func(n *corev1.Node) { n.Status.VolumesInUse = []corev1.UniqueVolumeName{"v"} }, "", false},
		"a label":    {period, nil, `{"metadata":{"labels":{"a":"b"}},"status":{}}`, false},
		"no label":   {period, nil, `{"metadata":{"labels":null},"status":{}}`, false},
		"another":    {period, nil, `{"metadata":{"uid":"uid-2"},"status":{}}`, false},
		"a version":  {period, nil, `{"metadata":{"resourceVersion":"99"},"status":{}}`, false},
		"this one":   {period, nil, `{"metadata":{"uid":"uid-1"},"status":{}}`, true},
		"of nothing": {period, nil, `{}`, true},
	} {
		for _, accept := range []string{clientGo, runtime.ContentTypeJSON} {
			sent, kept := sendStatus(t, c.period, accept, c.body, c.does)
			if kept != c.kept || sent == c.kept {
				t.Errorf("%s, %s: sent %v, kept %v", name, accept, sent, kept)
			}
		}
	}
}

// sendStatus sends the status of a node as its kubelet, and reports who has answered.
func sendStatus(t *testing.T, period time.Duration, accept, body string, does func(*corev1.Node)) (sent, kept bool) {
	t.Helper()
	was := newNode()
	raw, err := was.Marshal()
	check(t, err)
	held, err := wire.ParseObject(wire.Protobuf, raw)
	check(t, err)
	if body == "" {
		is := was.DeepCopy()
		does(is)
		before, err := json.Marshal(was)
		check(t, err)
		after, err := json.Marshal(is)
		check(t, err)
		patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Node{})
		check(t, err)
		body = string(patch)
	}
	b := NewBrief(BriefConfig{
		Held:             func(string, *request.Request) *wire.Object { return held },
		NodeStatusPeriod: period, Logger: slog.New(slog.DiscardHandler),
	})
	req := httptest.NewRequest(http.MethodPatch, "/api/v1/nodes/edge-1/status", strings.NewReader(body))
	req.Header.Set("Content-Type", string(types.StrategicMergePatchType))
	req.Header.Set("Accept", accept)
	trip := TripOf(b, "kubelet", request.Parse(req), req.Header, to(func(req *http.Request) (*http.Response, error) {
		sent = true
		return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: req}, nil
	}))
	resp, err := trip.RoundTrip(req)
	check(t, err)
	got, err := io.ReadAll(resp.Body)
	check(t, err)
	check(t, resp.Body.Close())
	if !trip.Kept() {
		return sent, false
	}
	if n := testutil.ToFloat64(b.count.WithLabelValues("nodes/status", "kept")); n != 1 || len(b.all) > 0 {
		t.Errorf("%v are counted as kept, %d answers are due", n, len(b.all))
	}
	shows := &corev1.Node{}
	if accept == runtime.ContentTypeJSON {
		check(t, json.Unmarshal(got, shows))
		shows.TypeMeta = metav1.TypeMeta{}
	} else {
		_, raw, err := wire.SplitEnvelope(got)
		check(t, err)
		check(t, shows.Unmarshal(raw))
	}
	if resp.StatusCode != http.StatusOK || !equality.Semantic.DeepEqual(shows, was) {
		t.Errorf("the answer is %d\n%v\nthe cloud has\n%v", resp.StatusCode, shows, was)
	}
	return sent, true
}

// to is a way that is a function.
type to func(*http.Request) (*http.Response, error)

func (f to) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
