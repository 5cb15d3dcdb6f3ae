package offlinetest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
)

var howOften = flag.Int("kills", 10, "how often TestKills kills the hub")

const (
	strategicPatch = "application/strategic-merge-patch+json"
	eventsPath     = "/api/v1/namespaces/default/events"
	// writtenPods are the pods whose status is written.
	writtenPods = 4
	// callPatience is of one write; who writes does not know then what became of it.
	callPatience = 300 * time.Millisecond
)

// TestKills: while a kubelet writes statuses and Events, its link is cut and healed, and its hub is killed (kill -9),
// at times that the seed decides or just when the cloud has got something: then the hub has not noted it yet. In the
// end the cloud has the last write of all, and never had one twice or late.
func TestKills(t *testing.T) {
	seed := uint64(36)
	if v := os.Getenv("WEIR_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		check(t, err)
		seed = n
	}
	t.Logf("seed %d, another by WEIR_SEED; %d kills, more by -kills", seed, *howOften)
	b := newBed(t, parts.Flags{
		"heartbeat-interval": "200ms", "heartbeat-timeout": "200ms", "heartbeat-failed-retry": 1,
		"log-level": "info",
	})
	b.fill(writtenPods, writtenPods)
	k := newKubelet(b, seed)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	k.follow(ctx, &all)
	writing, written := context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() { k.write(writing, rand.New(rand.NewPCG(seed, 1))) })
	k.lives(ctx, rand.New(rand.NewPCG(seed, 2)))
	written()
	writer.Wait()
	b.link.HealAll()
	eventually(t, "all to be pushed", func() bool {
		return b.metric("weir_queue_entries") == 0 && b.metric("weir_offline_phase", "phase", "open") == 1
	})
	k.judge()
}

// one is something that is written again and again: its values only grow.
type one struct {
	path, name, uid string
	event           bool
	tried, answered int
	theirs          int // what somebody else wrote last to its status

	// What the cloud showed; guarded by testKubelet.mu.
	history []int
	last    runtime.Object
	doubled int
}

// testKubelet writes, and knows what became of it in the cloud.
type testKubelet struct {
	*bed
	client  *http.Client
	objects []*one // the node first
	events  []*one // who writes has them

	mu     sync.Mutex
	byName map[string]*one
	alive  chan struct{} // closed while the hub runs
	seen   chan struct{} // has one when the cloud shows something new

	// kills: while cut off, meant for and just when something had arrived, after which something waited.
	cut, tries, caught, waiting int
}

func newKubelet(b *bed, seed uint64) *testKubelet {
	k := &testKubelet{
		bed: b, client: b.httpClient(), byName: map[string]*one{}, alive: make(chan struct{}), seen: make(chan struct{}, 1),
	}
	k.client.Timeout = callPatience
	close(k.alive)
	kubelet, err := kubernetes.NewForConfig(b.kubelet("kubelet/v1", runtime.ContentTypeJSON))
	check(b.t, err)
	var n *corev1.Node
	var pods *corev1.PodList
	eventually(b.t, "the cloud to be there, and to let the kubelet read its node and its pods", func() bool {
		n, err = kubelet.CoreV1().Nodes().Get(b.t.Context(), edge, metav1.GetOptions{})
		if err == nil {
			pods, err = kubelet.CoreV1().Pods("").List(b.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + edge})
		}
		return err == nil
	})
	k.objects = append(k.objects, &one{path: "/api/v1/nodes/" + edge, name: edge, uid: string(n.UID)})
	for _, p := range pods.Items {
		k.objects = append(k.objects, &one{
			path: "/api/v1/namespaces/default/pods/" + p.Name, name: p.Name, uid: string(p.UID),
		})
	}
	if len(k.objects) != 1+writtenPods {
		b.t.Fatalf("%d objects", len(k.objects))
	}
	for _, o := range k.objects {
		k.know(o)
	}
	k.kept(1)
	return k
}

func (k *testKubelet) know(o *one) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byName[o.name] = o
}

// follow notes what the cloud shows, until ctx ends.
func (k *testKubelet) follow(ctx context.Context, all *sync.WaitGroup) {
	core := k.admin.CoreV1()
	for what, open := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		"pods": core.Pods("default").Watch, "nodes": core.Nodes().Watch, "events": core.Events("default").Watch,
	} {
		w, err := open(ctx, metav1.ListOptions{})
		check(k.t, err)
		all.Go(func() {
			defer w.Stop()
			for e := range w.ResultChan() {
				k.note(e.Object)
			}
			if ctx.Err() == nil {
				k.t.Errorf("the watch of %s ended", what)
			}
		})
	}
}

