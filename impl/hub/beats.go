package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/request"
)

// madeUp is the version of a Lease that was created while the cloud is away. No Lease is at it, so the kubelet will read the true one.
const madeUp = "1"

// beats takes the heartbeats of this node's kubelet. It passes them to the cloud, or answers them itself, and has each mirrored in the coordinator.
type beats struct {
	node    string
	cloud   *urgent
	mirror  *mirror // nil: no coordinator
	proxy   *proxy
	clock   clock.WithTicker
	began   time.Time
	logger  *slog.Logger
	metrics *metrics

	turn chan struct{} // holds a token while no heartbeat is dealt with

	mu     sync.Mutex
	state  heartbeat.Node
	held   *coordinationv1.Lease // as the kubelet has it
	passed time.Duration         // when the cloud last took one; zero: never
}

func newBeats(node string, cloud *urgent, p *proxy, clk clock.WithTicker, logger *slog.Logger, m *metrics) *beats {
	b := &beats{node: node, cloud: cloud, proxy: p, clock: clk, began: clk.Now(), logger: logger, metrics: m, turn: make(chan struct{}, 1)}
	b.turn <- struct{}{}
	return b
}

func (b *beats) now() time.Duration { return b.clock.Since(b.began) }

// pass sends on what is no heartbeat.
func (b *beats) pass(w *recorder, req *http.Request, asked *request.Request) {
	w.route = "cloud"
	b.proxy.serve(w, req, asked, caller{kind: thisNode}, nil)
}

// serve answers a request about the Lease of this node, by its kubelet.
func (b *beats) serve(w *recorder, req *http.Request, asked *request.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxLease))
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), req.Body), req.Body}
	if err != nil || len(body) == maxLease {
		b.pass(w, req, asked)
		return
	}
	select {
	case <-b.turn:
		defer func() { b.turn <- struct{}{} }()
	case <-req.Context().Done():
		writeStatus(w, unavailable("the request was cancelled"))
		return
	}
	if req.Method == http.MethodGet {
		b.read(w, req)
		return
	}
	lease, ok := b.written(req, body)
	if !ok { // no heartbeat
		b.pass(w, req, asked)
		return
	}
	w.route = "heartbeat"
	b.renew(w, req, body, lease)
}

// written is the Lease as a request would have it; false if that is not the Lease of this node, or no heartbeat.
func (b *beats) written(req *http.Request, body []byte) (*coordinationv1.Lease, bool) {
	contentType := req.Header.Get("Content-Type")
	if req.Method == http.MethodPatch {
		return b.patched(contentType, body)
	}
	l, err := decodeLease(contentType, body)
	return l, err == nil && l.Name == b.node && l.Spec.RenewTime != nil
}

// patched applies a merge patch to what is held. That a strategic one merges lists in another way does not matter here.
func (b *beats) patched(contentType string, body []byte) (*coordinationv1.Lease, bool) {
	media, _, _ := mime.ParseMediaType(contentType)
	if media != string(types.MergePatchType) && media != string(types.StrategicMergePatchType) {
		return nil, false
	}
	var patch struct {
		Spec struct{ RenewTime *metav1.MicroTime }
	}
	if json.Unmarshal(body, &patch) != nil || patch.Spec.RenewTime == nil {
		return nil, false
	}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: contract.NodeLeaseNamespace, Name: b.node}}
	b.mu.Lock()
	if b.held != nil {
		l = b.held.DeepCopy()
	}
	b.mu.Unlock()
	l.Spec.RenewTime = patch.Spec.RenewTime
	return l, true
}

func (b *beats) renew(w *recorder, req *http.Request, body []byte, lease *coordinationv1.Lease) {
	b.mu.Lock()
	plan := b.state.Beat(b.now(), b.cloud.reachable())
	held := b.held
	b.mu.Unlock()
	if plan == heartbeat.Return && b.mirror != nil {
		if err := b.mirror.withdraw(req.Context()); err != nil {
			b.logger.Warn("this node cannot take back in the coordinator that it is cut off; its heartbeat passes all the same", "err", err)
		}
	}
	var a *answer
	if plan != heartbeat.Keep {
		var err error
		if a, err = b.cloud.send(req.Context(), b.message(req, body, lease, held)); err != nil {
			if req.Context().Err() != nil { // the kubelet is gone, or the hub ends
				writeStatus(w, unavailable("the request was cancelled"))
				return
			}
			b.logger.Info("a heartbeat did not reach the cloud", "err", err)
		}
	}
	if a != nil {
		b.took(lease, a)
		b.answer(w, a)
		return
	}
	b.keep(w, req, lease)
}

// message is a heartbeat as it goes to the cloud: without the annotation, which the kubelet has read there, and growing. Most go as they came.
func (b *beats) message(req *http.Request, body []byte, lease, held *coordinationv1.Lease) message {
	m := message{method: req.Method, uri: req.URL.RequestURI(), header: endToEnd(req.Header), body: body}
	renew := renewTime(lease)
	if held != nil {
		renew = heartbeat.Later(renew, renewTime(held))
	}
	if req.Method == http.MethodPatch {
		if stripped, err := stripPatch(body, renew); err == nil {
			m.body = stripped
		}
		return m
	}
	if !isDelegated(lease) && renew.Equal(renewTime(lease)) {
		return m
	}
	l := lease.DeepCopy()
	setDelegated(l, false)
	setRenewTime(l, renew)
	if _, encoded, err := encodeLease(l, req.Header.Get("Content-Type")); err == nil {
		m.body = encoded
	}
	return m
}

