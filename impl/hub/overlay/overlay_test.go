package overlay

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const was, now = "10.0.0.1 ready", "10.0.0.9 ready*"

// TestOutage: what a kubelet says of its pod is shown by all hubs that are cut off, until the cloud says the same or
// has the last word. While the cloud is there, nothing is laid over, and next to nothing is asked.
func TestOutage(t *testing.T) {
	b := newBed(t, "a", "b")
	both := []string{"a", "b"}
	b.passes(15*time.Minute, both...)
	for n, h := range b.hubs {
		if h.asked > 4 || h.said > 4 || h.laying.Load() {
			t.Errorf("with the cloud, %s asked %d times", n, h.asked)
		}
	}
	b.hubs["a"].statuses["a"] = "10.0.0.9"
	b.steps(both...)
	b.want("with the cloud", was, both...)
	b.cut(true)
	b.steps(both...)
	b.want("cut off", now, both...)
	b.passes(10*time.Minute, both...)
	b.want("ten minutes later", now, both...)
	if said := b.hubs["a"].said; said > 4+10*60/5+1 {
		t.Errorf("%d statements in ten minutes", said)
	}

	b.cut(false)
	b.passes(10*time.Second, both...)
	b.want("the cloud is back, and does not know yet", now, both...)
	a := b.hubs["a"] // now it does
	delete(a.statuses, "a")
	a.known["a"], a.since["a"] = "10.0.0.9", b.clock.Now()
	b.passes(10*time.Second, both...)
	b.want("its slices do not", now, both...)
	for _, h := range b.hubs {
		h.apply(slice(t, "web", 1<<21+1, "a 10.0.0.9"))
	}
	b.passes(10*time.Second, both...)
	b.want("they do", "10.0.0.9 ready", both...)
	for n, h := range b.hubs {
		if h.outage.on || h.set.Len() > 0 {
			t.Errorf("it is not over for %s: %d corrections", n, h.set.Len())
		}
	}
}

// TestNotHeard: while a pool is not heard, the cloud makes all of its pods not ready. When it is back, nobody is shown
// that of pods whose kubelets have not said so, whichever hub hears of which object first.
func TestNotHeard(t *testing.T) {
	both := []string{"a", "b"}
	var b *bed
	var a *hub
	begin := func(cut time.Duration) {
		b = newBed(t, both...)
		a = b.hubs["a"]
		a.known["a"] = "10.0.0.1"
		b.passes(time.Minute, both...)
		b.cut(true)
		b.passes(cut, both...)
		b.want("cut off", was, both...)
		b.cut(false)
		for _, h := range b.hubs {
			h.apply(slice(t, "web", 1<<21+1, "a 10.0.0.1 not"))
		}
	}
	over := func(want string) {
		t.Helper()
		b.passes(10*time.Second, both...)
		b.want("the cloud has the word", want, both...)
		for n, h := range b.hubs {
			if h.outage.on || h.set.Len() > 0 {
				t.Errorf("it is not over for %s: %d corrections", n, h.set.Len())
			}
		}
	}
	for _, silent := range []time.Duration{0, 12 * time.Second, 40 * time.Second} {
		begin(2 * time.Minute)
		b.steps("b", "a")
		b.want("b heard of the slice first", was+"*", both...)
		b.passes(10*time.Second, both...)
		a.known["a"], a.since["a"] = "10.0.0.1 marked", b.clock.Now()
		b.passes(silent, both...)
		b.want("a heard of its pod", was+"*", both...)
		a.known["a"], a.since["a"] = "10.0.0.1", b.clock.Now()
		b.passes(10*time.Second, both...)
		b.want("the kubelet has said it again", was+"*", both...)
		for _, h := range b.hubs {
			h.apply(slice(t, "web", 1<<21+2, "a 10.0.0.1"))
		}
		b.passes(stands, both...)
		over(was)
	}

	begin(2 * time.Minute)
	a.known["a"] = "10.0.0.1 not"
	b.passes(readEvery, both...)
	b.want("its kubelet says so, too", "10.0.0.1 not ready", both...)
	b.passes(stands, both...)
	over("10.0.0.1 not ready")

	begin(2 * time.Minute)
	a.known["a"] = "10.0.0.1 marked"
	b.passes(returns-10*time.Second, both...)
	b.want("its kubelet says nothing", was+"*", both...)
	b.passes(10*time.Second+readEvery, both...)
	over("10.0.0.1 not ready")

	begin(marks - 2*readEvery)
	if n := a.set.Len(); n != 0 {
		t.Errorf("cut off for less than the cloud waits: %d corrections", n)
	}
}

