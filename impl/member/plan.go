package member

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

const (
	// FirstBackoff is the pause after the first attempt of a feeder that fails.
	FirstBackoff = 200 * time.Millisecond
	// barredPatience is for how long an upstream has to say that this client may not read before a relay that holds
	// something believes it: a kube-apiserver that has just started says so before it knows its own rules.
	barredPatience = 5 * time.Second
	// barredSoon is how soon a kube-apiserver says so. What was asked for longer waited for a connection: it may be
	// another one, or the same one again, which says so for the first time.
	barredSoon = 2 * time.Second
	// forgotMost is how many upstreams are remembered that have forgotten a version: the gate, kube-apiserver, and spare.
	forgotMost = 4
	// MaxBackoff is the longest pause between attempts that fail.
	MaxBackoff = 15 * time.Second
	// LongWatch is how long a watch of the cloud lasts that has nothing to say, as long as those of a stock informer. Its
	// driver proves beside it that it lives.
	LongWatch = 5 * time.Minute
	// ShortestWatch is the shortest watch on which kube-apiserver sends a bookmark.
	ShortestWatch = 3 * time.Second
	// LateAfter is the age of what a relay holds from which its upstream is asked how far it is before it is watched.
	LateAfter = 3 * time.Second
)

// Upstream is what a Plan knows of the server that feeds a relay.
type Upstream struct {
	ID          any    // comparable: another value is another server
	Name        string // for people, and to know an upstream again that is used at times
	Cloud       bool   // it reads consistently
	Relay       bool   // it is a relay, which says in which history it is
	Unconfirmed bool   // it is a relay that does not hear from the cloud itself
	Compresses  bool   // its streaming lists, and no other watch
	Plain       bool   // it knows no streaming lists
}

// Feed is what a feeder sees when it asks its Plan for the next step.
type Feed struct {
	Now       time.Time
	Relay     relay.Status
	Up        Upstream
	Overruled uint64 // the latest history that others of the pool are in; 0: not known
	Doubtful  bool   // something broke since the upstream was seen to be in the relay's history
	Reached   uint64 // the version that the cloud was at when it was last asked; 0: not known
	Leaf      bool   // nobody else is fed from the relay
}

// Do is what a feeder does next.
type Do string

// All that a feeder does.
const (
	// Ask asks the cloud how far it is, and whether it is in the relay's history.
	Ask Do = "ask"
	// List lists everything, and goes on with the events behind the list.
	List Do = "list"
	// ListBeside does so while the relay is fed by short watches until they have reached the list.
	ListBeside Do = "list beside watches"
	// ListTraced does so while metadata tell what happened up to the list, for clients that have seen a part of it.
	ListTraced Do = "list and trace"
	// Compare brings the relay to the upstream's state by a comparison of metadata (rule 5 of a relay).
	Compare Do = "compare"
	// Resume watches once from the version reached.
	Resume Do = "resume"
)

// Step is the next step of a feeder.
type Step struct {
	Do      Do
	Why     Cause                // of a list
	Another *AnotherHistoryError // that a list takes up; nil: none
	Lasts   time.Duration        // of a watch
	Missed  time.Duration        // for how long the relay has missed what changed; of a cheaper list
	Plain   int64                // bytes of events that came uncompressed; of a cheaper list
}

// Cause is why a feeder opens a full list.
type Cause string

// The causes.
const (
	CauseFirst   Cause = "first"   // the relay holds nothing
	CauseExpired Cause = "expired" // after 410 too much differs
	CauseHistory Cause = "history" // the cloud is in another history (rule 7)
	CauseCheaper Cause = "cheaper" // what was missed, or what comes uncompressed, costs more
)

// AnotherHistoryError is the proof that the upstream's versions are of another history than those of the relay (rule
// 7).
type AnotherHistoryError struct {
	History relay.History // the one that the upstream's are of
	Proof   string
	Yield   bool // take it even if it is an earlier one
}

func (e *AnotherHistoryError) Error() string {
	return "the history of the cloud is another one: " + e.Proof
}

// EarlierHistoryError says that an upstream does not know yet what the relay knows, or counts from elsewhere.
type EarlierHistoryError struct {
	Theirs, Mine uint64
	Age          time.Duration // since the upstream's last sign of the cloud; < 0: not known
}

