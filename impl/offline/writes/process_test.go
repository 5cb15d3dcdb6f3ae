package writes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/store/queue"
)

// asHub makes the test binary be a hub's writes, for tests that need a process to kill: its value is the folder of the
// store and the address of the cloud.
const asHub = "WEIR_TEST_WRITES"

// runHub serves until it is killed. It says its address, and is told by /control whether the cloud is away.
func runHub() {
	dir, cloud, _ := strings.Cut(os.Getenv(asHub), "|")
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	s, err := store.Open(store.Config{
		Dir: dir, Logger: quiet, Queue: queue.Config{PushedPerSecond: 1000, EventsPerMinute: 60000, EventBurst: 1000},
	})
	must(err)
	go func() { must(s.Run(context.Background())) }()
	var reach atomic.Uint32
	reach.Store(uint32(member.CloudAway))
	door := doorTo{cloud, &http.Transport{}}
	w, err := New(Config{
		Node: nodeName, Store: s, Cloud: door, Reach: func() member.Reach { return member.Reach(reach.Load()) },
		Spread: time.Millisecond,
		Logger: quiet,
	})
	must(err)
	go func() { must(w.Run(context.Background())) }()
	api := hubHandler(w, door)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/control" {
			api.ServeHTTP(rw, req)
			return
		}
		if v := req.URL.Query().Get("reach"); v != "" {
			n, _ := strconv.Atoi(v)
			reach.Store(uint32(n))
			w.Changed()
		}
		fmt.Fprint(rw, s.Queue().Len())
	}))
	fmt.Println(server.URL)
	select {}
}

// hubProcess is a hub that can be killed.
type hubProcess struct {
	t     testing.TB
	env   string
	reach atomic.Uint32
	cmd   atomic.Pointer[exec.Cmd]
	url   string
	kills int
}

func (h *hubProcess) start() {
	h.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asHub+"="+h.env)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	check(h.t, err)
	check(h.t, cmd.Start())
	h.cmd.Store(cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil { // it was killed at once
		return
	}
	h.url = strings.TrimSpace(line)
	h.tell(member.Reach(h.reach.Load()))
}

// kill may be called by anybody; start waits for its end.
func (h *hubProcess) kill() { _ = h.cmd.Load().Process.Kill() }

// revive starts it again if it was killed.
func (h *hubProcess) revive() {
	h.t.Helper()
	_ = h.cmd.Load().Process.Kill()
	_ = h.cmd.Load().Wait()
	h.kills++
	h.start()
}

// call sends a request; code 0: no answer.
func (h *hubProcess) call(method, uri, media string, body []byte) (code int, answer string) {
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+uri, bytes.NewReader(body))
	check(h.t, err)
	req.Header.Set("Content-Type", media)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, b.String()
}

// tell says whether the cloud is away, and gives how much waits.
func (h *hubProcess) tell(r member.Reach) string {
	h.reach.Store(uint32(r))
	_, n := h.call("GET", "/control?reach="+strconv.Itoa(int(r)), "", nil)
	return n
}

// written is what one object was written: values only grow.
type written struct {
	path, uid       string
	tried, answered int
}

