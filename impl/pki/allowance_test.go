package pki

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// leaf is what an authority signs at a time.
func leaf(t *testing.T, a *Authority, k Kind, at time.Time, life time.Duration) []*x509.Certificate {
	t.Helper()
	i := Must(k)
	template, err := i.Template(Subject{Pool: "harbour", Node: "edge-1", Name: "1", Hosts: []string{"10.0.0.1"}}, at, life)
	if err != nil {
		t.Fatal(err)
	}
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := a.Sign(template, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	chain, err := ParseCertificates(text)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

var beginning = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// TestAllowance: the rule for certificates that have ended, one by one.
func TestAllowance(t *testing.T) {
	authority, err := NewPoolAuthority("harbour", beginning)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewPoolAuthority("harbour", beginning)
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("taken back")
	for _, c := range []struct {
		about  string
		kind   Kind
		by     *Authority
		at     time.Duration // from its beginning
		cloud  bool
		refuse error
		in     bool
		late   bool
	}{
		{"in time", Hub, authority, 89 * day, true, nil, true, false},
		{"in time, without the cloud", Hub, authority, 89 * day, false, nil, true, false},
		{"late", Hub, authority, 91 * day, false, nil, true, true},
		{"late, a replica", Replica, authority, 91 * day, false, nil, true, true},
		{"late, a coordinator", Coordinator, authority, 91 * day, false, nil, true, true},
		{"late, while the cloud is there", Hub, authority, 91 * day, true, nil, false, false},
		{"late and taken back", Hub, authority, 91 * day, false, refused, false, false},
		{"in time and taken back", Hub, authority, 1 * day, false, refused, false, false},
		{"at the end of the allowance", Hub, authority, 180*day - 2*time.Hour, false, nil, true, true},
		{"after the allowance", Hub, authority, 180*day + time.Minute, false, nil, false, false},
		{"late, of another authority", Hub, other, 91 * day, false, nil, false, false},
		{"a person, late", Viewer, authority, 91 * day, false, nil, false, false},
		{"before its beginning, which it proves", Hub, authority, -2 * time.Hour, false, nil, true, false},
	} {
		chain := leaf(t, c.by, c.kind, beginning, 90*day)
		var log strings.Builder
		a := &Allowance{
			Time: at(beginning.Add(c.at)), Cloud: func() bool { return c.cloud },
			Refuse: func(*x509.Certificate) error { return c.refuse }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}
		for range 2 {
			late, err := a.Verify(chain, x509.VerifyOptions{
				Roots: authority.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
			})
			if (err == nil) != c.in || late != c.late {
				t.Errorf("%s: late %t, %v", c.about, late, err)
			}
		}
		if told := strings.Count(log.String(), "has ended"); c.late != (told == 1) || c.late != (a.counted.Load() == 2) {
			t.Errorf("%s: told %d times, counted %d", c.about, told, a.counted.Load())
		}
		if rest := a.Rest(chain[0]); c.in && rest <= 0 || c.late && rest > again ||
			c.at > 90*day && !c.late && c.refuse == nil && c.by == authority && rest > 0 {
			t.Errorf("%s: counts for %v", c.about, rest)
		}
	}
	if Lasts() != 180*day {
		t.Errorf("what is taken back is remembered for %v", Lasts())
	}
}

// TestAllowanceOfAPool: a pool may say that it is shorter, at any time, and never longer than what is revoked is
// remembered.
func TestAllowanceOfAPool(t *testing.T) {
	authority, err := NewPoolAuthority("harbour", beginning)
	if err != nil {
		t.Fatal(err)
	}
	chain := leaf(t, authority, Hub, beginning, 30*day)
	for _, c := range []struct {
		says, after time.Duration
		in          bool
	}{
		{10 * day, 9 * day, true}, {10 * day, 10*day + time.Second, false}, {0, time.Second, false}, {0, -time.Second, true},
		{-day, time.Second, false},
		{1000 * day, 90*day - 2*time.Hour, true}, {1000 * day, 91 * day, false},
	} {
		a := &Allowance{
			Time: at(chain[0].NotAfter.Add(c.after)), Cloud: func() bool { return false },
			For: func() time.Duration { return c.says }, Logger: slog.New(slog.DiscardHandler),
		}
		late, err := a.Verify(chain,
			x509.VerifyOptions{Roots: authority.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		if (err == nil) != c.in || late != (c.in && c.after > 0) || (a.Rest(chain[0]) > 0) != c.in {
			t.Errorf("an allowance of %v, %v after its end: late %t, %v, rest %v", c.says, c.after, late, err, a.Rest(chain[0]))
		}
	}
}

// at is a time that stands still.
func at(t time.Time) *Proven {
	return OpenProven("", clocktesting.NewFakeClock(t), slog.New(slog.DiscardHandler))
}

// TestWhile: a stream ends when the certificate of its caller does; if that counts longer, it ends when there is a sign
// of the cloud.
func TestWhile(t *testing.T) {
	for _, cloud := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			authority, err := NewPoolAuthority("harbour", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			chain := leaf(t, authority, Hub, time.Now(), 90*day)
			var sign atomic.Bool
			sign.Store(cloud)
			a := &Allowance{
				Time: OpenProven("", clock.RealClock{}, slog.New(slog.DiscardHandler)), Cloud: sign.Load,
				Logger: slog.New(slog.DiscardHandler),
			}
			ctx, end := a.While(t.Context(), clock.RealClock{}, chain[0])
			defer end()
			time.Sleep(time.Until(chain[0].NotAfter) - time.Second)
			if ctx.Err() != nil {
				t.Error("it ended before its time")
			}
			for _, later := range []time.Duration{time.Minute, 10 * day} {
				time.Sleep(later)
				synctest.Wait()
				if (ctx.Err() != nil) != cloud {
					t.Errorf("cloud %t: %v after its end: %v", cloud, later, ctx.Err())
				}
			}
			sign.Store(true)
			time.Sleep(2 * again)
			synctest.Wait()
			if ctx.Err() == nil {
				t.Error("it goes on when the cloud is there")
			}
		})
	}
}

// TestProven: the time goes forward by what an authority of the pool has signed, by nothing else, never back, and is on
// the disk.
func TestProven(t *testing.T) {
	authority, err := NewPoolAuthority("harbour", beginning.Add(-day))
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewPoolAuthority("harbour", beginning.Add(-day))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "time")
	c := clocktesting.NewFakeClock(time.Unix(60, 0))
	logger := slog.New(slog.DiscardHandler)
	p := OpenProven(file, c, logger)
	is := func(about string, want time.Time) {
		t.Helper()
		if got := p.Now(); !got.Equal(want) {
			t.Errorf("%s: it is %s, want %s", about, got.UTC(), want.UTC())
		}
	}
	is("nothing proved", c.Now())
	p.Learn(nil, authority.Pool())
	p.Learn(leaf(t, other, Hub, beginning.Add(time.Hour), 90*day), authority.Pool())
	is("a stranger's", c.Now())
	hub := leaf(t, authority, Hub, beginning, 90*day)
	begin := hub[0].NotBefore
	p.Learn(hub, authority.Pool())
	is("a hub's", begin)
	c.Step(time.Hour)
	is("an hour later", begin.Add(time.Hour))
	p.Learn(leaf(t, authority, Hub, beginning.Add(-10*time.Hour), 90*day), authority.Pool())
	is("an older one", begin.Add(time.Hour))
	c.SetTime(time.Unix(0, 0))
	p = OpenProven(file, c, logger)
	is("after a restart", begin)
	// With a clock that is right, it is the clock's; and what is proved is kept all the same.
	c.SetTime(beginning.Add(30 * day))
	p = OpenProven(file, c, logger)
	is("a clock that is right", beginning.Add(30*day))
	next := leaf(t, authority, Hub, beginning.Add(20*day), 90*day)
	p.Learn(next, authority.Pool())
	is("and a certificate of before", beginning.Add(30*day))
	c.SetTime(time.Unix(0, 0))
	p = OpenProven(file, c, logger)
	is("and then in 1970", next[0].NotBefore)
	if err := os.WriteFile(file, []byte("soon"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = OpenProven(file, c, logger)
	is("half a file", c.Now())
}

// TestOverhear: a process that does not hear the cloud takes its time from one of the same machine that does, as if it
// heard the cloud itself; what is old, or no time, says nothing.
func TestOverhear(t *testing.T) {
	authority := must(NewPoolAuthority("harbour", beginning))
	roots := authority.Pool()
	c := clocktesting.NewFakeClock(beginning)
	dir := t.TempDir()
	file, kept := filepath.Join(dir, CloudTimeFile), filepath.Join(dir, "time")
	open := func(file string) *Proven { return OpenProven(file, c, slog.New(slog.DiscardHandler)) }
	wrote := func() { // the file has the time of this machine's clock
		if err := os.Chtimes(file, c.Now(), c.Now()); err != nil {
			t.Fatal(err)
		}
	}
	ahead := leaf(t, authority, Hub, beginning.Add(2*365*24*time.Hour), time.Hour)
	deaf := open(kept)
	deaf.Learn(ahead, roots)
	is := func(what string, want time.Time) {
		t.Helper()
		if now := deaf.Now(); now.Sub(want).Abs() > time.Second {
			t.Errorf("%q: it is %v, want %v", what, now, want)
		}
	}
	deaf.Overhear(file)
	is("nothing was handed on", ahead[0].NotBefore)

	hears := open("")
	hears.HandOn(file)
	hears.Hear(beginning.Add(time.Minute).Format(http.TimeFormat)) // the cloud's clock is a minute ahead
	wrote()
	c.Step(overheard + time.Second)
	deaf.Overhear(file)
	is("it is old", ahead[0].NotBefore.Add(overheard+time.Second))

	hears.Hear(c.Now().Add(time.Minute).Format(http.TimeFormat))
	wrote()
	c.Step(5 * time.Second)
	deaf.Overhear(file)
	is("it was handed on", c.Now().Add(time.Minute))
	deaf.Learn(ahead, roots)
	is("a thief's certificate again", c.Now().Add(time.Minute))
	if deaf = open(kept); deaf.Now().After(c.Now().Add(2 * time.Minute)) {
		t.Errorf("after a restart it is %v", deaf.Now())
	}
	for _, text := range []string{"", "tomorrow", strings.Repeat("9", 2*maxTime)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wrote()
		before := deaf.Now()
		deaf.Overhear(file)
		is(text, before)
	}
}

// TestTimeOfAThief: who holds a pool's key signs certificates that begin far ahead, up to the end of the authority. The
// cloud's clock outranks them, before and after; beyond the authority's end nobody believes them.
func TestTimeOfAThief(t *testing.T) {
	authority := must(NewPoolAuthority("harbour", beginning))
	roots := authority.Pool()
	c := clocktesting.NewFakeClock(beginning)
	date := func(at time.Time) string { return at.UTC().Format(http.TimeFormat) }
	ahead := leaf(t, authority, Hub, beginning.Add(2*365*24*time.Hour), time.Hour)
	beyond := leaf(t, authority, Hub, time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC), time.Hour)
	p := OpenProven(filepath.Join(t.TempDir(), "time"), c, slog.New(slog.DiscardHandler))

	if p.Learn(beyond, roots); !p.Now().Equal(beginning) {
		t.Errorf("it is %v, by what is signed after the authority has ended", p.Now())
	}
	p.Learn(ahead, roots)
	if p.Now().Before(ahead[0].NotBefore) { // a machine without a clock, of which nobody knows how long it was away
		t.Errorf("without the cloud it is %v", p.Now())
	}
	if p.Hear(date(beginning)); !p.Now().Equal(beginning) {
		t.Errorf("when the cloud is heard it is %v", p.Now())
	}
	if p.Learn(ahead, roots); !p.Now().Equal(beginning) {
		t.Errorf("after the cloud was heard it is %v", p.Now())
	}
	soon := leaf(t, authority, Hub, beginning.Add(astray/2), time.Hour)
	if p.Learn(soon, roots); !p.Now().Equal(soon[0].NotBefore) { // who signs it may be ahead of the cloud's clock
		t.Errorf("beside the cloud's clock it is %v", p.Now())
	}
}

// TestProvenIsClosed: once its process has ended nothing is written any more. Handshakes go on for a moment.
func TestProvenIsClosed(t *testing.T) {
	dir := t.TempDir()
	c := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	p := OpenProven(filepath.Join(dir, "time"), c, slog.New(slog.DiscardHandler))
	p.HandOn(filepath.Join(dir, "handed"))
	said := time.Unix(1e9, 0).UTC()
	p.Close()
	p.Hear(said.Format(http.TimeFormat))
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("written are %v, %v", files, err)
	}
	if now := p.Now(); !now.Equal(said) {
		t.Errorf("what is heard does not count: %v", now)
	}
}
