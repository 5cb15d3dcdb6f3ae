package autonomy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runner"
)

const (
	scribeName    = "Scribe" // the type of its conditions, and the reason of its Events
	scribeEvery   = time.Second
	writePatience = 5 * time.Second
)

// scribe writes as a node's kubelet does, but never again: a kubelet compares its pods with the API every ten seconds,
// and so repairs what a hub has lost. What the API took of a scribe has to be in the cloud in the end.
type scribe struct {
	node, pod string

	serial   int   // of the last round of writes
	nodeTook int   // the last serial that the API took as a condition of the node
	podTook  int   // and of the pod
	events   []int // serials of all Events that it took

	served, refused, wrong int // reads of the node's pods while the cloud was away, by what came
}

// scribes are one for each node.
type scribes struct {
	all   []*scribe
	lines []string           // what is lost
	end   context.CancelFunc // nil: they were not started
	wait  sync.WaitGroup
}

// start lets them write until stop.
func (w *scribes) start(ctx context.Context, c *column) {
	ctx, w.end = context.WithCancel(ctx)
	for _, node := range c.nodes {
		s := &scribe{node: node}
		for _, name := range podNames(node, c.about.PodsPerNode) {
			if !isJob(name) {
				s.pod = name // the last one: faults delete the first
			}
		}
		w.all = append(w.all, s)
		w.wait.Go(func() { s.run(ctx, c) })
	}
}

// stop ends all and waits for them. It may be called twice.
func (w *scribes) stop() {
	if w.end != nil {
		w.end()
		w.wait.Wait()
	}
}

// taken is how many writes were taken.
func (w *scribes) taken() (n int) {
	for _, s := range w.all {
		n += s.nodeTook + s.podTook + len(s.events)
	}
	return n
}

// measure makes metrics of what came of writes, and of reads without the cloud.
func (w *scribes) measure(m report.Values) {
	var served, refused, wrong int
	for _, s := range w.all {
		served, refused, wrong = served+s.served, refused+s.refused, wrong+s.wrong
	}
	m["lost_writes"], m["taken_writes"] = float64(len(w.lines)), float64(w.taken())
	m["offline_reads_served"], m["offline_reads_refused"], m["wrong_answers"] = float64(served), float64(refused),
		float64(wrong)
}

// allWritten reports whether the cloud has all that was taken.
func (c *column) allWritten(ctx context.Context) (bool, string) {
	list, err := c.admin.CoreV1().Events(corev1.NamespaceDefault).List(ctx,
		metav1.ListOptions{FieldSelector: "reason=" + scribeName})
	if err != nil {
		return false, err.Error()
	}
	events := map[string]bool{}
	for i := range list.Items {
		events[list.Items[i].Name] = true
	}
	var lines []string
	for _, s := range c.writes.all {
		lost, err := s.lost(ctx, c, events)
		if err != nil {
			return false, err.Error()
		}
		lines = append(lines, lost...)
	}
	c.writes.lines = lines
	if len(lines) > 0 {
		return false, fmt.Sprintf("waiting for %d writes to reach the cloud: %s", len(lines), lines[0])
	}
	return true, ""
}

// run writes until ctx ends.
func (s *scribe) run(ctx context.Context, c *column) {
	for runner.Slept(ctx, scribeEvery) {
		s.round(context.WithoutCancel(ctx), c)
	}
}

