package identity

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
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

func date(t time.Time) http.Header {
	return http.Header{"Date": {t.UTC().Format(http.TimeFormat)}}
}

// TestTime: the cloud's clock counts, as it was heard last.
func TestTime(t *testing.T) {
	m := newMachine(day)
	c := &cloudTime{clock: m}
	expect := func(what string, want time.Time) {
		t.Helper()
		if got := c.Now(); !got.Equal(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("nothing is heard", day)
	c.restore(day.Add(-time.Hour))
	expect("the local clock is later than what was kept", day)
	m.set(time.Unix(0, 0))
	c = &cloudTime{clock: m}
	c.restore(day)
	m.pass(time.Minute)
	expect("no battery clock", day.Add(time.Minute))
	m.set(day.Add(24 * time.Hour))
	expect("somebody set the clock", day.Add(24*time.Hour))

	c.hear(date(day))
	expect("the cloud says that it is earlier", day)
	m.pass(time.Hour)
	m.set(m.wall.Add(-time.Minute))
	expect("a step back", day.Add(time.Hour))
	m.set(m.wall.Add(48 * time.Hour))
	expect("a step ahead", day.Add(time.Hour))
	m.set(time.Unix(0, 0))
	expect("back to 1970", day.Add(time.Hour))
	c.hear(http.Header{"Date": {"yesterday"}})
	c.restore(day.Add(100 * time.Hour))
	expect("no date, and what was kept later on", day.Add(time.Hour))
}

// TestSteps: with the cloud's time, a clock that is set changes no verdict on a token, also after a restart without the cloud.
func TestSteps(t *testing.T) {
	m := newMachine(day)
	b := newBed(t, nil)
	b.cloud.now = m.Now
	clocked := func(c *Config) { c.Clock = m }
	b.start(clocked)
	b.fetch()
	good, expired := withToken(b.key.sign(t, podClaims(day, nil))), withToken(b.key.sign(t, podClaims(day.Add(-3*time.Hour), nil)))
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
	for _, wall := range []time.Time{day.Add(-time.Minute), day.Add(-time.Hour), time.Unix(0, 0), day.Add(100 * time.Hour), day} {
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

// TestTimeWithoutGrant: a hub that may not read keys learns the time from the very refusal.
func TestTimeWithoutGrant(t *testing.T) {
	b := newBed(t, nil)
	b.cloud.answer(http.StatusForbidden)
	if err := b.keys.fetch(t.Context(), nil); err == nil {
		t.Fatal("no error")
	}
	m := newMachine(time.Unix(0, 0))
	b.start(func(c *Config) { c.Clock = m })
	if got := b.Now(); !got.Equal(day) {
		t.Errorf("it is %v", got)
	}
}