// TestNothingLostNothingDoubled: a node writes while links break before and after a request does its work, the hub is
// killed by the cloud at any request and at any other time, others change, delete and replace objects. In the end the
// cloud has the last write of each object, has seen each value at most once and in order, and has all that others
// wrote.
func TestNothingLostNothingDoubled(t *testing.T) {
	seed, steps := uint64(31), 1200
	if v := os.Getenv("WEIR_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		check(t, err)
		seed = n
	}
	if testing.Short() {
		steps = 300
	}
	t.Logf("seed %d; another by WEIR_SEED", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	cloud := newFakeCloud(t)
	dir := t.TempDir()
	s, err := store.Open(store.Config{Dir: dir, Logger: quiet})
	check(t, err)
	objects := []*written{{path: nodePath, uid: "uid-node"}}
	show(t, s, nodeKind(), nodes(), cloud.add(testNode()))
	for i := range 5 {
		name := fmt.Sprint("p", i)
		show(t, s, podKind(), pods(), cloud.add(testPod(name)))
		objects = append(objects, &written{path: podPath(name), uid: "uid-" + name})
	}
	s.Close()
	u, err := url.Parse(cloud.server.URL)
	check(t, err)
	hub := &hubProcess{t: t, env: dir + "|" + u.Host}
	hub.reach.Store(uint32(member.CloudAway))

	// Faults happen under the cloud's lock.
	var cut, faulty atomic.Bool
	cut.Store(true)
	inCloud := rand.New(rand.NewPCG(seed, 2))
	kills := 0
	cloud.fault = func(string, string, bool) bool {
		switch {
		case cut.Load():
			return true
		case !faulty.Load():
			return false
		case inCloud.IntN(12) == 0:
			kills++
			hub.kill()
			return true
		}
		return inCloud.IntN(5) == 0
	}
	hub.start()
	defer func() { hub.kill(); _ = hub.cmd.Load().Wait() }()

	theirs, events, replaced := map[string]int{}, map[string]*written{}, 0
	for step := range steps {
		if code, _ := hub.call("GET", "/control", "", nil); code == 0 {
			hub.revive()
		}
		switch n := random.IntN(100); {
		case n < 55:
			o := objects[random.IntN(len(objects))]
			o.tried = step + 1
			code, answer := hub.call("PATCH", o.path+"/status", strategic, statusPatch(o))
			if code == http.StatusOK {
				o.answered = o.tried
			} else if code != 0 && code < 500 && code != http.StatusConflict && code != http.StatusForbidden &&
				code != http.StatusNotFound {
				t.Fatalf("step %d: %d %s", step, code, answer)
			}
		case n < 70:
			name := fmt.Sprint("e", random.IntN(8))
			if events[name] == nil {
				events[name] = &written{path: "/api/v1/namespaces/default/events/" + name}
			}
			recordOnce(hub, name, events[name])
		case n < 80: // somebody else
			o := objects[random.IntN(len(objects))]
			theirs[o.path] = step
			cloud.change(o.path, func(d document) { setTheirs(t, d, step) })
		case n < 88:
			cut.Store(!cut.Load())
			reach := member.CloudHere
			if cut.Load() {
				reach = member.CloudAway
			}
			hub.tell(reach)
		case n < 95:
			faulty.Store(!faulty.Load())
		case n < 98:
			hub.kill()
		case replaced < 3:
			replaced++
			o := objects[1+random.IntN(len(objects)-1)]
			cloud.delete(o.path)
			p := testPod(o.path[strings.LastIndex(o.path, "/")+1:])
			o.uid = fmt.Sprint("again-", step)
			p.UID = types.UID(o.uid)
			cloud.add(p)
			cloud.mu.Lock()
			delete(cloud.history, o.path)
			cloud.mu.Unlock()
			o.tried, o.answered = 0, 0
			delete(theirs, o.path)
		}
	}
	faulty.Store(false)
	cut.Store(false)
	eventually(t, "the queue to be empty", func() bool {
		if code, _ := hub.call("GET", "/control", "", nil); code == 0 {
			hub.revive()
		}
		return hub.tell(member.CloudHere) == "0"
	})

	count := 0
	for _, o := range objects {
		d := cloud.get(o.path)
		last, history := valueOf(d), cloud.history[o.path]
		count += len(history)
		if last < o.answered || last > o.tried {
			t.Errorf("%s: the cloud has the write %d, %d was answered, %d was tried; it saw %v", o.path, last, o.answered,
				o.tried, history)
		}
		ascends(t, o.path, history)
		if want, ok := theirs[o.path]; ok && !strings.Contains(string(d["status"]), fmt.Sprintf(`"theirs-%d"`, want)) {
			t.Errorf("%s: what others wrote is gone: %s lacks %d", o.path, d["status"], want)
		}
	}
	for name, e := range events {
		d := cloud.get(e.path)
		got, _ := strconv.Atoi(string(d["count"]))
		if got < e.answered || got > e.tried || cloud.creates[e.path] > 1 {
			t.Errorf("%s: the cloud counts %d and created it %d times, %d was answered, %d was tried", name, got,
				cloud.creates[e.path], e.answered, e.tried)
		}
		ascends(t, e.path, cloud.history[e.path])
	}
	t.Logf("the hub was killed %d times, %d of them by the cloud; the cloud took %d statuses", hub.kills, kills, count)
	if hub.kills < steps/40 || kills == 0 || count < steps/40 {
		t.Error("the test does not test much")
	}
}

// statusPatch is a status of which several values tell its number.
func statusPatch(o *written) []byte {
	v := strconv.Itoa(o.tried)
	status := map[string]any{"message": v, "reason": v, "hostIP": v, "podIP": v}
	if o.path == nodePath {
		status = map[string]any{"nodeInfo": map[string]any{"bootID": v, "kernelVersion": v, "osImage": v, "machineID": v}}
	}
	b, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.uid}, "status": status})
	return b
}

func valueOf(d document) int {
	status := d.in("status")
	n, _ := strconv.Atoi(status.text("message") + status.in("nodeInfo").text("bootID"))
	return n
}

// recordOnce does what a recorder does, once.
func recordOnce(hub *hubProcess, name string, e *written) {
	count := e.answered + 1
	e.tried = max(e.tried, count)
	if e.answered > 0 {
		code, _ := hub.call("PATCH", e.path, strategic, fmt.Appendf(nil, `{"count":%d}`, count))
		if code == http.StatusOK {
			e.answered = count
			return
		}
		if code != http.StatusNotFound {
			return
		}
	}
	body := fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"default"},"count":%d}`, name, count)
	code, _ := hub.call("POST", "/api/v1/namespaces/default/events", mediaJSON, body)
	switch code {
	case http.StatusCreated:
		e.answered = count
	case http.StatusConflict: // an answer was lost: a recorder takes that for success
		e.answered = max(e.answered, 1)
	}
}

func setTheirs(t testing.TB, d document, n int) {
	t.Helper()
	var status struct {
		Conditions []corev1.PodCondition `json:"conditions"`
	}
	check(t, json.Unmarshal(d["status"], &status))
	status.Conditions = slices.DeleteFunc(status.Conditions,
		func(c corev1.PodCondition) bool { return c.Type == "Theirs" })
	status.Conditions = append(status.Conditions, corev1.PodCondition{
		Type: "Theirs", Status: corev1.ConditionTrue, Reason: fmt.Sprint("theirs-", n),
	})
	b, err := json.Marshal(status.Conditions)
	check(t, err)
	s, err := d.in("status").with("conditions", b).bytes()
	check(t, err)
	d["status"] = s
}

// ascends checks that values were written once, and in order.
func ascends(t testing.TB, path string, history []string) {
	t.Helper()
	last := 0
	for _, v := range history {
		n, err := strconv.Atoi(v)
		if err != nil || n <= last {
			t.Errorf("%s: the cloud saw %v", path, history)
			return
		}
		last = n
	}
}