func (e *EarlierHistoryError) Error() string {
	if e.Theirs > e.Mine {
		return fmt.Sprintf("the upstream says that it is in history %d of the cloud, which cannot follow %d", e.Theirs,
			e.Mine)
	}
	return fmt.Sprintf("the upstream is still in history %d of the cloud, this relay in %d", e.Theirs, e.Mine)
}

// Follows compares what a relay that is the upstream says of its history with another one. age: see
// EarlierHistoryError.
func Follows(mine, theirs relay.History, age time.Duration) error {
	switch {
	case theirs.Number == mine.Number:
		return nil
	case theirs.Number < mine.Number, !mine.Near(theirs):
		// that nobody can have missed so many is no proof: it may have begun again.
		return &EarlierHistoryError{theirs.Number, mine.Number, age}
	}
	return &AnotherHistoryError{
		History: theirs, Proof: fmt.Sprintf("the upstream is in history %d, this relay in %d", theirs.Number, mine.Number),
	}
}

// Plan decides how the feeder of one relay goes on: what it does next at its upstream, and what follows from how that
// ended. Package source drives it over connections, sim/virtual over simulated ones. The driver calls Next, does what
// the Step says, and calls Ended, but Next again after an Ask that was answered; Switched if the upstream is another
// one meanwhile. A Plan is for one goroutine.
type Plan struct {
	// Lasts is how long a watch lasts.
	Lasts time.Duration

	thrift  thrift
	another *AnotherHistoryError // to be taken up …
	from    any                  // … from this upstream
	behind  Behind
	backoff time.Duration // after the next attempt that fails
	doing   Do
	barred  time.Time // since when the upstream says that this client may not read
	expired any       // the upstream that has just forgotten the relay's version; nil: none has
	forgot  []any     // all that have forgotten …
	version uint64    // … this one, at which the last step began
	asked   bool      // the upstream was asked, and Feed.Reached is what it said
	moved   bool      // an event came since the last step began
	quiet   bool      // the last watch ended in order, and brought no event
}

// Next is the next step.
func (p *Plan) Next(f Feed) Step {
	s := p.next(f)
	p.doing = s.Do
	return s
}

func (p *Plan) next(f Feed) Step {
	s, asked, expired, quiet := f.Relay, p.asked, p.expired, p.quiet
	p.asked, p.expired, p.quiet, p.moved = false, nil, false, false
	if p.version != s.Version {
		p.version, p.forgot = s.Version, nil
	}
	another := p.Another(f)
	switch {
	case !s.Synced:
		return Step{Do: List, Why: CauseFirst, Another: another}
	case another != nil:
		return Step{Do: List, Why: CauseHistory, Another: another}
	case expired != nil && expired == f.Up.ID, // another one may remember it
		len(p.forgot) > 1 && f.Up.Relay && slices.Contains(p.forgot, f.Up.ID):
		return Step{Do: Compare}
	}
	gap := p.gap(f)
	// what was missed may be much: a question comes before it pours.
	if f.Up.Cloud && f.Doubtful && !asked && (gap > 0 || late(f)) {
		p.asked = true
		return Step{Do: Ask}
	}
	if p.cheaper(f.Up, s, f.Reached, gap) {
		return p.cheaperList(f, gap)
	}
	lasts := p.Lasts
	if quiet && f.Up.Cloud && !f.Doubtful && !s.Restored {
		lasts = LongWatch
	}
	if asked && between(s, f.Reached) < worthAList {
		lasts = ShortestWatch // a relay that has all, or nearly, is fresh at the bookmark: reads wait for that
	}
	return Step{Do: Resume, Lasts: lasts}
}

// cheaperList is a list for a relay that is not empty. Unless the relay misses something, it is fed by plain watches
// meanwhile, and until they are as far as the list: a list may take long over a thin link, and as a difference it would
// leave out versions of objects that others have replaced. After a long gap it is such a difference, a batch (rule 6),
// as after a 410. Then metadata tell the way, if anybody may have seen a part of it: all who read from a relay that is
// no restored one, and feeds no other, are where it is.
func (p *Plan) cheaperList(f Feed, gap time.Duration) Step {
	s := Step{Do: ListBeside, Why: CauseCheaper, Missed: gap, Plain: p.thrift.plain}
	p.thrift = thrift{} // if it fails, the next one has to be worth it again
	switch current := gap == 0 && f.Reached <= f.Relay.Version; {
	case !current && !f.Relay.Restored && f.Leaf:
		s.Do = List
	case !current:
		s.Do = ListTraced
	}
	return s
}

