package beat

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
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/request"
)

// madeUp is the version of a Lease that was created while the cloud is away. No Lease is at it, so the kubelet will
// read the true one.
const madeUp = "1"

// Beats takes the heartbeats of this node's kubelet. It passes them to the cloud, or answers them itself, and has each
// mirrored in the coordinator.
type Beats struct {
	BeatsConfig

	began time.Time
	turn  chan struct{} // holds a token while no heartbeat is dealt with

	mu       sync.Mutex
	state    heartbeat.Node
	held     *coordinationv1.Lease // as the kubelet has it
	passed   time.Duration         // when the cloud last took one; zero: never
	mirrored time.Duration         // when the coordinator last took one; zero: never

	// Of the one that has the token.
	rhythm digest.Rhythm
	reads  digest.ReadsRhythm
	whole  bool          // the cloud does not take brief heartbeats
	vain   time.Duration // when an overdue heartbeat was tried in vain; zero: never

	left chan *left // holds the heartbeat that was left to the pool last
}

// left is a heartbeat that was left to the pool.
type left struct {
	req  *http.Request
	body []byte
	beat *coordinationv1.Lease
	n    int // how many came until then
}

// BeatsConfig is what beats are made of.
type BeatsConfig struct {
	Node   string
	Cloud  Cloud
	Pool   InPool
	Pass   func(w *answer.Recorder, req *http.Request, asked *request.Request) // sends on what is no heartbeat
	Clock  clock.WithTicker
	Logger *slog.Logger
	Count  func(outcome string) // passed, pooled, refused, kept
	Roll   *RollCall            // which may bring heartbeats to the cloud; nil: there is none
	Tell   func() digest.Digest // what goes along with some heartbeats; nil: nothing does
	Reads  func() digest.Reads  // and with others; needed with Tell
}

// InPool is where the pool sees how this node is: a Mirror, or Alone. It never blocks for long.
type InPool interface {
	// state writes a statement soon, instead of one before; not after until. It calls written when it has.
	state(s heartbeat.Statement, beat *coordinationv1.Lease, until time.Time, written func())
	withdraw(ctx context.Context) error                      // that the node is cut off
	read(ctx context.Context) (*coordinationv1.Lease, error) // nil: there is no Lease
}

// Alone is for a hub without a pool.
type Alone struct{}

func (Alone) state(heartbeat.Statement, *coordinationv1.Lease, time.Time, func()) {}

func (Alone) withdraw(context.Context) error { return nil }

func (Alone) read(context.Context) (*coordinationv1.Lease, error) { return nil, nil }

// NewBeats makes what no heartbeat has come to yet.
func NewBeats(c BeatsConfig) *Beats {
	b := &Beats{BeatsConfig: c, began: c.Clock.Now(), turn: make(chan struct{}, 1), left: make(chan *left, 1)}
	b.turn <- struct{}{}
	return b
}

// Own reports whether a request is a heartbeat, or reads what heartbeats are based on.
func (b *Beats) Own(header http.Header, asked *request.Request) bool {
	return lease.IsOwn(header, asked, b.Node)
}

func (b *Beats) now() time.Duration { return b.Clock.Since(b.began) }

// Serve answers a request about the Lease of this node, by its kubelet.
func (b *Beats) Serve(w *answer.Recorder, req *http.Request, asked *request.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, uplink.MaxAnswer))
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), req.Body), req.Body}
	if err != nil || len(body) == uplink.MaxAnswer {
		b.Pass(w, req, asked)
		return
	}
	select {
	case <-b.turn:
		defer func() { b.turn <- struct{}{} }()
	case <-req.Context().Done():
		answer.Write(w, answer.Unavailable("the request was cancelled"))
		return
	}
	if req.Method == http.MethodGet {
		b.read(w, req)
		return
	}
	beat, ok := b.written(req, body)
	if !ok { // no heartbeat
		b.Pass(w, req, asked)
		return
	}
	w.Route = "heartbeat"
	b.renew(w, req, body, beat)
}

