package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/source"
)

// feeds takes the feeds of all relays. It is an http.Handler for contract.FeedPrefix; its callers are authorized as hubs.
type feeds struct {
	stop    context.Context  // its end ends all feeds
	slots   map[string]*slot // by contract.FeedPath
	fence   *fence.Fence
	fed     *fed // nil: there is one replica
	pulse   *pulse
	look    func(context.Context) error // shows the election Lease to the fence as it is now
	unready func(*relay.Relay) error    // why a relay is not ready
	fail    func(w http.ResponseWriter, req *http.Request, err error)
	metrics *metrics
	clock   clock.PassiveClock
	logger  *slog.Logger
}

var errStopping = errors.New("the coordinator is stopping")

// slot is the place of the one feed that a relay has.
type slot struct {
	relay *relay.Relay

	mu      sync.Mutex
	current *feeding // the newest; nil if there is none
}

// feeding is one feed: pushed by the leader, pulled from another replica, or an offer.
type feeding struct {
	node    string
	term    contract.Term
	history relay.History // of the cloud, that it is of
	replica string        // pulled from; "": pushed or offered
	offer   bool
	end     context.CancelCauseFunc
	done    chan struct{} // closed when it has touched the relay for the last time
}

// pushed tells whether it is the leader's.
func (x *feeding) pushed() bool { return x.replica == "" && !x.offer }

func newFeeds(stop context.Context, relays []*relay.Relay) *feeds {
	f := &feeds{stop: stop, slots: map[string]*slot{}}
	for _, r := range relays {
		res := r.Resource()
		f.slots[contract.FeedPath(res.Group, res.Version, res.Resource)] = &slot{relay: r}
	}
	return f
}

// of returns the slot of a relay.
func (f *feeds) of(r *relay.Relay) *slot {
	res := r.Resource()
	return f.slots[contract.FeedPath(res.Group, res.Version, res.Resource)]
}

// ServeHTTP implements http.Handler.
func (f *feeds) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == contract.PulsePath {
		f.answer(w, req, "pulse", f.listen(w, req))
		return
	}
	s, ok := f.slots[req.URL.Path]
	if !ok {
		f.fail(w, req, apierrors.NewGenericServerResponse(http.StatusNotFound, "feed", schema.GroupResource{}, "",
			fmt.Sprintf("no resource of this pool is fed at %s", req.URL.Path), 0, false))
		return
	}
	serve := f.serve
	if req.Header.Get(contract.OfferHeader) != "" {
		serve = f.takeOffer
	}
	f.answer(w, req, s.relay.Resource().String(), serve(w, req, s))
}

// answer tells the caller why what it asked for was not begun, if err is set.
func (f *feeds) answer(w http.ResponseWriter, req *http.Request, name string, err error) {
	var r *fence.RefusedError
	switch {
	case err == nil:
	case errors.As(err, &r):
		f.metrics.refused.WithLabelValues(name, r.Reason).Inc()
		f.logger.Warn("feed refused", "resource", name, "reason", r.Reason, "err", err)
		f.fail(w, req, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: r.Message,
		}})
	default:
		f.metrics.refused.WithLabelValues(name, "protocol").Inc()
		f.fail(w, req, err)
	}
}

// serve returns an error only if the feed was not begun.
func (f *feeds) serve(w http.ResponseWriter, req *http.Request, s *slot) error {
	x, err := f.knock(req)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(req.Context())
	defer end(nil)
	x.end = end
	defer context.AfterFunc(f.stop, func() { end(errStopping) })()
	if err := s.plausible(x.history); err != nil {
		w.Header().Set(rest.HistoryHeader, s.relay.Status().History.String()) // an honest leader goes on from there
		return err
	}
	if err := s.take(x); err != nil {
		return err
	}
	defer s.leave(x)
	if err := f.fed.claim(req.Context(), x.term); err != nil {
		return err
	}
	if err := f.fence.Admit(x.term, x.node); err != nil { // it may have moved before the feed could be found in its slot
		return err
	}

	name := s.relay.Resource().String()
	logger := f.logger.With("resource", name, "node", x.node, "term", x.term.String())
	reached, st := uint64(0), s.relay.Status()
	if st.Synced {
		reached = st.Version
	}
	f.metrics.accepted.WithLabelValues(name).Inc()
	logger.Info("feed begins", "reached", reached, "history", x.history.Number, "was", st.History.Number)
	if st.History.Number != 0 {
		w.Header().Set(rest.HistoryHeader, st.History.String())
	}
	w.Header().Set(contract.ReachedHeader, strconv.FormatUint(reached, 10))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	err = f.receive(ctx, http.NewResponseController(w), req.Body, s.relay, x)
	if why := context.Cause(ctx); why != nil && !errors.Is(why, context.Canceled) {
		err = why
	}
	logger.Info("feed ended", "err", err, "reached", s.relay.Status().Version)
	if err != nil {
		_, _ = io.WriteString(w, err.Error())
	}
	return nil
}

