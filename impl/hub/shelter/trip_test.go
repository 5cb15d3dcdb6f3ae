package shelter

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

func same(t *testing.T, got, want *corev1.Pod) {
	t.Helper()
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("the answer is\n%v\nthe cloud has\n%v", got, want)
	}
}

// TestBriefAnswer: the cloud is asked for metadata, on condition of the version that is held, and the client gets what
// the cloud would have answered, in its own encoding. The watch confirms it.
func TestBriefAnswer(t *testing.T) {
	for _, accept := range []string{clientGo, "application/json", "application/json, */*"} {
		s := newSite(t)
		code, got, made := s.patch(accept, running(s.cloud.pod.Status))
		if code != http.StatusOK || made != 101 {
			t.Fatalf("%s: code %d, made at %d", accept, code, made)
		}
		same(t, got, s.cloud.pod)
		asks := s.cloud.sent[0].Header.Get("Accept")
		if media, rest, _ := strings.Cut(asks, ";"); media+",x" != strings.SplitN(accept, ",", 2)[0]+",x" ||
			!strings.HasPrefix(rest, "as=PartialObjectMetadata;") || !strings.HasSuffix(asks, ","+accept) {
			t.Errorf("the cloud is asked for %s", asks)
		}
		if !strings.Contains(s.cloud.bodies[0], `"resourceVersion":"100"`) {
			t.Errorf("the cloud is asked for %s", s.cloud.bodies[0])
		}
		if s.wants("pods/status", "brief", 1); !s.watched() {
			t.Error("the watch shows the answer, and it is not noticed")
		}
		if s.watched() {
			t.Error("an answer is due twice")
		}
		s.wants("pods/status", "differs", 0)
	}
}

// TestBriefWatchIsFaster: the watch shows the version before the answer comes, and later ones too. The answer has its
// own version, as the watch has shown it.
func TestBriefWatchIsFaster(t *testing.T) {
	s := newSite(t)
	var shown *corev1.Pod
	s.cloud.before = func() {
		s.watched()
		shown = s.cloud.pod.DeepCopy()
		for range 2 {
			s.cloud.next()
			s.watched()
		}
		s.cloud.pod.ObjectMeta = shown.ObjectMeta
	}
	if code, got, made := s.patch(clientGo, running(s.cloud.pod.Status)); code != http.StatusOK || made != 101 {
		t.Fatalf("code %d, made at %d", code, made)
	} else {
		same(t, got, shown)
	}
	s.wants("pods/status", "differs", 0)
	if len(s.all) > 0 {
		t.Errorf("%d answers are still due", len(s.all))
	}
}

// TestBriefNothingChanged: a patch that changes nothing is answered with the version that is held.
func TestBriefNothingChanged(t *testing.T) {
	s := newSite(t)
	s.cloud.before = func() { s.cloud.pod.ResourceVersion = "100" }
	if code, got, made := s.patch(clientGo, s.cloud.pod.Status); code != http.StatusOK || made != 100 {
		t.Fatalf("code %d, made at %d", code, made)
	} else {
		same(t, got, s.cloud.pod)
	}
	if len(s.all) > 0 {
		t.Errorf("%d answers are still due", len(s.all))
	}
}

// TestBriefConflict: somebody else wrote meanwhile, or the cloud does not know such answers. The client sees only the
// answer to what it sent itself.
func TestBriefConflict(t *testing.T) {
	for _, c := range []struct {
		refuses int
		outcome string
	}{
		{0, "conflict"}, {http.StatusConflict, "conflict"}, {http.StatusNotAcceptable, "refused"},
		{http.StatusUnsupportedMediaType, "refused"},
	} {
		s := newSite(t)
		if s.cloud.refuses = c.refuses; c.refuses == 0 {
			s.cloud.pod.Labels = map[string]string{"by": "another"}
			s.cloud.next()
		}
		code, got, made := s.patch(clientGo, running(s.cloud.pod.Status))
		if code != http.StatusOK || made != 0 || len(s.cloud.sent) != 2 {
			t.Fatalf("%v: code %d, made at %d, %d requests", c, code, made, len(s.cloud.sent))
		}
		same(t, got, s.cloud.pod)
		if strings.Contains(s.cloud.bodies[1], "resourceVersion") || s.cloud.sent[1].Header.Get("Accept") != clientGo {
			t.Errorf("what was sent whole: %v, %s", s.cloud.sent[1].Header, s.cloud.bodies[1])
		}
		if s.wants("pods/status", c.outcome, 1); len(s.all) > 0 {
			t.Errorf("%d answers are due", len(s.all))
		}
	}
}

// TestBriefRefusal: any other refusal is the client's.
func TestBriefRefusal(t *testing.T) {
	s := newSite(t)
	s.cloud.refuses = http.StatusNotFound
	if code, _, made := s.patch(clientGo, running(s.cloud.pod.Status)); code != http.StatusNotFound || made != 0 ||
		len(s.cloud.sent) != 1 || len(s.all) > 0 {
		t.Errorf("code %d, made at %d, %d requests, %d due", code, made, len(s.cloud.sent), len(s.all))
	}
	s.wants("pods/status", "failed", 1)
}