// round writes a serial to the node's status, to that of a pod, and as an Event, and reads the node's pods.
func (s *scribe) round(ctx context.Context, c *column) {
	s.serial++
	config := agent(c.kubelet(s.node), "scribe")
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		c.Note("scribe: " + err.Error())
		return
	}
	defer client.CloseIdleConnections()
	took := func(method, path, contentType string, body any) bool {
		return send(ctx, client, method, config.Host+path, contentType, body) == nil
	}
	patch := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": scribeName, "status": "True", "reason": "Wrote", "message": strconv.Itoa(s.serial),
	}}}}
	if took(http.MethodPatch, "/api/v1/nodes/"+s.node+"/status", string(types.StrategicMergePatchType), patch) {
		s.nodeTook = s.serial
	}
	if p := c.recorder.pod(s.pod); p != nil {
		if took(http.MethodPatch, "/api/v1/namespaces/default/pods/"+s.pod+"/status", string(types.StrategicMergePatchType),
			patch) {
			s.podTook = s.serial
		}
	}
	now := metav1.Now()
	if took(http.MethodPost, "/api/v1/namespaces/default/events", "application/json", &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: s.event(s.serial)},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: s.node, UID: types.UID(s.node)},
		Reason:         scribeName, Message: strconv.Itoa(s.serial), Type: corev1.EventTypeNormal, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "scribe", Host: s.node},
	}) {
		s.events = append(s.events, s.serial)
	}
	s.read(ctx, c)
}

// read asks for the node's pods as its kubelet does. Without the cloud that is all of them, or a refusal that says why.
func (s *scribe) read(ctx context.Context, c *column) {
	if !c.offline(s.node) { // the hub would keep this answer
		return
	}
	code, body, err := get(ctx, agent(c.kubelet(s.node), kubeletAgent), podsPath(s.node))
	if err != nil || !c.offline(s.node) {
		return // no hub, or perhaps the cloud has answered
	}
	var list corev1.PodList
	var status metav1.Status
	switch {
	case code == http.StatusOK && json.Unmarshal(body, &list) == nil:
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		for _, name := range podNames(s.node, c.about.PodsPerNode) {
			if !slices.Contains(names, name) && !c.isDeleted(name) {
				s.wrong++
				c.Note(fmt.Sprintf("wrong answer: the hub of %s lists %v, without %s", s.node, names, name))
				return
			}
		}
		s.served++
	case (code == http.StatusServiceUnavailable || code == http.StatusUnauthorized && c.s.Expires()) &&
		json.Unmarshal(body, &status) == nil && status.Message != "":
		s.refused++
	default:
		s.wrong++
		c.Note(fmt.Sprintf("wrong answer: the hub of %s says %d %.200s", s.node, code, body))
	}
}

func (s *scribe) event(serial int) string { return fmt.Sprintf("scribe.%s.%d", s.node, serial) }

func send(ctx context.Context, client *http.Client, method, url, contentType string, body any) error {
	ctx, cancel := context.WithTimeout(ctx, writePatience)
	defer cancel()
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 300))
	if resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d %s", method, req.URL.Path, resp.StatusCode, answer)
	}
	return err
}

// lost tells of what the API took and the cloud, which has these events, does not have. A status counts once: the last
// one says what the ones before said.
func (s *scribe) lost(ctx context.Context, c *column, events map[string]bool) (lines []string, err error) {
	n, err := c.admin.CoreV1().Nodes().Get(ctx, s.node, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	has := 0
	for _, k := range n.Status.Conditions {
		if k.Type == scribeName {
			has, _ = strconv.Atoi(k.Message)
		}
	}
	if has < s.nodeTook {
		lines = append(lines, fmt.Sprintf("node %s: the cloud has write %d, the hub took %d", s.node, has, s.nodeTook))
	}
	if p := c.recorder.pod(s.pod); p != nil && s.podTook > 0 {
		has = 0
		for _, k := range p.Status.Conditions {
			if k.Type == scribeName {
				has, _ = strconv.Atoi(k.Message)
			}
		}
		if has < s.podTook {
			lines = append(lines, fmt.Sprintf("pod %s: the cloud has write %d, the hub took %d", s.pod, has, s.podTook))
		}
	}
	for _, serial := range s.events {
		if !events[s.event(serial)] {
			lines = append(lines, fmt.Sprintf("Event %s: the hub took it, the cloud does not have it", s.event(serial)))
		}
	}
	return lines, nil
}
