package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Config is what a Feeder is made of.
type Config struct {
	// Relay is fed. Required; nobody else may feed it.
	Relay *relay.Relay
	// WatchTimeout is the timeoutSeconds of upstream watches, whole seconds, at least 3 s (a bookmark comes 2 s before the
	// end). Default 10 s.
	WatchTimeout time.Duration
	// Learned, if set, is told when the cloud's history is found to be another one, its number, and whether the cloud
	// itself has shown it. All resources of a cloud are in the same history: then feeders of others should be overruled
	// (Overrule). Else each of them follows its own upstream. It must not block.
	Learned func(number uint64, cloud bool)
	// Denied is told that an upstream answers that it does not have the resource, or does not give it to this client. It
	// must not block. Default: the relay is told (relay.Relay.Deny), which is right if there is nobody else to ask.
	Denied func(up *hop.Upstream, why error)
	// Failed, if set, is told of each attempt that failed. It must not block.
	Failed func(up *hop.Upstream, err error)
	// Judge, if set, is the cloud while it can be reached, also while the relay is fed from elsewhere; else nil. Another
	// history is taken up at the word of a relay only if the cloud does not contradict.
	Judge func() *hop.Upstream
	// Doubt, if set, is told how the cloud contradicts the relay that is the upstream. It must not block.
	Doubt func(error)
	// Pulse is shared by feeders of one process, so that quiet streams are proved to live together. Default one of its
	// own.
	Pulse *Pulse
	// Feeds reports whether others may be fed from the relay, now or soon. Default: they may.
	Feeds func() bool
	// Clock is for tests. Default the real one.
	Clock clock.WithTicker
	// Logger gets each change between working and failing. Default slog.Default().
	Logger *slog.Logger
}

// Gate is the name of an upstream that is weir-gate: it stands for the cloud, and says so by its history, as relays do.
const Gate = "gate"

// reportAgain is after what time an error that lasts is told again.
const reportAgain = time.Minute

// maxError bounds the text of an error, in bytes: what an upstream says may be in it, and stands in log and status.
const maxError = 2 << 10

// Feeder keeps one relay fed.
type Feeder struct {
	cfg    Config
	change chan struct{} // capacity 1: Use was called
	plan   member.Plan   // of the goroutine that feeds

	mu     sync.Mutex
	up     *hop.Upstream
	stop   context.CancelFunc // ends what runs on the upstream in use
	status Status
	// Of the cloud's history.
	overruled uint64   // number of one that others are in
	doubt     bool     // something broke since the upstream was trusted
	trusted   net.Conn // over which it was

	// Of the goroutine of Run.
	plainAt atomic.Pointer[hop.Upstream] // does not know streaming lists
	asked   atomic.Uint64                // version that the cloud had reached when it was last asked
	wholes  atomic.Bool                  // the next watch is to bring objects, and no differences
	named   *hop.Upstream                // has said what lists declare
	told    bool                         // that the cloud shows no bookmarks
	// restored is when it began to feed a relay that came from a disk; zero: it did not.
	restored time.Time
}

// Status is a snapshot of a Feeder for people and policies.
type Status struct {
	Upstream   string    // "" while there is none
	Lists      Lists     // full lists opened
	Resyncs    int       // comparisons by metadata after 410
	Watches    int       // watches opened
	Switches   int       // changes of upstream after the first
	Gone       int       // 410 answers
	Checks     int       // times the upstream was asked whether its history is the relay's
	Histories  int       // times it was another one
	Mismatches int       // differences that were to what the relay does not hold
	LastError  string    // "" while it works
	Answer     int       // status code of the upstream's answer that LastError is about, 0 if there was no answer
	Since      time.Time // when it began to work or to fail
	reported   time.Time // when it was last said that it fails
}

// Lists counts full lists by cause.
type Lists struct {
	First   int `json:"first"`
	Expired int `json:"expired"`
	History int `json:"history"`
	Cheaper int `json:"cheaper"`
}

// Total counts all.
func (l Lists) Total() int { return l.First + l.Expired + l.History + l.Cheaper }

