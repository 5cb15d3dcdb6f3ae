package writes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/store/queue"
)

func (b *bed) status(uri, status string) {
	b.t.Helper()
	if resp, body := b.send("PATCH", uri+"/status", []byte(`{"status":`+status+`}`), "Content-Type",
		strategic); resp.StatusCode != http.StatusOK {
		b.t.Fatalf("PATCH %s: %d %s", uri, resp.StatusCode, body)
	}
}

func (b *bed) say(name string, count int) {
	b.t.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":%q},"count":%d}`, name, count)
	if resp, answer := b.send("POST", "/api/v1/namespaces/default/events", []byte(body), "Content-Type",
		mediaJSON); resp.StatusCode != http.StatusCreated {
		b.t.Fatalf("an event: %d %s", resp.StatusCode, answer)
	}
}

const nodePath = "/api/v1/nodes/" + nodeName

// TestOrder: the node, then its pods in the order of their last writes, then clients, then Events.
func TestOrder(t *testing.T) {
	b := newBed(t, clock.RealClock{})
	b.knowNode()
	for i := range 3 {
		b.knowPod(fmt.Sprint("p", i))
	}
	b.set(member.CloudAway)
	b.say("e", 1)
	for _, i := range []int{0, 2, 1, 0} {
		b.status(podPath(fmt.Sprint("p", i)), `{"message":"w"}`)
		b.status(podPath(fmt.Sprint("p", i)), fmt.Sprintf(`{"message":"w%d"}`, rand.Int()))
	}
	b.status(nodePath, `{"conditions":[{"type":"Ready","status":"True","reason":"Offline"}]}`)
	b.run()
	b.set(member.CloudHere)
	eventually(t, "clients to see the cloud's state", func() bool { return !b.writes.Holding() })
	if got := b.cloud.written(); len(got) < 4 {
		t.Errorf("clients see the cloud's state after %v", got)
	}
	eventually(t, "the event", func() bool { return b.writes.queue.Len() == 0 })
	want := []string{nodePath, podPath("p2"), podPath("p1"), podPath("p0"), "/api/v1/namespaces/default/events/e"}
	if got := b.cloud.written(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v, want %v", got, want)
	}
	// What was pushed is what the store has from now on.
	b.set(member.CloudAway)
	var shown corev1.Pod
	check(t, shown.Unmarshal(b.shown(pods(), store.Key{Namespace: "default", Name: "p1"}, store.Protobuf)))
	if !strings.HasPrefix(shown.Status.Message, "w") {
		t.Errorf("away again, the pod has the status %+v", shown.Status)
	}
}

