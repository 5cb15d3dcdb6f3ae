package uplink

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
	"github.com/weir-edge/weir/impl/process"
)

// Urgent sends small requests that must not wait for a server that is dead.
type Urgent struct {
	door  *door
	calm  *door       // see Message.Calm
	cert  Certificate // nil: one that is always there
	clock clock.WithTicker
}

// Able reports whether there is a certificate to send anything with.
func (u *Urgent) Able() bool { return u != nil && (u.cert == nil || u.cert.Get() != nil) }

// Message is a small request.
type Message struct {
	Method, URI string
	Header      http.Header
	Body        []byte
	// Calm says that somebody else sees to what must be in time. So it goes over the connection that the node's own
	// watches have open: another one costs a handshake, ten times the message. It may be sent twice.
	Calm bool
}

// MaxAnswer bounds a small answer: the Lease of a node is some hundred bytes.
const MaxAnswer = 64 << 10

// Answer is what a server said.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Reachable reports whether a server is worth a try.
func (u *Urgent) Reachable() bool { return len(u.door.candidates()) > 0 }

// urgentAgain is the pause before all servers are asked again: one that restarts is back in seconds.
const urgentAgain = time.Second

// Send asks until a server answers, none is worth a try, or heartbeat.Attempt is over.
func (u *Urgent) Send(ctx context.Context, m Message) (a *Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat.Attempt)
	defer cancel()
	if m.Calm {
		if a, err = u.calmly(ctx, m); err == nil {
			return a, nil
		}
	}
	for err = ErrNoServer; ctx.Err() == nil; process.Pause(ctx, u.clock, urgentAgain) {
		servers := u.door.candidates()
		if len(servers) == 0 {
			break
		}
		if a, err = u.round(ctx, servers, m); err == nil {
			return a, nil
		}
	}
	// a connection over which nothing came may never bring anything again.
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		u.door.transport.Renew()
	}
	return nil, err
}

// calmly asks the server in use over a connection that is open, and waits no longer than for a server before the next
// one is asked.
func (u *Urgent) calmly(ctx context.Context, m Message) (*Answer, error) {
	servers := u.calm.candidates()
	if len(servers) == 0 {
		return nil, ErrNoServer
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := u.clock.NewTimer(heartbeat.Stagger)
	defer late.Stop()
	go func() {
		select {
		case <-late.C():
			cancel()
		case <-ctx.Done():
		}
	}()
	a, err := u.ask(ctx, u.calm, servers[0], m)
	if err == nil && a.Code >= http.StatusInternalServerError {
		return nil, fmt.Errorf("%s: %d %s", servers[0].name(), a.Code, http.StatusText(a.Code))
	}
	return a, err
}

// round asks servers one after another, best first: the next one when one has failed, and when it has not answered for
// heartbeat.Stagger. The first answer counts, but for those that say that a server cannot serve (500 and more).
func (u *Urgent) round(ctx context.Context, servers []*server, m Message) (*Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	type outcome struct {
		*server
		*Answer
		err error
	}
	outcomes := make(chan outcome, len(servers))
	asked, waiting := 0, 0
	ask := func() (next <-chan time.Time) {
		s := servers[asked]
		asked, waiting = asked+1, waiting+1
		go func() {
			a, err := u.ask(ctx, u.door, s, m)
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
			case o.err == nil && o.Code < http.StatusInternalServerError:
				return o.Answer, nil
			case o.err == nil:
				errs = append(errs, fmt.Errorf("%s: %d %s", o.name(), o.Code, http.StatusText(o.Code)))
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

func (u *Urgent) ask(ctx context.Context, d *door, s *server, m Message) (*Answer, error) {
	a, err := m.Ask(ctx, func(req *http.Request) (*http.Response, error) {
		resp, err := d.at(s, req)
		if err != nil {
			s.Kick()
		}
		return resp, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name(), err)
	}
	return a, nil
}

// Ask sends a message by a round trip to one server, and reads the answer.
func (m Message) Ask(ctx context.Context, by func(*http.Request) (*http.Response, error)) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, m.Method, "https://cloud"+m.URI, bytes.NewReader(m.Body))
	if err != nil {
		return nil, err
	}
	req.Header = m.Header.Clone()
	resp, err := by(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer))
	if err != nil {
		return nil, err
	}
	return &Answer{resp.StatusCode, resp.Header, body}, nil
}