// valueOf is the number of a write; 0: none.
func valueOf(o runtime.Object) (name string, value int, part any) {
	switch o := o.(type) {
	case *corev1.Node:
		value, _ = strconv.Atoi(o.Status.NodeInfo.BootID)
		return o.Name, value, o.Status
	case *corev1.Pod:
		value, _ = strconv.Atoi(o.Status.Message)
		return o.Name, value, o.Status
	case *corev1.Event:
		return o.Name, int(o.Count), o.Count
	}
	return "", 0, nil
}

func (k *testKubelet) note(o runtime.Object) {
	name, value, part := valueOf(o)
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.byName[name]
	if x == nil || value == 0 {
		return
	}
	if x.last != nil {
		if _, _, before := valueOf(x.last); equality.Semantic.DeepEqual(part, before) {
			x.doubled++ // it was written again, though it changed nothing
			k.t.Logf("%s: %d was written again", name, value)
		}
	}
	x.last = o
	if n := len(x.history); n == 0 || x.history[n-1] != value {
		x.history = append(x.history, value)
	}
	select {
	case k.seen <- struct{}{}:
	default:
	}
}

// call sends a write; 0: nobody knows what became of it.
func (k *testKubelet) call(ctx context.Context, method, path, media, body string) int {
	req, err := http.NewRequestWithContext(ctx, method, k.url+path, bytes.NewReader([]byte(body)))
	check(k.t, err)
	req.Header.Set("Content-Type", media)
	req.Header.Set("User-Agent", "kubelet/v1")
	resp, err := k.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return 0
	case resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests &&
		resp.StatusCode != http.StatusConflict && resp.StatusCode != http.StatusNotFound:
		k.t.Errorf("%s %s: %s %s", method, path, resp.Status, answer)
	}
	return resp.StatusCode
}

// write writes until ctx ends, one thing after another, as a kubelet does: what was not answered is followed by what is
// true then.
func (k *testKubelet) write(ctx context.Context, rnd *rand.Rand) {
	number := 0
	var event *one
	for ctx.Err() == nil {
		number++
		var code int
		switch n := rnd.IntN(10); {
		case n == 0 && (event == nil || event.answered > 0):
			event = &one{name: fmt.Sprintf("event-%d", number), event: true}
			event.path = eventsPath + "/" + event.name
			k.events = append(k.events, event)
			k.know(event)
			code = k.record(ctx, event)
		case n < 3 && event != nil:
			code = k.record(ctx, event)
		default:
			code = k.report(ctx, k.objects[rnd.IntN(len(k.objects))], number)
		}
		if code == 0 {
			k.mu.Lock()
			alive := k.alive
			k.mu.Unlock()
			select {
			case <-alive:
			case <-ctx.Done():
			}
		}
		wait(ctx, time.Duration(rnd.IntN(int(20*time.Millisecond))))
	}
}

// report writes a status of which several values tell its number.
func (k *testKubelet) report(ctx context.Context, o *one, number int) int {
	o.tried = number
	now := metav1.Now().UTC().Format(time.RFC3339)
	ready := fmt.Sprintf(`"conditions":[{"type":"Ready","status":"True","reason":"R%d","message":"%d",`+
		`"lastTransitionTime":%q}]`, number, number, now)
	status := fmt.Sprintf(`{"message":"%d","reason":"R%d",%s}`, number, number, ready)
	if o.name == edge {
		status = fmt.Sprintf(`{"nodeInfo":{"bootID":"%d","kernelVersion":"%d","osImage":"%d","machineID":"%d"},%s}`, number,
			number, number, number, ready)
	}
	code := k.call(ctx, http.MethodPatch, o.path+"/status", strategicPatch,
		fmt.Sprintf(`{"metadata":{"uid":%q},"status":%s}`, o.uid, status))
	if code == http.StatusOK {
		o.answered = number
	}
	return code
}

// record does what client-go's recorder does, once: an Event of which nobody knows whether it is there is created
// again, under its name.
func (k *testKubelet) record(ctx context.Context, e *one) int {
	count := e.answered + 1
	e.tried = max(e.tried, count)
	if e.answered > 0 {
		switch code := k.call(ctx, http.MethodPatch, e.path, strategicPatch, fmt.Sprintf(`{"count":%d}`, count)); code {
		case http.StatusOK:
			e.answered = count
			return code
		case http.StatusNotFound:
		default:
			return code
		}
	}
	code := k.call(ctx, http.MethodPost, eventsPath, "application/json", fmt.Sprintf(
		`{"metadata":{"name":%q,"namespace":"default"},"involvedObject":{"kind":"Pod","namespace":"default",`+
			`"name":"pod-00"},"reason":"Killed","message":"m","type":"Normal","count":%d}`, e.name, count))
	switch code {
	case http.StatusCreated:
		e.answered = count
	case http.StatusConflict: // an answer was lost: a recorder takes that for success
		e.answered = max(e.answered, 1)
	}
	return code
}