// gap is how long the relay has missed what changed, beyond what is usual between two watches. What a disk held was
// missed from then on.
func (p *Plan) gap(f Feed) time.Duration {
	age, ok := f.Relay.Age(f.Now)
	if !ok || age <= p.Lasts && !f.Relay.Restored {
		return 0
	}
	return age
}

// late reports whether the relay has heard nothing for so long that a question, which takes a round trip, may spare
// more than it costs. A watch that is opened at once brings all that was missed, uncompressed, and what is under way of
// it holds up the list that would have been cheaper. A new leader mostly heard more lately.
func late(f Feed) bool {
	age, ok := f.Relay.Age(f.Now)
	return ok && age > LateAfter
}

// Cheaper reports whether a list costs less than the rest of a watch that brings a backlog.
// reached: see Feed.Reached.
func (p *Plan) Cheaper(up Upstream, s relay.Status, reached uint64) bool {
	return s.Version < reached && p.cheaper(up, s, reached, 0)
}

// cheaper reports whether a list of the upstream costs less than its events. What is not compressed behind it only
// saves what was missed.
func (p *Plan) cheaper(up Upstream, s relay.Status, reached uint64, gap time.Duration) bool {
	if up.Plain {
		return s.Synced && between(s, reached) > max(s.Bytes, worthAList)
	}
	return up.Compresses && p.thrift.lists(s, gap, reached)
}

// Came notes an event of a size in bytes. plain: it came uncompressed from an upstream that compresses lists.
func (p *Plan) Came(now time.Time, size int, plain bool) {
	p.moved = true
	p.thrift.came(now, size, plain)
}

// Another is the history that the relay has to take up from its upstream; nil if there is none.
func (p *Plan) Another(f Feed) *AnotherHistoryError {
	if p.another != nil && p.from == f.Up.ID {
		return p.another
	}
	p.another = nil
	if f.Up.Cloud && f.Overruled > f.Relay.History.Number {
		return &AnotherHistoryError{
			History: relay.History{Number: f.Overruled, Lost: f.Relay.Version},
			Proof:   fmt.Sprintf("the coordinator is in history %d", f.Overruled),
		}
	}
	return nil
}

// Learn looks whether an error tells that the upstream is in another history, which the relay has to take up. The next
// list does so.
func (p *Plan) Learn(up Upstream, err error, now time.Time) *AnotherHistoryError {
	var another *AnotherHistoryError
	var earlier *EarlierHistoryError
	switch {
	case up.Unconfirmed: // only who hears from the cloud may bring another
		return nil
	case errors.As(err, &another):
	case !errors.As(err, &earlier):
		return nil
	default:
		waited, yields := p.behind.Yields(up.Name, earlier.Mine, earlier.Age, now)
		if !yields {
			return nil
		}
		another = &AnotherHistoryError{
			relay.History{Number: earlier.Theirs},
			fmt.Sprintf("%v, for %v, and fresh", earlier, waited.Round(time.Second)), true,
		}
	}
	p.another, p.from, p.behind = another, up.ID, Behind{}
	return another
}

// TookUp notes that the relay has taken up the history that it had to.
func (p *Plan) TookUp() { p.another = nil }

// End is how a step ended.
type End struct {
	Now        time.Time
	Up         Upstream
	Err        error         // nil: in order
	Code       int           // of the answer that Err is about; 0: there was none
	Synced     bool          // the relay holds something
	RetryAfter time.Duration // that the upstream asks for
	Progressed bool          // the relay has heard from the cloud meanwhile
	Took       time.Duration // from the beginning of the step
}

// After is what follows the end of a step.
type After struct {
	Wait    time.Duration        // before the next step; half of it is drawn by lot. 0: none
	Learned *AnotherHistoryError // that the next list takes up
	Doubt   bool                 // behind what broke may be another cloud
	Denied  bool                 // the upstream does not have the resource, or does not give it: relay.Relay.Deny
}