// written is the Lease as a request would have it; false if that is not the Lease of this node, or no heartbeat.
func (b *Beats) written(req *http.Request, body []byte) (*coordinationv1.Lease, bool) {
	contentType := req.Header.Get("Content-Type")
	if req.Method == http.MethodPatch {
		return b.patched(contentType, body)
	}
	l, err := lease.Decode(contentType, body)
	return l, err == nil && l.Name == b.Node && l.Spec.RenewTime != nil
}

// patched applies a merge patch to what is held. That a strategic one merges lists in another way does not matter here.
func (b *Beats) patched(contentType string, body []byte) (*coordinationv1.Lease, bool) {
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
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: contract.NodeLeaseNamespace, Name: b.Node}}
	b.mu.Lock()
	if b.held != nil {
		l = b.held.DeepCopy()
	}
	b.mu.Unlock()
	l.Spec.RenewTime = patch.Spec.RenewTime
	return l, true
}

func (b *Beats) renew(w *answer.Recorder, req *http.Request, body []byte, beat *coordinationv1.Lease) {
	b.mu.Lock()
	vain := b.vain > 0 && b.now()-b.vain < heartbeat.Attempt
	plan := b.state.Beat(b.now(), !vain && b.Cloud.Reachable())
	_, n := b.state.Last()
	held := b.held
	b.mu.Unlock()
	covered, calm := b.Roll.beat(req.Context(), plan == heartbeat.Pass)
	if covered && plan == heartbeat.Pass && b.leave(w, req, beat, held) {
		select {
		case <-b.left:
		default:
		}
		b.left <- &left{req, body, beat, n}
		return
	}
	if plan == heartbeat.Return {
		if err := b.Pool.withdraw(req.Context()); err != nil {
			b.Logger.Warn("this node cannot withdraw in the coordinator that it is cut off; its heartbeat passes all the same",
				"err", err)
		}
	}
	var a *uplink.Answer
	if plan != heartbeat.Keep {
		along, told := b.due()
		var err error
		if a, err = b.send(req, body, beat, held, along, calm && plan == heartbeat.Pass); err != nil {
			if req.Context().Err() != nil { // the kubelet is gone, or the hub ends
				answer.Write(w, answer.Unavailable("the request was cancelled"))
				return
			}
			b.Logger.Info("a heartbeat did not reach the cloud", "err", err)
		} else if a.Code < 300 {
			told()
		}
	}
	if a != nil {
		b.took(beat, a)
		b.answer(w, a)
		return
	}
	b.keep(w, req, beat)
}

// leave leaves a heartbeat to the pool, which brings it to the cloud, and answers it. It reports whether that will do:
// not if there is more to tell than that the node lives.
func (b *Beats) leave(w *answer.Recorder, req *http.Request, beat, held *coordinationv1.Lease) bool {
	along, _ := b.due()
	if b.whole || req.Method != http.MethodPut || held == nil || lease.AlongOf(held) != along || !onlyRenews(beat, held) {
		return false
	}
	l := held.DeepCopy()
	lease.SetRenewTime(l, lease.RenewTime(beat))
	b.mu.Lock()
	b.turned(true)
	b.held = l
	b.Count("pooled")
	b.tell(beat)
	b.mu.Unlock()
	writeLease(w, req, http.StatusOK, l)
	return true
}

// send sends a heartbeat to the cloud, briefly if that says it all. calm: see uplink.Message.
func (b *Beats) send(req *http.Request, body []byte, beat, held *coordinationv1.Lease, along lease.Along, calm bool) (
	*uplink.Answer, error) {
	m, renew := b.message(req, body, beat, held, along)
	m.Calm = calm
	if b.whole || held == nil || held.ResourceVersion == madeUp {
		return b.Cloud.Send(req.Context(), m)
	}
	short, ok := brief(m, beat, held, renew, along, b.Roll.shared())
	if !ok {
		return b.Cloud.Send(req.Context(), m)
	}
	a, err := b.Cloud.Send(req.Context(), short)
	if err != nil {
		return nil, err
	}
	if full, ok := answered(a, req.Header.Get("Accept"), held, renew); ok {
		return full, nil
	}
	b.whole = true
	b.Logger.Info("the cloud does not take a heartbeat as a patch of its renewTime; they are sent whole from now on",
		"code", a.Code)
	return b.Cloud.Send(req.Context(), m)
}