// TestBriefDeletion: a kubelet deletes a pod at the version of its last answer, which the watch has not shown yet. It
// gets what the cloud answers, and the watch confirms both.
func TestBriefDeletion(t *testing.T) {
	s := newSite(t)
	s.terminating()
	held := s.held
	if _, _, made := s.patch(clientGo, running(s.cloud.pod.Status)); made != 101 {
		t.Fatalf("made at %d", made)
	}
	patched := s.cloud.raw()
	s.held = held
	s.cloud.does = func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = new(int64) }
	code, got, made := s.delete()
	if code != http.StatusOK || made != 102 {
		t.Fatalf("code %d, made at %d", code, made)
	}
	same(t, got, s.cloud.pod)
	ofPods := request.Resource{Version: "v1", Name: "pods"}
	if !s.Shown(ofPods, patched) || !s.watched() || len(s.all) > 0 {
		t.Errorf("%d answers are due", len(s.all))
	}
	s.wants("pods", "brief", 1)
	s.wants("pods", "differs", 0)
	s.wants("pods/status", "differs", 0)
}

// TestBriefBehind: a status is not patched on top of an answer that the watch has not confirmed, nor without a watch.
func TestBriefBehind(t *testing.T) {
	s := newSite(t)
	held := s.held
	if _, _, made := s.patch(clientGo, running(s.cloud.pod.Status)); made == 0 {
		t.Fatal("the first one is not brief")
	}
	s.held = held
	for _, s.held = range []*wire.Object{held, nil} {
		if _, got, made := s.patch(clientGo, newPod().Status); made != 0 {
			t.Errorf("made at %d", made)
		} else {
			same(t, got, s.cloud.pod)
		}
	}
	s.wants("pods/status", "not held", 2)
}

// TestBriefDiffers: the cloud does something that is not known here. The first answer was wrong, if the watch did not
// show it before, and no further one is: such requests are sent whole. Others are not concerned.
func TestBriefDiffers(t *testing.T) {
	for _, faster := range []bool{false, true} {
		s := newSite(t)
		s.cloud.does = func(p *corev1.Pod) { p.Status.Reason = "Planted" }
		if faster {
			s.cloud.before = func() { s.watched() }
		}
		_, got, made := s.patch(clientGo, running(s.cloud.pod.Status))
		if made != 101 || faster != (got.Status.Reason == "Planted") {
			t.Fatalf("made at %d: reason %q", made, got.Status.Reason)
		}
		s.watched()
		s.wants("pods/status", "differs", 1)
		if log := s.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "field=.status.reason") {
			t.Errorf("the log has %s", log)
		}
		s.cloud.before = nil
		if _, got, made := s.patch(clientGo, newPod().Status); made != 0 {
			t.Errorf("made at %d", made)
		} else {
			same(t, got, s.cloud.pod)
		}
		s.cloud.does = nil
		s.watched()
		if _, _, made := s.delete(); made == 0 {
			t.Error("deletions are not brief any more")
		}
	}
}