// Ended takes how the last step ended.
func (p *Plan) Ended(e End) (a After) {
	if e.Progressed || p.backoff == 0 {
		p.backoff = FirstBackoff
	}
	p.asked = false
	p.quiet = e.Err == nil && p.doing == Resume && !p.moved
	gone := e.Code == http.StatusGone // the upstream has forgotten the relay's version
	a.Denied = p.denied(e)
	switch {
	case e.Err == nil:
		p.behind.Ended(e.Up.Name)
		return a
	case gone && p.doing == Resume:
		if p.expired = e.Up.ID; !slices.Contains(p.forgot, p.expired) {
			p.forgot = append(p.forgot[max(len(p.forgot)-forgotMost+1, 0):], p.expired)
		}
		return a
	}
	a.Doubt, a.Learned = true, p.Learn(e.Up, e.Err, e.Now)
	var another *AnotherHistoryError
	// The list that follows is not a retry. Nor may it wait: an upstream that is left and used again meanwhile would have
	// to be waited for once more.
	if !gone && a.Learned == nil && !errors.As(e.Err, &another) {
		a.Wait = max(p.backoff, e.RetryAfter)
	}
	p.backoff = min(2*p.backoff, MaxBackoff)
	return a
}

// denied reports whether an upstream has answered that there is nothing for this relay.
func (p *Plan) denied(e End) bool {
	switch {
	case e.Code != http.StatusForbidden:
		p.barred = time.Time{}
	case p.barred.IsZero(), e.Took > barredSoon:
		p.barred = e.Now
	}
	switch e.Code {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return !e.Up.Unconfirmed
	case http.StatusForbidden:
		return !e.Up.Unconfirmed && (!e.Synced || e.Now.Sub(p.barred) >= barredPatience)
	}
	return false
}

// Switched notes that another upstream is used from now on, or that others have overruled the relay.
func (p *Plan) Switched() {
	p.thrift.switched()
	p.backoff, p.asked, p.expired, p.barred, p.quiet = FirstBackoff, false, nil, time.Time{}, false
}

// Kicked notes that a pause was ended: the upstream is another one, or is known to answer again.
func (p *Plan) Kicked() { p.backoff = FirstBackoff }

// Listed is a complete list that a feeder has.
type Listed struct {
	Up      Upstream
	Now     relay.Status         // of the relay
	In      relay.History        // that the list is of
	Version uint64               // that the list is at
	Another *AnotherHistoryError // that it was opened to take up; nil: none
	Next    bool                 // it contradicts what the relay holds, and In is the history that follows from that
}

// Taking is how a relay takes a complete list.
type Taking struct {
	In      relay.History // that the list is of
	Testify bool          // the relay is beyond the list, whose end is a sign of the cloud
	Believe bool          // first the cloud is asked, if it can be, whether it contradicts
	Yield   bool          // also if the history is an earlier one
}

// Take decides how a list is taken.
func Take(l Listed) Taking {
	changes, t := l.Next || l.Another != nil, Taking{In: l.In}
	switch {
	case l.Up.Cloud && changes: // the cloud has the word, whatever the relay was told by others meanwhile
		if t.Yield = true; l.Now.Synced && l.In.Number <= l.Now.History.Number {
			t.In = l.Now.History.Next(l.Now.Version)
		}
		return t
	case !changes && l.Now.Version >= l.Version:
		t.Testify = true
		return t
	}
	t.Believe = l.Up.Relay && l.Now.Synced && l.In.Number != l.Now.History.Number
	t.Yield = l.Another != nil && l.Another.Yield
	return t
}

// HistoryOf is what a list of an upstream is taken to be of. told: what a relay says of itself.
func HistoryOf(up Upstream, told relay.History, another *AnotherHistoryError, s relay.Status) relay.History {
	switch {
	case up.Relay:
		return told
	case another != nil:
		return another.History
	}
	return s.History
}

// Plausible tells by an error why a history that a relay says it is in cannot be taken up at its word.
func Plausible(s relay.Status, theirs relay.History, another *AnotherHistoryError) error {
	switch {
	case !s.Synced && theirs.First(), s.Synced && s.History.Near(theirs):
		return nil
	case another != nil && another.Yield && theirs.First():
		return nil
	}
	return fmt.Errorf("the upstream says that it is in history %d of the cloud, which cannot follow %d", theirs.Number,
		s.History.Number)
}
