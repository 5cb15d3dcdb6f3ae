package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Offer sends a coordinator what a relay holds, for its relay that nobody feeds: there is no leader, since no hub reaches the cloud. The coordinator
// has reached a version; it is sent the changes since, as its clients will see them, for as far as the relay's past goes.
// It returns nil if the coordinator has taken it, and a *RefusedError if it has as much, or is fed.
func Offer(ctx context.Context, r *relay.Relay, reached uint64, coordinator *Upstream) error {
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
	mode, o := behind(r, reached)
	if st.RingEvents == 0 { // nothing of the past would lead to the present version
		mode, o = modeList, relay.WatchOptions{Initial: true}
	}
	go func() {
		defer close(shown)
		_, err := feed.Write([]byte{mode})
		if err == nil {
			err = show(ctx, r, st.History, o, feed) // the coordinator answers when it has read enough
		}
		feed.CloseWithError(err)
	}()
	target := coordinator.URL.JoinPath(contract.FeedPath(res.Group, res.Version, res.Resource))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), body)
	if err != nil {
		return err
	}
	req.Header.Set(contract.OfferHeader, wire.FormatVersion(st.Version))
	if mode == modeResume {
		req.Header.Set(contract.ReachedHeader, wire.FormatVersion(reached))
	}
	req.Header.Set(rest.HistoryHeader, st.History.String())
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

// TakeOffer moves a relay forward to an offer of a version. admit is asked before each change and ends it by its error: a leader may have come. The
// error is relay.ErrOlder if the relay has as much. The offer is of the history that its request named.
func TakeOffer(ctx context.Context, body io.Reader, r *relay.Relay, h relay.History, version uint64, admit func() error) error {
	if err := receive(ctx, body, r, h, relay.NewRefill(r).Bound(), version, admit); err != nil {
		return fmt.Errorf("offer: %w", err)
	}
	return nil
}