// TestConflicts: what others changed stays, what is gone is dropped, what is refused stops nobody.
func TestConflicts(t *testing.T) {
	b := newBed(t, clock.RealClock{})
	b.knowNode()
	for _, name := range []string{"changed", "deleted", "replaced", "moved", "refused", "invalid"} {
		b.knowPod(name)
	}
	b.set(member.CloudAway)
	for _, name := range []string{"changed", "deleted", "replaced", "moved", "refused", "invalid"} {
		b.status(podPath(name), `{"message":"mine","conditions":[{"type":"Ready","status":"True"}]}`)
	}
	b.status(nodePath, `{"conditions":[{"type":"Ready","status":"False"}]}`)
	b.say("e", 3)
	b.say("lost", 1)
	b.cloud.change(podPath("changed"), func(d document) {
		d["status"] = json.RawMessage(`{"reason":"theirs","newField":{"x":12345678901234567890},` +
			`"conditions":[{"type":"DisruptionTarget","status":"True"},{"type":"PodScheduled","status":"True"},` +
			`{"type":"Ready","status":"False"}]}`)
		d["spec"] = json.RawMessage(`{"nodeName":"` + nodeName + `","newField":12345678901234567890}`)
	})
	b.cloud.delete(podPath("deleted"))
	b.cloud.delete(podPath("replaced"))
	again := testPod("replaced")
	again.UID = "another"
	b.cloud.add(again)
	moved := testPod("moved")
	moved.Spec.NodeName, moved.UID = "edge-2", "another"
	b.cloud.add(moved)
	b.cloud.refuse[podPath("invalid")] = apierrors.NewBadRequest("no")
	ending := apierrors.NewForbidden(groupResource(target{Resource: pods()}), "x", fmt.Errorf("ends"))
	ending.ErrStatus.Details.Causes = append(ending.ErrStatus.Details.Causes, corev1Cause())
	b.cloud.refuse[podPath("refused")] = ending
	other := document{
		"kind": json.RawMessage(`"Event"`), "apiVersion": json.RawMessage(`"v1"`),
		"metadata": json.RawMessage(`{"name":"e","namespace":"default"}`), "count": json.RawMessage("2"),
	}
	b.cloud.set(pathFor(other), other)

	b.run()
	b.set(member.CloudHere)
	eventually(t, "the queue to be empty", func() bool { return b.writes.queue.Len() == 0 })
	d := b.cloud.get(podPath("changed"))
	for _, want := range []string{
		`"message":"mine"`, `"reason":"theirs"`, `"newField":{"x":12345678901234567890}`, `"DisruptionTarget"`,
	} {
		if !strings.Contains(string(d["status"]), want) {
			t.Errorf("the status %s lacks %s", d["status"], want)
		}
	}
	if !strings.Contains(string(d["spec"]), "12345678901234567890") {
		t.Errorf("the spec is %s", d["spec"])
	}
	for _, name := range []string{"replaced", "moved", "invalid"} {
		if d := b.cloud.get(podPath(name)); strings.Contains(string(d["status"]), "mine") {
			t.Errorf("%s has the status %s", name, d["status"])
		}
	}
	if d := b.cloud.get(pathFor(other)); string(d["count"]) != "3" {
		t.Errorf("the event was seen %s times", d["count"])
	}
	s := b.writes.queue.Stats()
	if s.Why[queue.Gone] != 2 || s.Why[queue.Replaced] != 1 || s.Why[queue.Refused] != 2 || s.Dropped != 5 ||
		s.Pushed != 4 {
		t.Errorf("%+v", s)
	}
}

// TestLaterWrite: a write must not overtake one of before that waits: it is queued, too, though the cloud is there.
func TestLaterWrite(t *testing.T) {
	b := newBed(t, clock.RealClock{})
	b.knowPod("web")
	b.knowPod("db")
	b.set(member.CloudAway)
	b.status(podPath("web"), `{"message":"first"}`)
	b.set(member.CloudHere) // nothing runs: it waits
	b.status(podPath("web"), `{"message":"second"}`)
	b.status(podPath("db"), `{"message":"at once"}`)
	if got := b.cloud.written(); len(got) != 1 || got[0] != podPath("db") {
		t.Fatalf("written: %v", got)
	}
	b.run()
	eventually(t, "the queue to be empty", func() bool { return b.writes.queue.Len() == 0 })
	if got := b.cloud.history[podPath("web")]; len(got) != 1 || got[0] != "second" {
		t.Errorf("the cloud saw %v", got)
	}
}

// TestPatience: clients get the cloud's latest state after a while also if what waits cannot be pushed.
func TestPatience(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	b := newBed(t, clk, func(c *Config) { c.Spread, c.Patience = 5*time.Second, 10*time.Second })
	b.knowPod("web")
	b.set(member.CloudAway)
	b.cloud.fault = func(method, _ string, before bool) bool { return before && method == "GET" }
	b.run()
	eventually(t, "the cloud to be away", func() bool { return b.writes.Phase() == Apart })
	b.status(podPath("web"), `{"message":"w"}`)
	clk.Step(time.Hour)
	b.set(member.CloudHere)
	began := clk.Now()
	eventually(t, "clients to see the cloud's state", func() bool {
		if clk.HasWaiters() {
			clk.Step(100 * time.Millisecond)
		}
		return !b.writes.Holding()
	})
	if d := clk.Since(began); d < 10*time.Second || d > 16*time.Second || b.writes.queue.Len() != 1 {
		t.Errorf("they do after %v", d)
	}
}