// TestLinkBreaksBehindAStatus: the cloud has the status of a pod, and the link breaks before its slices come.
func TestLinkBreaksBehindAStatus(t *testing.T) {
	b := newBed(t, "a", "b")
	both := []string{"a", "b"}
	b.passes(2*time.Minute, both...)
	a := b.hubs["a"]
	a.known["a"], a.since["a"] = "10.0.0.9", b.clock.Now()
	b.steps(both...)
	b.want("with the cloud", was, both...)
	b.cut(true)
	b.steps(both...)
	b.want("cut off", now, both...)
	a.restart()
	b.passes(20*time.Minute, both...)
	b.want("later, after a restart", now, both...)
	b.cut(false)
	b.passes(10*time.Second, both...)
	b.want("the cloud is back", now, both...)
	for _, h := range b.hubs {
		h.apply(slice(t, "web", 1<<21+1, "a 10.0.0.9"))
	}
	b.passes(10*time.Second, both...)
	b.want("its slices have come", "10.0.0.9 ready", both...)

	// Slices that never follow, as those of another network, are left alone.
	for _, h := range b.hubs {
		h.apply(slice(t, "web", 1<<21+2, "a 192.168.0.1"))
	}
	b.passes(lately, both...)
	b.cut(true)
	b.passes(time.Minute, both...)
	b.want("another network", "192.168.0.1 ready", both...)
}

// TestNotHeardBehindAStatus: the same, and the cloud then makes the pod not ready, since it did not hear the node.
// What a hub said of its address counts until the kubelet has spoken, also when the slices have that address.
func TestNotHeardBehindAStatus(t *testing.T) {
	b := newBed(t, "a", "b")
	both := []string{"a", "b"}
	b.passes(2*time.Minute, both...)
	a := b.hubs["a"]
	a.known["a"], a.since["a"] = "10.0.0.9", b.clock.Now()
	b.cut(true)
	b.passes(2*time.Minute, both...)
	b.want("cut off", now, both...)
	b.cut(false)
	for i, c := range []struct{ cloud, want string }{{"a 10.0.0.9", "10.0.0.9 ready"}, {"a 10.0.0.9 not", now}} {
		for _, h := range b.hubs {
			h.apply(slice(t, "web", 1<<21+1+uint64(i), c.cloud))
		}
		b.steps("b", "a")
		b.want("the slices say "+c.cloud, c.want, both...)
	}
	b.passes(10*time.Second, both...)
	b.want("its kubelet has said nothing so far", now, both...)
}

// TestSlicesStandStill: a relay brings a mark long after the link is back, when the kubelet has spoken again. Nobody is
// shown it, and the next slices are believed.
func TestSlicesStandStill(t *testing.T) {
	b := newBed(t, "a", "b")
	both := []string{"a", "b"}
	a := b.hubs["a"]
	a.known["a"] = "10.0.0.1"
	b.passes(time.Minute, both...)
	b.cut(true)
	b.passes(2*time.Minute, both...)
	a.since["a"], a.version = b.clock.Now(), wire.FormatVersion(1<<21+2)
	b.cut(false)
	b.passes(stands+10*time.Second, both...)
	for i, c := range []struct{ cloud, want string }{
		{"a 10.0.0.1 not", was + "*"}, {"a 10.0.0.1", was}, {"a 10.0.0.1 not", "10.0.0.1 not ready"},
	} {
		for _, h := range b.hubs {
			h.apply(slice(t, "web", 1<<21+1+2*uint64(i), c.cloud))
		}
		b.passes(readEvery, both...)
		b.want("the slices say "+c.cloud, c.want, both...)
	}
}

// TestCutAgain: the link breaks again when the cloud had the last word a moment before.
func TestCutAgain(t *testing.T) {
	b := newBed(t, "a", "b")
	both := []string{"a", "b"}
	b.hubs["a"].statuses["a"] = "10.0.0.9"
	b.steps(both...)
	b.cut(true)
	b.passes(time.Minute, both...)
	b.hubs["b"].away = false
	b.passes(returns+10*time.Second, both...)
	b.want("the cloud has the last word", was, "b")
	b.cut(true)
	b.passes(10*time.Second, both...)
	b.want("cut off again", now, both...)
}