// knock tells who wants to feed, and under which term, if the fence lets it in.
func (f *feeds) knock(req *http.Request) (*feeding, error) {
	if err := checkMethod(req); err != nil {
		return nil, err
	}
	term, err := contract.ParseTerm(req.Header.Get(contract.TermHeader))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("header %s: %v", contract.TermHeader, err))
	}
	history, _, err := rest.ParseHistory(req.Header)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	u, _ := genericrequest.UserFrom(req.Context())
	x := &feeding{node: authz.NodeOf(u), term: term, history: history, done: make(chan struct{})}
	if err := f.look(req.Context()); err != nil {
		return nil, err
	}
	return x, f.fence.Open(term, x.node)
}

func checkMethod(req *http.Request) error {
	switch {
	case req.Method != http.MethodPost:
		return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "feed"}, strings.ToLower(req.Method))
	case req.ProtoMajor < 2:
		return apierrors.NewBadRequest("a feed needs HTTP/2: its answer comes before its body ends")
	}
	return nil
}

// listen hears the leader's pulse until it stops. It returns an error only if it was not begun.
func (f *feeds) listen(w http.ResponseWriter, req *http.Request) error {
	x, err := f.knock(req)
	if err != nil {
		return err
	}
	if err := f.fed.claim(req.Context(), x.term); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	f.pulse.hear(f.stop, req.Context(), http.NewResponseController(w), req.Body, x)
	return nil
}

// freeing lets the Lease of a leader be taken only by the replica that it used last: others heard a pulse that went elsewhere.
func (f *feeds) freeing(free func(context.Context, *feeding) error) func(context.Context, *feeding) error {
	return func(ctx context.Context, x *feeding) error {
		asking, cancel := context.WithTimeout(ctx, freeTimeout)
		defer cancel()
		mine, err := f.fed.mine(asking)
		switch {
		case err != nil:
			return err
		case !mine:
			return errFedElsewhere
		}
		return free(ctx, x)
	}
}

// receive applies the body of a feed.
func (f *feeds) receive(ctx context.Context, control *http.ResponseController, body io.Reader, r *relay.Relay, x *feeding) error {
	if err := control.Flush(); err != nil {
		return err
	}
	defer unblock(ctx, control)()
	return source.Receive(ctx, body, r, x.history, func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return f.fence.Admit(x.term, x.node)
	})
}

// unblock makes a read of a body that waits for its sender end when ctx does, until what it returns is called. The deadline must not be set
// when the handler has returned: there is nothing left to set it on.
func unblock(ctx context.Context, control *http.ResponseController) (end func()) {
	unblocked := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(unblocked)
		_ = control.SetReadDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-unblocked
		}
	}
}

// enforce ends the feeds that the fence no longer admits: one that is idle would not ask.
func (f *feeds) enforce() {
	for _, s := range f.slots {
		s.mu.Lock()
		x := s.current
		s.mu.Unlock()
		if x == nil || !x.pushed() {
			continue
		}
		if err := f.fence.Admit(x.term, x.node); err != nil {
			x.end(err)
		}
	}
}

// leaves ends what the leader pushes here: it pushes elsewhere.
func (f *feeds) leaves(why error) {
	for _, s := range f.slots {
		s.mu.Lock()
		x := s.current
		s.mu.Unlock()
		if x != nil && x.pushed() {
			x.end(why)
		}
	}
}

// plausible tells why a history that a hub names cannot be the one that follows. Numbers are bounded so that there is always a next one, in which
// the cloud has the last word.
func (s *slot) plausible(h relay.History) error {
	st := s.relay.Status()
	if st.Synced && st.History.Near(h) || !st.Synced && h.First() {
		return nil
	}
	return &fence.RefusedError{Reason: "history", Message: fmt.Sprintf("%s is in history %d of the cloud, %d cannot follow", s.relay.Resource(), st.History.Number, h.Number)}
}

// take makes a feed the one of its slot: it ends the one before and waits until that has ended. A feed that is itself ended
// meanwhile returns all the same and finds its context ended. A feed that comes late, after one of a newer term, is refused.
func (s *slot) take(x *feeding) error {
	s.mu.Lock()
	before := s.current
	if before != nil && before.term.Version > x.term.Version {
		s.mu.Unlock()
		return &fence.RefusedError{Reason: "term", Message: fmt.Sprintf("term %s is over, a feed of term %s has begun", x.term, before.term)}
	}
	s.current = x
	s.mu.Unlock()
	if before != nil {
		before.end(fmt.Errorf("replaced by a feed of node %s, term %s", x.node, x.term))
		<-before.done
	}
	return nil
}

func (s *slot) leave(x *feeding) {
	s.mu.Lock()
	if s.current == x {
		s.current = nil
	}
	s.mu.Unlock()
	close(x.done)
}

// claimFree makes a feed the one of its slot if there is none. Else it returns what is closed when that has ended.
func (s *slot) claimFree(x *feeding) (busy <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return s.current.done
	}
	s.current = x
	return nil
}

// feeder is who feeds: a node, or another replica; "" if nobody does.
func (s *slot) feeder() (node, replica string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return "", ""
	}
	return s.current.node, s.current.replica
}