// due is what goes along with the next heartbeat, and whom to call when the cloud has taken it. One heartbeat has no
// more than one line, beside the anchor of the roll call, which stays.
func (b *Beats) due() (along lease.Along, told func()) {
	along.Anchor = b.Roll.anchor()
	if b.Tell == nil {
		return along, func() {}
	}
	now, d := b.now(), b.Tell()
	if b.rhythm.Due(now, d) {
		along.Digest = d.Text()
		return along, func() { b.rhythm.Told(now, d) }
	}
	if r := b.Reads(); b.reads.Due(now, r) {
		along.Reads = r.Text()
		return along, func() { b.reads.Told(now, r) }
	}
	return along, func() {}
}

// message is a heartbeat as it goes to the cloud: growing, with what the hub tells along with it, and without the
// annotations that the kubelet has read there. Most go as they came.
func (b *Beats) message(req *http.Request, body []byte, beat, held *coordinationv1.Lease, along lease.Along) (
	m uplink.Message, renew time.Time) {
	m = uplink.Message{Method: req.Method, URI: req.URL.RequestURI(), Header: endToEnd(req.Header), Body: body}
	renew = lease.RenewTime(beat)
	if held != nil {
		renew = heartbeat.Later(renew, lease.RenewTime(held))
	}
	renew = b.Roll.least(renew)
	if req.Method == http.MethodPatch {
		if stripped, err := stripPatch(body, renew, along); err == nil {
			m.Body = stripped
		}
		return m, renew
	}
	if !lease.IsDelegated(beat) && renew.Equal(lease.RenewTime(beat)) &&
		along == lease.AlongOf(beat) {
		return m, renew
	}
	l := beat.DeepCopy()
	l.ManagedFields = nil // of an update that has none kube-apiserver goes on with those that it knows
	lease.SetDelegated(l, false)
	along.Set(l)
	lease.SetRenewTime(l, renew)
	if _, encoded, err := lease.Encode(l, req.Header.Get("Content-Type")); err == nil {
		m.Body = encoded
	}
	return m, renew
}

// stripPatch removes the annotations, but for what is told along, and sets the renewTime.
func stripPatch(body []byte, renew time.Time, along lease.Along) ([]byte, error) {
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
	annotations := in(in(patch, "metadata"), "annotations")
	annotations[contract.DelegateHeartbeat] = nil
	for name, text := range along.All() {
		annotations[name] = nil
		if text != "" {
			annotations[name] = text
		}
	}
	in(patch, "spec")["renewTime"] = metav1.NewMicroTime(renew)
	return json.Marshal(patch)
}

// took notes that the cloud answered.
func (b *Beats) took(beat *coordinationv1.Lease, a *uplink.Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turned(true)
	outcome := "refused"
	if a.Code < 300 {
		outcome = "passed"
		b.passed = b.now()
		if l, err := lease.Decode(a.Header.Get("Content-Type"), a.Body); err == nil {
			b.held = l
			b.Roll.direct(l)
		}
	}
	b.Count(outcome)
	b.tell(beat)
}

// keep answers a heartbeat as the cloud would.
func (b *Beats) keep(w *answer.Recorder, req *http.Request, beat *coordinationv1.Lease) {
	l := beat.DeepCopy()
	lease.SetDelegated(l, false)
	lease.Along{}.Set(l)
	if l.ResourceVersion == "" {
		l.ResourceVersion = madeUp
	}
	b.mu.Lock()
	b.turned(false)
	b.held = l
	b.Count("kept")
	b.tell(beat)
	b.mu.Unlock()
	code := http.StatusOK
	if req.Method == http.MethodPost {
		code = http.StatusCreated
	}
	writeLease(w, req, code, l)
}