// TestForbidden: kube-apiserver says 403 as well while it starts; only one that stands counts.
func TestForbidden(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	b := newBed(t, clk)
	for i := range 3 {
		b.knowPod(fmt.Sprint("p", i))
	}
	b.set(member.CloudAway)
	for i := range 3 {
		b.status(podPath(fmt.Sprint("p", i)), `{"message":"w"}`)
	}
	no := apierrors.NewForbidden(groupResource(target{Resource: pods()}), "x",
		fmt.Errorf("not yet ready to handle request"))
	for i := range 3 {
		b.cloud.refuse[podPath(fmt.Sprint("p", i))] = no
	}
	b.run()
	b.set(member.CloudHere)
	began := clk.Now()
	eventually(t, "the queue to be empty", func() bool {
		if clk.HasWaiters() {
			clk.Step(100 * time.Millisecond)
		}
		if clk.Since(began) > 3*time.Second {
			b.cloud.mu.Lock()
			delete(b.cloud.refuse, podPath("p0"))
			b.cloud.mu.Unlock()
		}
		return b.writes.queue.Len() == 0
	})
	if d := clk.Since(began); d > 15*time.Second {
		t.Errorf("it took %v", d)
	}
	if s := b.writes.queue.Stats(); s.Pushed != 1 || s.Why[queue.Refused] != 2 {
		t.Errorf("%+v", s)
	}
}

// TestExpired: a certificate that has expired meanwhile costs no write. What waits is pushed when there is another one,
// and not before long.
func TestExpired(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	b := newBed(t, clk, func(c *Config) { c.Spread, c.Patience = 5*time.Second, 10*time.Second })
	b.knowNode()
	b.knowPod("web")
	b.set(member.CloudAway)
	b.status(nodePath, `{"conditions":[{"type":"Ready","status":"True","reason":"Offline"}]}`)
	b.status(podPath("web"), `{"message":"w"}`)
	b.say("e", 3)
	b.cloud.mu.Lock()
	b.cloud.expired = true
	b.cloud.mu.Unlock()
	b.run()
	eventually(t, "the cloud to be away", func() bool { return b.writes.Phase() == Apart })
	b.set(member.CloudHere)
	began := clk.Now()
	eventually(t, "some minutes to pass", func() bool {
		if clk.HasWaiters() {
			clk.Step(time.Second)
		}
		return clk.Since(began) > 5*time.Minute && b.writes.Phase() == Open
	})
	if s := b.writes.queue.Stats(); s.Entries != 3 || s.Dropped != 0 || s.Pushed != 0 {
		t.Errorf("with an expired certificate: %+v", s)
	}
	b.cloud.mu.Lock()
	b.cloud.expired = false
	b.cloud.mu.Unlock()
	done := b.writes.Renewing()
	if !b.writes.Holding() {
		t.Error("clients would be shown the cloud's state before what they wrote is there")
	}
	done()
	renewed := clk.Now()
	eventually(t, "the queue to be empty", func() bool {
		if clk.HasWaiters() && clk.Since(renewed) < time.Second { // events take turns
			clk.Step(10 * time.Millisecond)
		}
		return b.writes.queue.Len() == 0
	})
	if s := b.writes.queue.Stats(); s.Pushed != 3 || s.Dropped != 0 || b.writes.Holding() {
		t.Errorf("with a new one: %+v", s)
	}
	if got := strings.Join(b.cloud.written(), " "); got != nodePath+" "+podPath("web")+
		" /api/v1/namespaces/default/events/e" {
		t.Errorf("the cloud got %s", got)
	}
}