// All walks over the counts.
func (l Lists) All() iter.Seq2[member.Cause, int] {
	return func(yield func(member.Cause, int) bool) {
		_ = yield(member.CauseFirst, l.First) && yield(member.CauseExpired, l.Expired) &&
			yield(member.CauseHistory, l.History) && yield(member.CauseCheaper, l.Cheaper)
	}
}

// NewFeeder checks a configuration. The feeder is idle until Run and Use.
func NewFeeder(c Config) (*Feeder, error) {
	if c.Relay == nil {
		return nil, errors.New("feeder: no relay")
	}
	if c.WatchTimeout == 0 {
		c.WatchTimeout = 10 * time.Second
	}
	if c.WatchTimeout < member.ShortestWatch || c.WatchTimeout%time.Second != 0 {
		return nil, fmt.Errorf("feeder: watch timeout %v: whole seconds, at least 3s", c.WatchTimeout)
	}
	if c.Denied == nil {
		c.Denied = func(_ *hop.Upstream, why error) { c.Relay.Deny(why) }
	}
	if c.Failed == nil {
		c.Failed = func(*hop.Upstream, error) {}
	}
	if c.Pulse == nil {
		c.Pulse = &Pulse{}
	}
	if c.Feeds == nil {
		c.Feeds = func() bool { return true }
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = c.Logger.With("resource", c.Relay.Resource().String())
	return &Feeder{cfg: c, change: make(chan struct{}, 1), plan: member.Plan{Lasts: c.WatchTimeout}}, nil
}

// Use feeds the relay from an upstream from now on; nil means from nowhere. The relay goes on at the version it has
// reached. Use never blocks; the same upstream again changes nothing.
func (f *Feeder) Use(up *hop.Upstream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if up == f.up {
		return
	}
	if f.up != nil && up != nil || f.status.Watches > 0 && up != nil {
		f.status.Switches++
	}
	f.up, f.doubt = up, true
	f.status.Upstream = ""
	if up != nil {
		f.status.Upstream = up.Name
	}
	if f.stop != nil {
		f.stop()
	}
	select {
	case f.change <- struct{}{}:
	default:
	}
}

// Status returns a snapshot.
func (f *Feeder) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *Feeder) failed(up *hop.Upstream, err error) {
	f.mu.Lock()
	now := f.cfg.Clock.Now()
	first := f.status.LastError == ""
	if first {
		f.status.Since = now
	}
	again := !first && now.Sub(f.status.reported) >= reportAgain
	if first || again {
		f.status.reported = now
	}
	lasts := now.Sub(f.status.Since)
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxError)], "")
	f.status.LastError, f.status.Answer = text, hop.Answered(err)
	if hop.Gone(err) {
		f.status.Gone++
	}
	f.mu.Unlock()
	if first {
		f.cfg.Logger.Warn("cannot feed the relay; trying again", "upstream", up.Name, "err", text)
	}
	if again {
		f.cfg.Logger.Warn("still cannot feed the relay", "upstream", up.Name, "for", lasts.Round(time.Second).String(),
			"err", text)
	}
}

func (f *Feeder) works(up *hop.Upstream) {
	f.mu.Lock()
	again := f.status.LastError != ""
	if again || f.status.Since.IsZero() {
		f.status.Since, f.status.LastError = f.cfg.Clock.Now(), ""
	}
	f.mu.Unlock()
	if again {
		f.cfg.Logger.Info("the relay is fed again", "upstream", up.Name)
	}
}

// Kick ends a pause between two attempts: the upstream is known to answer again. It never blocks.
func (f *Feeder) Kick() {
	select {
	case f.change <- struct{}{}:
	default:
	}
}

func (f *Feeder) listing(why member.Cause) {
	switch l := &f.status.Lists; why {
	case member.CauseFirst:
		f.count(&l.First)
	case member.CauseExpired:
		f.count(&l.Expired)
	case member.CauseHistory:
		f.count(&l.History)
	case member.CauseCheaper:
		f.count(&l.Cheaper)
	}
}

func (f *Feeder) count(what *int) {
	f.mu.Lock()
	*what++
	f.mu.Unlock()
}
