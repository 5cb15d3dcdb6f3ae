package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Modes of a feed's body, its first byte.
const (
	modeResume = 'R' // events behind the version that the coordinator has reached
	modeDenied = 'D' // a Status as JSON: the cloud does not give the resource to the leader; the feed lasts until it does
	// All objects of the oldest version that the leader's relay knows, or if the coordinator is beyond that of the newest, a bookmark that
	// ends them, then events.
	modeList = 'L'
)

// PushConfig is one feed of a coordinator.
type PushConfig struct {
	Relay       *relay.Relay
	Coordinator *Upstream
	Term        contract.Term
	Logger      *slog.Logger // nil: slog.Default()
}

// RefusedError says that the coordinator does not take this hub as the leader: 409 for a term that is not the newest or a
// Lease that another holds, 403 for a hub of another pool. Trying again under the same term is useless.
type RefusedError struct {
	Code    int
	Message string
}

// LaterError says that the coordinator is in a later history of the cloud than the relay that is to feed it.
type LaterError struct{ Number uint64 }

func (e *LaterError) Error() string {
	return fmt.Sprintf("the coordinator is in history %d of the cloud, which is later than that of this relay", e.Number)
}

// FarError says that the coordinator is in so early a history of the cloud that it does not believe in that of the relay.
type FarError struct{ Number uint64 }

func (e *FarError) Error() string {
	return fmt.Sprintf("the coordinator is in history %d of the cloud, which is too far from that of this relay", e.Number)
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("feed refused (%d): %s", e.Code, e.Message)
}

// Push feeds a relay to the coordinator until the feed breaks, the coordinator ends it, or ctx ends. Nothing is read from the
// cloud for it. The caller tries again, but for a *RefusedError.
func Push(ctx context.Context, c PushConfig) error {
	res := c.Relay.Resource()
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, feed := io.Pipe()
	defer feed.Close()
	target := c.Coordinator.URL.JoinPath(contract.FeedPath(res.Group, res.Version, res.Resource))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), body)
	if err != nil {
		return err
	}
	history := c.Relay.Status().History
	req.Header.Set(contract.TermHeader, c.Term.String())
	req.Header.Set(rest.HistoryHeader, history.String())
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := c.Coordinator.Client.Do(req) //nolint:bodyclose // closed below; the linter loses it in the goroutine
	if err != nil {
		return fmt.Errorf("feed %s: %w", res, err)
	}
	defer resp.Body.Close()
	theirs, told, badHistory := rest.ParseHistory(resp.Header)
	if resp.StatusCode != http.StatusOK {
		err := readStatus(resp, resp.Body)
		if told && badHistory == nil && !theirs.Near(history) {
			return fmt.Errorf("feed %s: %w", res, &FarError{theirs.Number})
		}
		var s *StatusError
		if errors.As(err, &s) && (s.Code == http.StatusConflict || s.Code == http.StatusForbidden) {
			return &RefusedError{s.Code, s.Message}
		}
		return fmt.Errorf("feed %s: %w", res, err)
	}
	reached, err := strconv.ParseUint(resp.Header.Get(contract.ReachedHeader), 10, 64)
	if err != nil {
		return fmt.Errorf("feed %s: header %s: %w", res, contract.ReachedHeader, err)
	}
	switch {
	case badHistory != nil:
		return fmt.Errorf("feed %s: %w", res, badHistory)
	case theirs.Number > history.Number:
		return fmt.Errorf("feed %s: %w", res, &LaterError{theirs.Number})
	case theirs.Number < history.Number:
		reached = 0 // that version is of a history that is over
	}
	ended := make(chan struct{})
	go func() { // the coordinator ends its answer to end the feed, and may say why
		defer close(ended)
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		msg := strings.TrimSpace(string(why))
		if msg == "" {
			msg = "no reason given"
		}
		cancel(fmt.Errorf("the coordinator ended the feed: %s", msg))
	}()
	if why := c.Relay.Denied(); why != nil {
		err = c.deny(ctx, feed, why.Status())
	} else {
		err = c.copy(ctx, feed, history, reached)
	}
	feed.Close()
	if why := context.Cause(ctx); why != nil {
		err = why
	}
	resp.Body.Close()
	<-ended
	return fmt.Errorf("feed %s: %w", res, err)
}

var errFeedEnded = errors.New("the feed ended")

// copy shows the relay to the feed.
func (c PushConfig) copy(ctx context.Context, feed *io.PipeWriter, history relay.History, reached uint64) error {
	mode, o := behind(c.Relay, reached)
	c.Logger.Info("feeding the coordinator", "resource", c.Relay.Resource().String(), "reached", reached, "mode", string(mode), "term", c.Term.String())
	if _, err := feed.Write([]byte{mode}); err != nil {
		return err
	}
	return show(ctx, c.Relay, history, o, feed)
}