// TestLastWord: what the cloud does not take is not shown for ever, and the next outage shows it again.
func TestLastWord(t *testing.T) {
	b := newBed(t, "a", "b")
	both := []string{"a", "b"}
	b.hubs["a"].statuses["a"] = "10.0.0.9"
	b.steps(both...)
	b.cut(true)
	b.passes(time.Minute, both...)
	b.cut(false)
	b.passes(returns-10*time.Second, both...)
	b.want("before the end", now, both...)
	b.passes(10*time.Second+readEvery, both...)
	b.want("the cloud had time", was, both...)
	asked := b.hubs["b"].asked
	b.passes(time.Minute, both...)
	if b.hubs["b"].asked > asked+1 {
		t.Errorf("asked on: %d times", b.hubs["b"].asked-asked)
	}
	b.cut(true)
	b.steps(both...)
	b.want("cut off again", now, both...)

	// A hub that dies while the cloud comes back does not have its pods corrected for ever.
	b.cut(false)
	b.passes(moved.Silence+10*time.Second, "b")
	b.want("its hub is dead", was, "b")
}

// TestDead: pods of a node that is not heard are not ready, if the whole pool is cut off and the desk can be read. A
// node that was dead from the start is known from before.
func TestDead(t *testing.T) {
	b := newBed(t, "a", "b", "c")
	b.steps("a", "b", "c")
	b.steps("b", "c")
	b.passes(helloEvery, "a", "b", "c")
	b.hubs["c"].restart() // what it knows is on the disk
	b.cut(true)
	b.passes(moved.Silence+10*time.Second, "b", "c")
	b.want("its relay heard of the cloud lately", "10.0.0.1 not ready*", "b", "c")
	b.steps("a", "b", "c")
	b.steps("b", "c")
	b.want("it is heard again", was, "a", "b", "c")

	b.hubs["b"].alone = true
	b.passes(2*moved.Silence, "a", "b", "c")
	b.want("b does not reach the desk", was, "a", "b", "c")
	if got := b.hubs["c"].shows("other"); got != "10.0.0.2 not ready*" {
		t.Errorf("c shows %q of b", got)
	}
	b.cut(false)
	b.steps("c")
	if got := b.hubs["c"].shows("other"); got != "10.0.0.2 ready" {
		t.Errorf("with the cloud, c shows %q of b", got)
	}
}

// TestReboot: after its machine was started, a pod is where its kubelet says, and nowhere before. A hub that alone was
// started leaves it where it is.
func TestReboot(t *testing.T) {
	for _, waits := range []string{"", "10.0.0.8"} {
		b := newBed(t, "a", "b")
		both := []string{"a", "b"}
		a := b.hubs["a"]
		a.known["a"], a.boot = "10.0.0.1", "first"
		a.restart()
		b.passes(readEvery, both...)
		b.cut(true)
		before := was
		if waits != "" {
			a.statuses["a"], before = waits, waits+" ready*"
		}
		b.passes(10*time.Second, both...)
		b.want("before", before, both...)
		a.restart()
		b.passes(10*time.Second, both...)
		b.want("its hub was started", before, both...)
		a.boot, a.away, a.unknown = "second", false, true
		a.restart()
		b.passes(readEvery, both...)
		b.want("its machine was started, and nothing is known of the cloud", "none*", "b")
		a.away, a.unknown = true, false
		b.passes(readEvery, both...)
		b.want("its machine was started", "none*", both...)
		a.statuses["a"] = "10.0.0.1"
		b.passes(readEvery, both...)
		b.want("its kubelet has said that it is where it was", was, both...)
		a.statuses["a"] = "10.0.0.9"
		b.passes(readEvery, both...)
		b.want("its kubelet has said where it is", now, both...)
		a.boot = "third"
		a.restart()
		b.passes(readEvery, both...)
		b.want("its machine was started again", "none*", both...)
		b.cut(false)
		b.passes(returns+readEvery, both...)
		b.want("the cloud has the last word", was, both...)
	}
}