// TestBriefUnknown: what a kubelet does not send, passes as it came.
func TestBriefUnknown(t *testing.T) {
	smp := string(types.StrategicMergePatchType)
	large := `{"status":{"reason":"` + strings.Repeat("x", maxBody) + `"}}`
	const js = "application/json"
	status, deletion := podPath+"/status", `{"gracePeriodSeconds":0,"preconditions":{"uid":"uid-1"`
	for name, c := range map[string]struct{ method, uri, contentType, accept, body string }{
		"dry run":          {http.MethodPatch, status + "?dryRun=All", smp, clientGo, `{"status":{"reason":"x"}}`},
		"pretty":           {http.MethodPatch, status + "?pretty=1", smp, clientGo, `{"status":{"reason":"x"}}`},
		"its own version":  {http.MethodPatch, status, smp, clientGo, `{"metadata":{"resourceVersion":"100"}}`},
		"managed fields":   {http.MethodPatch, status, smp, clientGo, `{"metadata":{"managedFields":[{}]}}`},
		"metadata go":      {http.MethodPatch, status, smp, clientGo, `{"metadata":null}`},
		"a spec":           {http.MethodPatch, status, smp, clientGo, `{"spec":{"nodeName":"edge-1"}}`},
		"an unknown field": {http.MethodPatch, status, smp, clientGo, `{"status":{"fromTheFuture":1}}`},
		"another pod":      {http.MethodPatch, status, smp, clientGo, `{"metadata":{"uid":"uid-2"}}`},
		"merge patch": {
			http.MethodPatch, status, string(types.MergePatchType), clientGo, `{"status":{"reason":"x"}}`,
		},
		"a pod's own":     {http.MethodPatch, podPath, smp, clientGo, `{"metadata":{"labels":{"a":"b"}}}`},
		"metadata":        {http.MethodPatch, status, smp, protobufs + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", `{}`},
		"large":           {http.MethodPatch, status, smp, clientGo, large},
		"grace":           {http.MethodDelete, podPath, js, clientGo, `{"gracePeriodSeconds":1}`},
		"a version":       {http.MethodDelete, podPath, js, clientGo, deletion + `,"resourceVersion":"1"}}`},
		"a dry deletion":  {http.MethodDelete, podPath, js, clientGo, deletion + `},"dryRun":["All"]}`},
		"leaving orphans": {http.MethodDelete, podPath, js, clientGo, deletion + `},"orphanDependents":true}`},
	} {
		s := newSite(t)
		req, err := http.NewRequest(c.method, "http://hub"+c.uri, strings.NewReader(c.body))
		check(t, err)
		req.Header.Set("Content-Type", c.contentType)
		req.Header.Set("Accept", c.accept)
		trip := TripOf(s.Brief, "kubelet", request.Parse(req), req.Header, s.cloud)
		if trip == nil {
			continue
		}
		if due, _, _ := trip.begin(req, []byte(c.body)); due != nil && len(c.body) < maxBody {
			t.Errorf("%s is made brief", name)
		}
		if name == "large" {
			if _, _, made := s.send(c.method, c.uri, c.contentType, c.accept, []byte(c.body)); made != 0 ||
				s.cloud.bodies[0] != c.body {
				t.Errorf("a large body is not passed as it came: made at %d, %d bytes", made, len(s.cloud.bodies[0]))
			}
		}
	}
}

// TestBriefWithoutABody: a deletion may have none.
func TestBriefWithoutABody(t *testing.T) {
	s := newSite(t)
	req := httptest.NewRequest(http.MethodDelete, podPath, nil)
	req.Body = nil
	asked := request.Parse(req)
	resp, err := TripOf(s.Brief, "kubelet", asked, req.Header, tripper(func(got *http.Request) (*http.Response, error) {
		if got != req {
			t.Error("it is not passed as it came")
		}
		return s.cloud.says(got, http.StatusNotFound, nil), nil
	})).RoundTrip(req)
	check(t, err)
	check(t, resp.Body.Close())
}

// tripper is a function that is an http.RoundTripper.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestBriefOneAtATime: while one write of an object is under way, another one passes as it came.
func TestBriefOneAtATime(t *testing.T) {
	s := newSite(t)
	s.cloud.before = func() {
		s.cloud.before = nil
		if _, _, made := s.patch(clientGo, running(s.cloud.pod.Status)); made != 0 {
			t.Errorf("made at %d", made)
		}
	}
	s.patch(clientGo, running(s.cloud.pod.Status))
}

// TestBriefFromTheFuture: an object with fields that are not known here is never the base of an answer.
func TestBriefFromTheFuture(t *testing.T) {
	s := newSite(t)
	o := *s.held
	o.Raw = append(append([]byte{}, o.Raw...), 0xfa, 0x3f, 0) // field 1023, empty
	s.held = &o
	if _, _, made := s.patch(clientGo, running(s.cloud.pod.Status)); made != 0 {
		t.Errorf("made at %d", made)
	}
}

// TestBriefIsBounded: watches that end leave answers behind that nobody shows.
func TestBriefIsBounded(t *testing.T) {
	s := newSite(t)
	for range maxDue + 10 {
		s.held = s.cloud.raw()
		if _, _, made := s.patch(clientGo, running(newPod().Status)); made == 0 {
			t.Fatal("not brief")
		}
		s.cloud.next()
	}
	if len(s.all) != maxDue {
		t.Errorf("%d answers are due", len(s.all))
	}
}

// FuzzPatch: whatever a patch says, nobody panics; and what is sent of it has the version, and is a patch.
func FuzzPatch(f *testing.F) {
	pod := newPod()
	f.Add(statusPatch(f, pod.UID, pod.Status, running(pod.Status)))
	f.Add(statusPatch(f, pod.UID, running(pod.Status), pod.Status))
	f.Add([]byte(`{"metadata":{"uid":"uid-1"},"status":{"conditions":[{"$patch":"replace"}],"$patch":"delete"}}`))
	f.Add([]byte(`{"status":{"$setElementOrder/containerStatuses":[]}}`)) // the library panics
	f.Add([]byte(`{"status":{"$retainKeys":["phase"],"podIPs":[{"ip":"1.2.3.4"}],"$deleteFromPrimitiveList/x":[1]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := patch(pod, "", body)
		if err != nil {
			return
		}
		var sent struct{ Metadata metav1.ObjectMeta }
		if err := json.Unmarshal(p.body, &sent); err == nil && sent.Metadata.ResourceVersion != pod.ResourceVersion {
			t.Errorf("%s is sent as %s", body, p.body)
		}
		if is := p.becomes.(*corev1.Pod); !equality.Semantic.DeepEqual(is.Spec, pod.Spec) || is.UID != pod.UID {
			t.Errorf("%s changes more than the status", body)
		}
	})
}
