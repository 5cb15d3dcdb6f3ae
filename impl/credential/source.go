package credential

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	readAgain = 10 * time.Second // how old a token from a file may be: its reader may be refused by then
	// DefaultTimeout of a program: one that asks a cloud over a thin link takes its time.
	DefaultTimeout = 30 * time.Second
	// After a failure a program rests: the first time for restFirst, twice as long each time, and restMost at most.
	restFirst, restMost = time.Second, 30 * time.Second
)

// Config of a Source.
type Config struct {
	User    *User
	Timeout time.Duration // of a program; 0: DefaultTimeout
	Clock   clock.PassiveClock
	Logger  *slog.Logger
}

// Source tells the credential that is valid now. Make it with New. Its methods may be called by many goroutines.
type Source struct {
	Config

	mu      sync.Mutex
	now     held
	refused string        // a token that the cloud has refused; what the source says again is no longer valid
	failed  error         // why there is none
	rest    time.Duration // after the last failure
	again   time.Time     // not before it is tried again
	running chan struct{} // closed when what runs has ended; nil: nothing does
	said    string
}

// New makes a Source. Nothing is run before it is asked.
func New(c Config) *Source {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Source{Config: c}
}

// Follow says that the kubeconfig has this user from now on. What was held goes on if it is the same.
func (s *Source) Follow(u *User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reflect.DeepEqual(u, s.User) {
		return
	}
	s.User, s.now, s.failed, s.rest, s.refused, s.said = u, held{}, nil, 0, "", ""
}

// Token is what a request shows. It waits for a program that runs, as long as ctx lasts.
func (s *Source) Token(ctx context.Context) (string, error) {
	for {
		s.mu.Lock()
		now := s.Clock.Now()
		if s.counts(now) {
			defer s.mu.Unlock()
			return s.now.token, nil
		}
		if s.failed != nil && now.Before(s.again) {
			defer s.mu.Unlock()
			return "", s.failed
		}
		if s.running == nil {
			s.running = make(chan struct{})
			go s.renew()
		}
		running := s.running
		s.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the node's credential: %w", context.Cause(ctx))
		}
	}
}

// counts reports whether what is held may still be shown.
func (s *Source) counts(now time.Time) bool {
	h := s.now
	switch {
	case h.token == "":
		return false
	case !h.until.IsZero() && !now.Before(h.until):
		return false
	case s.User.Exec == nil && s.User.TokenFile != "":
		return now.Sub(h.read) < readAgain
	}
	return true
}

// Counts reports whether there is a credential, for the one that does not want to wait. One that was not asked for yet
// may be there.
func (s *Source) Counts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed == nil || s.counts(s.Clock.Now())
}

// Get is an empty certificate, for the one that wants one: connections are opened without.
func (s *Source) Get() *tls.Certificate { return &tls.Certificate{} }

// Refused says that the cloud takes a token no more: another is got, by the next request.
func (s *Source) Refused(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	switch {
	case token == "", token != s.now.token: // a newer one is there already
		return
	case s.User.Exec == nil && s.User.TokenFile == "": // there will never be another
		if s.said == "" {
			s.said = "refused"
			s.Logger.Warn("the cloud does not take the node's token: put another into the kubelet's kubeconfig")
		}
		return
	}
	if s.User.Exec != nil && now.Sub(s.now.read) < restFirst {
		return // a program that gives what the cloud does not take is not run for each request
	}
	s.now.read, s.now.until = time.Time{}, now
	s.refused = token
}

// renew gets another credential, and wakes who waits.
func (s *Source) renew() {
	var next held
	var err error
	s.mu.Lock()
	user := s.User
	s.mu.Unlock()
	if user.Exec != nil {
		next, err = user.run(s.Timeout)
	} else {
		next, err = user.readToken()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(s.running)
	defer func() { s.running = nil }()
	if user != s.User { // who waits asks again
		return
	}
	now := s.Clock.Now()
	next.read = now
	if err == nil && !next.until.IsZero() && !now.Before(next.until) {
		err = fmt.Errorf("%s: its credential has ended, at %s, and it is %s: see the clock", s.User.name(),
			next.until.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if err != nil {
		s.fails(now, err)
		return
	}
	if s.said != "" {
		s.Logger.Info("the node's credential is there again", "from", s.User.name())
	}
	s.now, s.failed, s.rest, s.said = next, nil, 0, ""
}

// fails notes that there is no newer credential. A token of a file that is gone goes on until the cloud refuses it.
func (s *Source) fails(now time.Time, err error) {
	if s.rest = 2 * s.rest; s.rest == 0 {
		s.rest = restFirst
	}
	s.rest = min(s.rest, restMost)
	s.again, s.failed = now.Add(s.rest), err
	goesOn := s.User.Exec == nil && s.now.token != "" && s.now.token != s.refused
	if goesOn {
		s.now.read = now
	}
	if text := err.Error(); text != s.said {
		s.said = text
		s.Logger.Warn("the node's credential cannot be got", "err", err, "former-goes-on", goesOn)
	}
}