// turned reports whether the cloud answered the last heartbeat.
func (b *Beats) turned(taken bool) {
	was, _ := b.state.CutOff()
	b.state.Passed(b.now(), taken)
	switch now, _ := b.state.CutOff(); {
	case now && !was:
		b.Logger.Warn("this node is cut off from the cloud: its hub answers heartbeats, and the leader of its pool "+
			"forwards them", "node", b.Node)
	case was && !now:
		b.Logger.Info("heartbeats of this node reach the cloud again", "node", b.Node)
	}
}

// tell has the heartbeat that came last mirrored, if that is worth it.
func (b *Beats) tell(beat *coordinationv1.Lease) {
	s := b.state.Statement(lease.RenewTime(beat))
	if !s.Needed {
		return
	}
	b.Pool.state(s, beat, b.began.Add(s.Until), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.state.Written(s)
		b.mirrored = b.now()
	})
}

// read answers what the kubelet bases its next heartbeat on.
func (b *Beats) read(w *answer.Recorder, req *http.Request) {
	w.Route = "heartbeat"
	if b.Cloud.Reachable() {
		a, err := b.Cloud.Send(req.Context(), uplink.Message{
			Method: req.Method, URI: req.URL.RequestURI(), Header: endToEnd(req.Header),
		})
		if err == nil {
			if l, err := lease.Decode(a.Header.Get("Content-Type"), a.Body); err == nil && a.Code < 300 {
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
	if l == nil { // hub and kubelet were both started without the cloud
		ctx, cancel := context.WithTimeout(req.Context(), heartbeat.Withdraw)
		defer cancel()
		if m, err := b.Pool.read(ctx); err == nil && m != nil {
			l = m
			l.ResourceVersion, l.UID, l.ManagedFields = madeUp, "", nil
			lease.SetDelegated(l, false)
		}
	}
	if l == nil { // so that the kubelet creates one
		answer.Write(w, apierrors.NewNotFound(schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"},
			b.Node))
		return
	}
	writeLease(w, req, http.StatusOK, l)
}

func (b *Beats) answer(w *answer.Recorder, a *uplink.Answer) {
	for name, values := range endToEnd(a.Header) {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Code)
	_, _ = w.Write(a.Body)
}

func writeLease(w *answer.Recorder, req *http.Request, code int, l *coordinationv1.Lease) {
	contentType, body, err := lease.Encode(l, req.Header.Get("Accept"))
	if err != nil {
		answer.Write(w, apierrors.NewInternalError(err))
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
		"Accept-Encoding", "Connection", "Content-Length", "Forwarded", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
	} {
		out.Del(name)
	}
	return out
}

// HeartbeatStatus is what became of the heartbeats of this node's kubelet.
type HeartbeatStatus struct {
	Count  int       `json:"count"`
	Last   time.Time `json:"last,omitzero"`   // when the kubelet last gave a sign of life
	Passed time.Time `json:"passed,omitzero"` // when the cloud last took one, from this hub or from the pool: see Pooled
	// when the coordinator last took one: of those that the cloud takes only the first, and one in heartbeat.Quiet
	Mirrored time.Time `json:"mirrored,omitzero"`
	// of the last heartbeat of which weir-manager has signed that it has renewed the Lease for it, since the pool reported
	// that it was heard
	Pooled time.Time `json:"pooled,omitzero"`
	CutOff bool      `json:"cutOff"`
	Since  time.Time `json:"since,omitzero"` // of cutOff as it is
}

// Status is what became of them so far.
func (b *Beats) Status() HeartbeatStatus {
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
	if b.mirrored > 0 {
		s.Mirrored = at(b.mirrored)
	}
	if s.Pooled = b.Roll.Renewed(); s.Pooled.After(s.Passed) {
		s.Passed = s.Pooled
	}
	var since time.Duration
	if s.CutOff, since = b.state.CutOff(); since > 0 {
		s.Since = at(since)
	}
	return s
}
