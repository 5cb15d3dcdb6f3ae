package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/heartbeat"
)

// urgent sends small requests that must not wait for a server that is dead.
type urgent struct {
	door  *door
	clock clock.WithTicker
}

// message is a small request.
type message struct {
	method, uri string
	header      http.Header
	body        []byte
}

// answer is what a server said.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// reachable tells whether a server is worth a try.
func (u *urgent) reachable() bool { return len(u.door.cloud.candidates()) > 0 }

// urgentAgain is the pause before all servers are asked again: one that restarts is back in seconds.
const urgentAgain = time.Second

// send asks until a server answers, none is worth a try, or heartbeat.Attempt is over.
func (u *urgent) send(ctx context.Context, m message) (a *answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat.Attempt)
	defer cancel()
	for err = errNoServer; ctx.Err() == nil; sleep(ctx, u.clock, urgentAgain) {
		servers := u.door.cloud.candidates()
		if len(servers) == 0 {
			break
		}
		if a, err = u.round(ctx, servers, m); err == nil {
			return a, nil
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) { // a connection over which nothing came may never bring anything again
		u.door.transport.renew()
	}
	return nil, err
}

// round asks servers one after another, best first: the next one when one has failed, and when it has not answered for heartbeat.Stagger. The first answer counts,
// but for those that say that a server cannot serve (500 and more).
func (u *urgent) round(ctx context.Context, servers []*server, m message) (*answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	type outcome struct {
		*server
		*answer
		err error
	}
	outcomes := make(chan outcome, len(servers))
	asked, waiting := 0, 0
	ask := func() (next <-chan time.Time) {
		s := servers[asked]
		asked, waiting = asked+1, waiting+1
		go func() {
			a, err := u.ask(ctx, s, m)
			outcomes <- outcome{s, a, err}
		}()
		if asked == len(servers) {
			return nil
		}
		return u.clock.After(heartbeat.Stagger)
	}
	defer func() {
		cancel()
		for ; waiting > 0; waiting-- {
			<-outcomes
		}
	}()
	var errs []error
	for next := ask(); waiting > 0; {
		select {
		case <-next:
			next = ask()
		case o := <-outcomes:
			waiting--
			switch {
			case o.err == nil && o.code < http.StatusInternalServerError:
				return o.answer, nil
			case o.err == nil:
				errs = append(errs, fmt.Errorf("%s: %d %s", o.name, o.code, http.StatusText(o.code)))
			default:
				errs = append(errs, o.err)
			}
			if asked < len(servers) {
				next = ask()
			}
		}
	}
	return nil, errors.Join(errs...)
}

func (u *urgent) ask(ctx context.Context, s *server, m message) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, m.method, "https://cloud"+m.uri, bytes.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	req.Header = m.header.Clone()
	resp, err := u.door.at(s, req)
	if err != nil {
		s.kick()
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxLease))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return &answer{resp.StatusCode, resp.Header, body}, nil
}
