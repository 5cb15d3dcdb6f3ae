package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/source"
)

// takeOffer moves a relay that is not ready, and that no leader feeds, forward to what a hub holds. It is served with its age and is not
// ready by that. There is no term: nobody leads while nobody reaches the cloud. What any hub of the pool may do so is what it may do as a leader, and less:
// a leader's feed ends an offer that comes, and takes the place of one that came.
func (f *feeds) takeOffer(w http.ResponseWriter, req *http.Request, s *slot) error {
	if err := checkMethod(req); err != nil {
		return err
	}
	version, err := strconv.ParseUint(req.Header.Get(contract.OfferHeader), 10, 64)
	if err != nil || version == 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("header %s: %q is not a version", contract.OfferHeader, req.Header.Get(contract.OfferHeader)))
	}
	from := uint64(0) // from where it goes on
	if s := req.Header.Get(contract.ReachedHeader); s != "" {
		if from, err = strconv.ParseUint(s, 10, 64); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("header %s: %q is not a version", contract.ReachedHeader, s))
		}
	}
	history, _, err := rest.ParseHistory(req.Header)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	u, _ := genericrequest.UserFrom(req.Context())
	ctx, end := context.WithCancelCause(req.Context())
	defer end(nil)
	defer context.AfterFunc(f.stop, func() { end(errStopping) })()
	x := &feeding{node: authz.NodeOf(u), history: history, offer: true, end: end, done: make(chan struct{})}
	if err := s.takeOffered(x, from, version, f.unready); err != nil {
		return err
	}
	defer s.leave(x)
	control := http.NewResponseController(w)
	defer unblock(ctx, control)()
	before := s.relay.Status()
	err = source.TakeOffer(ctx, req.Body, s.relay, history, version, func() error { return context.Cause(ctx) })
	switch why := context.Cause(ctx); {
	case errors.Is(err, relay.ErrOlder), errors.Is(err, relay.ErrHistory):
		return refusedOffer("%v", err)
	case err != nil && why != nil:
		return refusedOffer("%v", why)
	case err != nil:
		return apierrors.NewBadRequest(err.Error())
	}
	name, now := s.relay.Resource().String(), s.relay.Status()
	age, _ := now.Age(f.clock.Now())
	f.metrics.refilled.WithLabelValues(name, x.node).Inc()
	f.logger.Warn("refilled at the word of one hub, with what it holds: served with its age, and not ready until the cloud is heard", "resource", name, "node", x.node,
		"version", now.Version, "history", now.History.Number, "was", before.Version, "age", age.Round(time.Second).String())
	w.WriteHeader(http.StatusOK)
	return nil
}

// takeOffered makes an offer the feed of its slot, if the relay has a use for it. What it pulls from another replica waits meanwhile.
func (s *slot) takeOffered(x *feeding, from, version uint64, unready func(*relay.Relay) error) error {
	st := s.relay.Status()
	switch {
	case unready(s.relay) == nil:
		return refusedOffer("%s is fresh", s.relay.Resource())
	case st.Synced && st.History.Number != x.history.Number:
		return refusedOffer("%s is in history %d of the cloud, not in %d: only a leader, who hears from the cloud, may bring another", s.relay.Resource(), st.History.Number, x.history.Number)
	case !st.Synced && !x.history.First():
		return refusedOffer("history %d of the cloud cannot have been counted", x.history.Number)
	case st.Version < from:
		return refusedOffer("%s has reached %d, what is offered goes on from %d", s.relay.Resource(), st.Version, from)
	case st.Synced && st.Version >= version:
		return refusedOffer("%s has reached %d, %d is offered", s.relay.Resource(), st.Version, version)
	}
	s.mu.Lock()
	before := s.current
	if before != nil && before.replica == "" {
		s.mu.Unlock()
		return refusedOffer("node %s feeds %s", before.node, s.relay.Resource())
	}
	s.current = x
	s.mu.Unlock()
	if before != nil {
		before.end(fmt.Errorf("node %s offers what it has", x.node))
		<-before.done
	}
	return nil
}

func refusedOffer(format string, args ...any) error {
	return &fence.RefusedError{Reason: "offer", Message: fmt.Sprintf(format, args...)}
}
