package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Offer sends a coordinator what a relay holds, for its relay that nobody feeds: there is no leader, since no hub reaches the cloud.
// It returns nil if the coordinator has taken it, and a *RefusedError if it has as much, or is fed.
func Offer(ctx context.Context, r *relay.Relay, coordinator *Upstream) error {
	res := r.Resource()
	ctx, cancel := context.WithCancel(ctx)
	body, feed := io.Pipe()
	shown := make(chan struct{})
	defer func() {
		cancel()
		body.Close()
		<-shown
	}()
	st := r.Status()
	go func() {
		defer close(shown)
		feed.CloseWithError(show(ctx, r, st.History, everything(), false, feed)) // the coordinator answers when it has read enough
	}()
	target := coordinator.URL.JoinPath(contract.FeedPath(res.Group, res.Version, res.Resource))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), body)
	if err != nil {
		return err
	}
	req.Header.Set(contract.OfferHeader, wire.FormatVersion(st.Version))
	req.Header.Set(relay.HistoryHeader, st.History.String())
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := coordinator.Client.Do(req)
	if err != nil {
		return fmt.Errorf("offer %s: %w", res, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	err = readStatus(resp, resp.Body)
	var s *StatusError
	if errors.As(err, &s) && (s.Code == http.StatusConflict || s.Code == http.StatusForbidden) {
		return &RefusedError{s.Code, s.Message}
	}
	return fmt.Errorf("offer %s: %w", res, err)
}

// TakeOffer moves a relay forward to an offer. admit is asked when all of it is there and ends it by its error: a leader may have come. The error is
// relay.ErrOlder if the relay has as much. The offer is of the history that its request named.
func TakeOffer(body io.Reader, r *relay.Relay, h relay.History, admit func() error) error {
	res := r.Resource()
	events := wire.NewEventReader(body, res.Encoding(), res.WireKind())
	var items []*wire.Object
	room := r.Room()
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("offer: %w", io.ErrUnexpectedEOF)
		case err != nil:
			return fmt.Errorf("offer: %w", err)
		case ev.Type == wire.Error:
			return fmt.Errorf("offer: the hub's relay says: %s", ev.Status.Message)
		case ev.Type == wire.Added:
			items = append(items, ev.Object)
			if err := room.Take(ev.Object); err != nil {
				return fmt.Errorf("offer: %w", err)
			}
		case !ev.InitialEnd:
			return fmt.Errorf("offer: a %s event among the initial ones", ev.Type)
		default:
			if err := admit(); err != nil {
				return err
			}
			return relay.NewRefill(r).End(h, ev, items)
		}
	}
}