// TestDeadBeforeItStates: nodes of a pool that has just started know each other, though no desk was there at first.
func TestDeadBeforeItStates(t *testing.T) {
	b := newBed(t, "a", "b")
	for _, h := range b.hubs {
		h.alone = true
	}
	b.passes(readEvery, "a", "b")
	for _, h := range b.hubs {
		h.alone = false
	}
	b.passes(2*moved.Every, "a", "b")
	b.cut(true)
	b.passes(deadWithin, "b")
	b.want("a has died", "10.0.0.1 not ready*", "b")
}

// TestDeadSince: how long a node has not been heard, a hub that starts in an outage finds out from the desk.
func TestDeadSince(t *testing.T) {
	b := newBed(t, "a", "b", "c")
	b.steps("a", "b", "c")
	b.cut(true)
	b.passes(20*time.Second, "a", "b", "c")
	b.passes(20*time.Second, "b")
	b.hubs["c"].restart()
	b.passes(moved.Silence-20*time.Second+readEvery, "b", "c") // since 10 s before the power of a was lost
	b.want("dead for half a minute", "10.0.0.1 not ready*", "b", "c")
	b.passes(moved.Silence, "b", "c")
	if got := b.hubs["c"].shows("other"); got != "10.0.0.2 ready" {
		t.Errorf("c shows %q of b, which lives", got)
	}
}

// TestCutOffAlone: a node that is cut off alone does not take others for dead.
func TestCutOffAlone(t *testing.T) {
	b := newBed(t, "a", "b")
	b.steps("a", "b")
	b.steps("a", "b")
	b.hubs["b"].away = true
	for range 40 {
		b.clock.Step(readEvery)
		b.hubs["b"].apply(slice(t, "noise", b.hubs["b"].relay.Status().Version+1, "z 10.0.0.7")) // the pool hears the cloud
		b.steps("b")
	}
	b.want("its pool hears the cloud", was, "b")
}

// TestForged: what its node has not signed does not count, whoever gives it.
func TestForged(t *testing.T) {
	b := newBed(t, "a", "b")
	b.hubs["a"].statuses["a"] = "10.0.0.9"
	b.forge = func(s moved.Signed) moved.Signed {
		s.Text = strings.Replace(s.Text, "10.0.0.9", "10.0.0.8", 1)
		return s
	}
	b.cut(true)
	b.passes(10*time.Second, "a", "b")
	b.want("forged", was, "b")
	b.want("its own", now, "a")
}

// TestDeskIsLost: hubs hand in again what a desk has lost.
func TestDeskIsLost(t *testing.T) {
	b := newBed(t, "a", "b", "c")
	b.hubs["a"].statuses["a"] = "10.0.0.9"
	b.cut(true)
	b.passes(10*time.Second, "a", "b")
	b.desk.Reset()
	b.passes(10*time.Second, "a", "b", "c")
	b.want("the desk is another one", now, "a", "b", "c")
}

// TestNumbers: those of statements grow over restarts, also when the file is lost.
func TestNumbers(t *testing.T) {
	b := newBed(t, "a")
	a, last := b.hubs["a"], uint64(0)
	a.statuses["a"] = "10.0.0.9"
	b.cut(true)
	for i := range 4 {
		b.passes(20*time.Second, "a")
		if a.speaker.last.Beat <= last {
			t.Fatalf("restart %d: %d after %d", i, a.speaker.last.Beat, last)
		}
		last = a.speaker.last.Beat
		if i == 0 { // a machine without a battery
			b.clock.SetTime(b.clock.Now().Add(-time.Hour))
		}
		if i == 2 {
			check(t, os.Remove(a.file.path))
			b.clock.Step(2 * time.Hour)
		}
		a.restart()
	}
	check(t, os.WriteFile(a.file.path, []byte("{"), 0o600))
	a.restart()
	b.passes(20*time.Second, "a")
	b.want("the file is damaged", now, "a")
}

