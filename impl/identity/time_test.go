package identity

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/pki"
)

// machine is the clock of a machine: its wall clock may be set, what runs beside it may not.
type machine struct {
	clock.Clock
	mu      sync.Mutex
	wall    time.Time
	elapsed time.Duration
	read    map[time.Time]time.Duration
}

func newMachine(wall time.Time) *machine {
	return &machine{Clock: clock.RealClock{}, wall: wall, read: map[time.Time]time.Duration{}}
}

func (m *machine) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read[m.wall] = m.elapsed
	return m.wall
}

// Since is by the monotonic clock, for times that Now gave.
func (m *machine) Since(t time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.read[t]
	if !ok {
		return m.wall.Sub(t)
	}
	return m.elapsed - at
}

func (m *machine) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall, m.elapsed = m.wall.Add(d), m.elapsed+d
}

func (m *machine) set(wall time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall = wall
}

// date is how the cloud tells the time.
func date(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// TestTime: the cloud's clock counts, as it was heard last.
func TestTime(t *testing.T) {
	m := newMachine(day)
	file := filepath.Join(t.TempDir(), "time")
	starts := func() *pki.Proven { return pki.OpenProven(file, m, slog.New(slog.DiscardHandler)) }
	c := starts()
	expect := func(what string, want time.Time) {
		t.Helper()
		if got := c.Now(); !got.Equal(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("nothing is heard", day)
	c.Hear(date(day.Add(-time.Hour)))
	c = starts()
	expect("the local clock is later than what was kept", day)
	c.Hear(date(day))
	m.set(time.Unix(0, 0))
	c = starts()
	m.pass(time.Minute)
	expect("no battery clock", day.Add(time.Minute))
	m.set(day.Add(24 * time.Hour))
	expect("somebody set the clock", day.Add(24*time.Hour))

	c.Hear(date(day))
	expect("the cloud says that it is earlier", day)
	m.pass(time.Hour)
	m.set(m.wall.Add(-time.Minute))
	expect("a step back", day.Add(time.Hour))
	m.set(m.wall.Add(48 * time.Hour))
	expect("a step ahead", day.Add(time.Hour))
	m.set(time.Unix(0, 0))
	expect("back to 1970", day.Add(time.Hour))
	c.Hear("yesterday")
	expect("no date", day.Add(time.Hour))
	c.Hear(date(day.Add(time.Hour)))
	c = starts()
	expect("what is an hour later is kept, too", day.Add(time.Hour))
}

// TestSteps: with the cloud's time, a clock that is set changes no verdict on a token, also after a restart without the
// cloud.
func TestSteps(t *testing.T) {
	m := newMachine(day)
	b := newBed(t, nil)
	b.cloud.now = m.Now
	clocked := func(c *Config) { c.Clock = m }
	b.start(clocked)
	b.time.Hear(date(day))
	b.fetch()
	good, expired := withToken(b.key.sign(t, podClaims(day, nil))),
		withToken(b.key.sign(t, podClaims(day.Add(-3*time.Hour), nil)))
	early := withToken(b.key.sign(t, podClaims(day.Add(30*time.Minute), nil)))
	verdict := func(when string) {
		t.Helper()
		if _, err := b.verifyRequest(good); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if _, err := b.verifyRequest(expired); err == nil {
			t.Errorf("%s: an expired token counts", when)
		}
		if _, err := b.verifyRequest(early); err == nil {
			t.Errorf("%s: an early token counts", when)
		}
	}
	verdict("at first")
	for _, wall := range []time.Time{
		day.Add(-time.Minute), day.Add(-time.Hour), time.Unix(0, 0), day.Add(100 * time.Hour), day,
	} {
		m.set(wall)
		verdict("the clock is set to " + wall.String())
	}
	for _, wall := range []time.Time{time.Unix(0, 0), day.Add(-time.Minute), day.Add(time.Minute)} {
		m.set(wall)
		b.start(clocked)
		verdict("restarted at " + wall.String())
	}
	// What the machine does not know: it was off for a day, and has no battery clock. Tokens live on.
	m.set(time.Unix(0, 0))
	b.start(clocked)
	m.pass(59 * time.Minute)
	if _, err := b.verifyRequest(good); err != nil {
		t.Error(err)
	}
	m.pass(62 * time.Minute)
	if _, err := b.verifyRequest(good); err == nil {
		t.Error("a token lives for ever")
	}
}