// stripPatch removes the annotation and sets the renewTime.
func stripPatch(body []byte, renew time.Time) ([]byte, error) {
	var patch map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, err
	}
	in := func(m map[string]any, key string) map[string]any {
		inner, ok := m[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			m[key] = inner
		}
		return inner
	}
	in(in(patch, "metadata"), "annotations")[contract.DelegateHeartbeat] = nil
	in(patch, "spec")["renewTime"] = metav1.NewMicroTime(renew)
	return json.Marshal(patch)
}

// took notes that the cloud answered.
func (b *beats) took(lease *coordinationv1.Lease, a *answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turned(true)
	outcome := "refused"
	if a.code < 300 {
		outcome = "passed"
		b.passed = b.now()
		if l, err := decodeLease(a.header.Get("Content-Type"), a.body); err == nil {
			b.held = l
		}
	}
	b.metrics.heartbeats.WithLabelValues(outcome).Inc()
	b.tell(lease)
}

// keep answers a heartbeat as the cloud would.
func (b *beats) keep(w *recorder, req *http.Request, lease *coordinationv1.Lease) {
	l := lease.DeepCopy()
	setDelegated(l, false)
	if l.ResourceVersion == "" {
		l.ResourceVersion = madeUp
	}
	b.mu.Lock()
	b.turned(false)
	b.held = l
	b.metrics.heartbeats.WithLabelValues("kept").Inc()
	b.tell(lease)
	b.mu.Unlock()
	code := http.StatusOK
	if req.Method == http.MethodPost {
		code = http.StatusCreated
	}
	writeLease(w, req, code, l)
}

// turned tells whether the cloud answered the last heartbeat.
func (b *beats) turned(taken bool) {
	was, _ := b.state.CutOff()
	b.state.Passed(b.now(), taken)
	switch now, _ := b.state.CutOff(); {
	case now && !was:
		b.logger.Warn("this node is cut off from the cloud: its hub answers heartbeats, and the leader of its pool forwards them", "node", b.node)
	case was && !now:
		b.logger.Info("heartbeats of this node reach the cloud again", "node", b.node)
	}
}

// tell has the heartbeat that came last mirrored.
func (b *beats) tell(lease *coordinationv1.Lease) {
	if b.mirror != nil {
		b.mirror.state(b.state.Statement(renewTime(lease)), lease)
	}
}

// read answers what the kubelet bases its next heartbeat on.
func (b *beats) read(w *recorder, req *http.Request) {
	w.route = "heartbeat"
	if b.cloud.reachable() {
		a, err := b.cloud.send(req.Context(), message{method: req.Method, uri: req.URL.RequestURI(), header: endToEnd(req.Header)})
		if err == nil {
			if l, err := decodeLease(a.header.Get("Content-Type"), a.body); err == nil && a.code < 300 {
				b.mu.Lock()
				b.held = l
				b.mu.Unlock()
			}
			b.answer(w, a)
			return
		}
	}
	b.mu.Lock()
	l := b.held
	b.mu.Unlock()
	if l == nil && b.mirror != nil { // hub and kubelet were both started without the cloud
		ctx, cancel := context.WithTimeout(req.Context(), heartbeat.Withdraw)
		defer cancel()
		if m, err := b.mirror.read(ctx); err == nil && m != nil {
			l = m
			l.ResourceVersion, l.UID, l.ManagedFields = madeUp, "", nil
			setDelegated(l, false)
		}
	}
	if l == nil { // so that the kubelet creates one
		writeStatus(w, apierrors.NewNotFound(schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}, b.node))
		return
	}
	writeLease(w, req, http.StatusOK, l)
}

func (b *beats) answer(w *recorder, a *answer) {
	for name, values := range endToEnd(a.header) {
		w.Header()[name] = values
	}
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body)
}

func writeLease(w *recorder, req *http.Request, code int, l *coordinationv1.Lease) {
	contentType, body, err := encodeLease(l, req.Header.Get("Accept"))
	if err != nil {
		writeStatus(w, apierrors.NewInternalError(err))
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// endToEnd are the headers that a proxy passes on. Encodings of bodies are not asked for: they are looked into.
func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	for _, name := range []string{
		"Accept-Encoding", "Connection", "Content-Length", "Forwarded", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
	} {
		out.Del(name)
	}
	return out
}

func (b *beats) status() HeartbeatStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := func(d time.Duration) time.Time { return b.began.Add(d).UTC() }
	var s HeartbeatStatus
	last, count := b.state.Last()
	if s.Count = count; count > 0 {
		s.Last = at(last)
	}
	if b.passed > 0 {
		s.Passed = at(b.passed)
	}
	var since time.Duration
	if s.CutOff, since = b.state.CutOff(); since > 0 {
		s.Since = at(since)
	}
	return s
}