// behind is the watch that brings a coordinator that has reached a version where a relay is.
func behind(r *relay.Relay, reached uint64) (mode byte, o relay.WatchOptions) {
	if reached == 0 || !r.Resumable(reached) {
		// A coordinator that is behind the past may begin with it. One that is ahead of it takes what is newer than itself.
		return modeList, relay.WatchOptions{Initial: true, Past: reached <= r.Status().Oldest}
	}
	return modeResume, relay.WatchOptions{At: relay.At{Version: reached}}
}

// deny says that there is nothing to copy, until there is.
func (c PushConfig) deny(ctx context.Context, feed *io.PipeWriter, why metav1.Status) error {
	body, err := json.Marshal(why)
	if err != nil {
		return err
	}
	if _, err := feed.Write(append([]byte{modeDenied}, body...)); err != nil {
		return err
	}
	if err := c.Relay.WaitGiven(ctx); err != nil {
		return err
	}
	return errFeedEnded
}

// show writes a watch of a relay into a pipe until ctx ends or the pipe is closed.
func show(ctx context.Context, r *relay.Relay, history relay.History, o relay.WatchOptions, feed *io.PipeWriter) error {
	o.History, o.Bookmarks, o.Progress = &history, true, true // it may have changed meanwhile
	stop := context.AfterFunc(ctx, func() { feed.CloseWithError(context.Cause(ctx)) })
	defer stop()
	err := rest.Copy(ctx, r, "weir-feed", o, feed, func() { feed.CloseWithError(errors.New("the coordinator takes nothing")) })
	if err != nil {
		return fmt.Errorf("the relay cannot be read: %w", err)
	}
	return errFeedEnded
}

// receiveDenial tells a relay what the cloud told the leader, and waits for the end of the feed.
func receiveDenial(body io.Reader, r *relay.Relay, admit func() error) error {
	var why metav1.Status
	d := json.NewDecoder(io.LimitReader(body, 64<<10))
	if err := d.Decode(&why); err != nil {
		return fmt.Errorf("feed: read why the resource is denied: %w", err)
	}
	if why.Code < 400 || why.Code > 499 {
		return fmt.Errorf("feed: the resource is denied with code %d, want 400 to 499", why.Code)
	}
	if err := admit(); err != nil {
		return err
	}
	r.Deny(fromStatus(&why))
	switch _, err := d.Token(); {
	case err == nil:
		return errors.New("feed: there is something behind why the resource is denied")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return fmt.Errorf("feed: %w", err)
	}
}

// Receive applies a pushed feed to a relay until the body ends. admit is asked before each change and ends the feed by its
// error: that is where a feed of an old term is fenced off. The feed is of the history that its request named. io.EOF at a frame's
// end is a clean end (nil).
func Receive(ctx context.Context, body io.Reader, r *relay.Relay, h relay.History, admit func() error) error {
	return receive(ctx, body, r, h, relay.NewIntake(r).Bound(), 0, admit)
}

// receive takes a feed into an intake. It ends once a version is reached, unless that is 0; then a feed that ends before is cut off.
func receive(ctx context.Context, body io.Reader, r *relay.Relay, h relay.History, intake *relay.Intake, until uint64, admit func() error) error {
	var mode [1]byte
	if _, err := io.ReadFull(body, mode[:]); err != nil {
		if errors.Is(err, io.EOF) && until == 0 {
			return nil
		}
		return fmt.Errorf("feed: read mode: %w", err)
	}
	switch {
	case mode[0] == modeResume, mode[0] == modeList:
	case mode[0] == modeDenied && until == 0:
		return receiveDenial(body, r, admit)
	default:
		return fmt.Errorf("feed: mode %q is none of %q, %q, %q", mode[0], modeResume, modeList, modeDenied)
	}
	if mine := r.Status().History.Number; mode[0] == modeResume && mine != h.Number {
		return fmt.Errorf("feed: it goes on in history %d of the cloud, this relay is in %d", h.Number, mine)
	}
	res := r.Resource()
	events := wire.NewEventReader(body, res.Encoding(), res.WireKind())
	var items []*wire.Object
	listing := mode[0] == modeList
	room := r.Room()
	for ctx.Err() == nil {
		if until != 0 && !listing && r.Status().Version >= until {
			return nil
		}
		ev, err := events.Next()
		if errors.Is(err, io.EOF) && until == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("feed: %w", err)
		}
		if err := admit(); err != nil {
			return err
		}
		switch {
		case ev.Type == wire.Error:
			return fmt.Errorf("feed: the leader's relay says: %s", ev.Status.Message)
		case listing && ev.Type == wire.Added:
			items = append(items, ev.Object)
			err = room.Take(ev.Object)
		case listing && ev.InitialEnd:
			err, items, listing = intake.End(h, ev, items), nil, false
		case listing:
			return fmt.Errorf("feed: a %s event among the initial ones", ev.Type)
		default:
			err = intake.Apply(ev)
		}
		if err != nil {
			return fmt.Errorf("feed: %w", err)
		}
	}
	return ctx.Err()
}