// TestWatches: what clients are shown, however their watch began.
func TestWatches(t *testing.T) {
	b := newBed(t, "a")
	a := b.hubs["a"]
	const marks = "&allowWatchBookmarks=true"
	early, plain := a.watches("resourceVersion=2097152"+marks), a.watches("resourceVersion=2097152")
	b.steps("a")
	b.cut(true)
	a.statuses["a"] = "10.0.0.9"
	b.steps("a")
	a.hears("open", early, "MODIFIED web "+now, "BOOKMARK 2097152")
	a.hears("open, without bookmarks", plain, "MODIFIED web "+now)
	late := a.watches("resourceVersion=2097152" + marks)
	a.hears("resumed", late, "MODIFIED web "+now, "BOOKMARK 2097152")
	streaming := a.watches("sendInitialEvents=true&resourceVersionMatch=NotOlderThan" + marks)
	a.hears("streaming list", streaming, "ADDED other 10.0.0.2 ready", "ADDED web "+now, "END 2097152")
	ahead := a.watches("resourceVersion=2097160" + marks)
	a.hears("ahead", ahead, "MODIFIED web "+now, "BOOKMARK 2097152")

	a.apply(slice(t, "other", 2097153, "b 10.0.0.3"))
	a.apply(slice(t, "web", 2097154, "a 10.0.0.1"))
	a.hears("what the cloud said, corrected", early,
		"MODIFIED other 10.0.0.3 ready", "MODIFIED web "+now, "BOOKMARK 2097154")
	a.hears("what is new for who is ahead", ahead, "MODIFIED web "+now, "BOOKMARK 2097154")

	a.restart()
	delete(a.statuses, "a")
	back := a.watches("resourceVersion=2097154" + marks)
	a.hears("after a restart, without a correction", back, "MODIFIED web "+was)
	a.apply(slice(t, "web", 2097155, "a 10.0.0.4"))
	b.cut(false)
	b.passes(helloEvery, "a")
	a.hears("the cloud has changed it", back, "MODIFIED web 10.0.0.4 ready")
	if n := len(a.file.kept.Owed[slicesOf]); n != 0 {
		t.Errorf("%d objects are owed for ever", n)
	}
}

// TestPods: where a pool shares Pods, they are shown with what their kubelets say, until the relay of Pods says it.
func TestPods(t *testing.T) {
	b := newBed(t, "a", "b")
	h := b.hubs["b"]
	of := func(version uint64, address string) *wire.Object {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "a", ResourceVersion: wire.FormatVersion(version),
			},
			Spec: corev1.PodSpec{NodeName: "a"},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: address,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			},
		}
		raw, err := p.Marshal()
		check(t, err)
		o, err := wire.ParseObject(wire.Protobuf, raw)
		check(t, err)
		return o
	}
	res, err := relay.ParseResource(pods)
	check(t, err)
	h.pods, err = relay.New(relay.Config{Resource: res, Clock: b.clock, Gather: -1})
	check(t, err)
	was := of(1<<21, "10.0.0.1")
	check(t, h.pods.Replace(1<<21, []*wire.Object{was}))
	shows := func(what, address string, corrected bool) {
		t.Helper()
		o := h.pods.Object("shop/web")
		x := h.Over(h.pods).Show(o)
		var p corev1.Pod
		check(t, p.Unmarshal(x.Raw))
		if p.Status.PodIP != address || (x.Version < o.Version) != corrected {
			t.Errorf("%s: %s with version %d of %d", what, p.Status.PodIP, x.Version, o.Version)
		}
	}
	b.steps("a", "b")
	shows("with the cloud", "10.0.0.1", false)
	b.hubs["a"].statuses["a"] = "10.0.0.9"
	b.cut(true)
	b.steps("a", "b")
	shows("cut off", "10.0.0.9", true)
	b.cut(false)
	a := b.hubs["a"]
	delete(a.statuses, "a")
	a.known["a"], a.since["a"], a.version = "10.0.0.9", b.clock.Now(), wire.FormatVersion(1<<21+1)
	a.apply(slice(t, "web", 1<<21+2, "a 10.0.0.9"))
	h.apply(slice(t, "web", 1<<21+2, "a 10.0.0.9"))
	b.passes(10*time.Second, "a", "b")
	shows("the slices say it, the relay of Pods does not", "10.0.0.9", true)
	ev := &wire.Event{Type: wire.Modified, Object: of(1<<21+1, "10.0.0.9"), Version: 1<<21 + 1}
	ev.Frame = wire.AppendProtobufFrame(nil, ev.Type, res.WireKind(), ev.Object.Raw)
	check(t, h.pods.Apply(ev))
	b.passes(10*time.Second, "a", "b")
	shows("both say it", "10.0.0.9", false)
	if h.set.Len() > 0 {
		t.Errorf("%d corrections", h.set.Len())
	}
}