// lives kills the hub again and again.
func (k *testKubelet) lives(ctx context.Context, rnd *rand.Rand) {
	for i := range *howOften {
		if rnd.IntN(3) > 0 {
			k.toggle()
		}
		if rnd.IntN(2) == 0 {
			k.interfere(ctx, k.objects[1+rnd.IntN(writtenPods)], i+1)
		}
		k.live(ctx, rnd)
		k.mu.Lock()
		k.alive = make(chan struct{})
		alive := k.alive
		k.mu.Unlock()
		if len(k.link.Cuts()) > 0 {
			k.cut++
		}
		check(k.t, k.hub.Kill())
		if rnd.IntN(4) == 0 {
			k.toggle()
		}
		if i == *howOften-1 {
			k.link.HealAll()
		}
		check(k.t, k.hub.Start(ctx))
		close(alive)
		if k.metric("weir_queue_entries") > 0 {
			k.waiting++
		}
	}
}

// interfere has somebody else write a condition.
func (k *testKubelet) interfere(ctx context.Context, o *one, number int) {
	o.theirs = number
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Theirs","status":"True","message":"%d"}]}}`, number)
	_, err := k.admin.CoreV1().Pods("default").Patch(ctx, o.name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	check(k.t, err)
}

// live waits for the moment of a kill.
func (k *testKubelet) live(ctx context.Context, rnd *rand.Rand) {
	for range rnd.IntN(2) {
		wait(ctx, time.Duration(rnd.IntN(int(time.Second))))
		k.toggle()
	}
	if len(k.link.Cuts()) > 0 || rnd.IntN(3) == 0 {
		wait(ctx, time.Duration(rnd.IntN(int(2*time.Second))))
		return
	}
	k.tries++
	late := time.After(2 * time.Second)
	select {
	case <-k.seen: // of before
	default:
	}
	for range 1 + rnd.IntN(6) {
		select {
		case <-k.seen:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
	k.caught++
}

func (k *testKubelet) toggle() {
	if len(k.link.Cuts()) > 0 {
		k.link.HealAll()
		return
	}
	k.link.Cut(link.Both, "")
}

// judge compares what was answered with what the cloud has and had.
func (k *testKubelet) judge() {
	t, ctx := k.t, k.t.Context()
	core := k.admin.CoreV1()
	answered, events, lost, doubled := 0, 0, 0, 0
	for _, o := range slices.Concat(k.objects, k.events) {
		var object runtime.Object
		var err error
		switch {
		case o.event:
			object, err = core.Events("default").Get(ctx, o.name, metav1.GetOptions{})
		case o.name == edge:
			object, err = core.Nodes().Get(ctx, o.name, metav1.GetOptions{})
		default:
			object, err = core.Pods("default").Get(ctx, o.name, metav1.GetOptions{})
		}
		if apierrors.IsNotFound(err) {
			if o.answered > 0 {
				lost++
				t.Errorf("%s was answered, and is not there", o.name)
			}
			continue
		}
		check(t, err)
		_, value, _ := valueOf(object)
		if pod, ok := object.(*corev1.Pod); ok && o.theirs > 0 &&
			!slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == "Theirs" && c.Message == strconv.Itoa(o.theirs)
			}) {
			lost++
			t.Errorf("%s: what somebody else wrote, %d, is gone: %v", o.name, o.theirs, pod.Status.Conditions)
		}
		eventually(t, "all of it to be seen", func() bool {
			k.mu.Lock()
			defer k.mu.Unlock()
			n := len(o.history)
			return value == 0 || n > 0 && o.history[n-1] == value
		})
		k.mu.Lock()
		history, again := o.history, o.doubled
		k.mu.Unlock()
		if o.event {
			events++
		} else {
			answered += len(history)
		}
		for i, v := range history {
			if i > 0 && v <= history[i-1] {
				again++
			}
		}
		doubled += again
		if value < o.answered || value > o.tried || again > 0 {
			if value < o.answered {
				lost++
			}
			t.Errorf("%s: the cloud has %d, %d was answered, %d was tried; %d twice or late; it had %v", o.name, value,
				o.answered, o.tried, again, history[max(0, len(history)-30):])
		}
	}
	log, err := os.ReadFile(k.hub.LogFile())
	check(t, err)
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "is dropped") {
			t.Errorf("nothing is to be dropped: %s", line)
		}
	}
	t.Logf("%d kills: %d while cut off, %d just when something had arrived (of %d tries), %d after which something "+
		"waited; the cloud took %d statuses and %d events; lost_writes = %d, doubled_writes = %d",
		*howOften, k.cut, k.caught, k.tries, k.waiting, answered, events, lost, doubled)
	if *howOften >= 10 && (answered < *howOften || events == 0 || k.cut == 0 || k.caught == 0 || k.waiting == 0) {
		t.Error("the test does not test much")
	}
}

// wait waits for some time, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
