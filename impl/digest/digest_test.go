package digest

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func usual() Digest {
	return Digest{
		"v0.3.0-12-gac6a071f", Leader, 12 * time.Second, time.Date(2026, 11, 23, 14, 0, 0, 0, time.UTC), 123_456_789,
		2_345_678, 120_000_000, 987_654_321, "", Images{}, "",
	}
}

// TestText: what is told is read again, and takes few bytes whatever a hub has to say. docs/metrics.md has these two
// figures.
func TestText(t *testing.T) {
	d := usual()
	got, err := Parse(d.Text())
	if err != nil || got != d {
		t.Errorf("%s: %+v, %v", d.Text(), got, err)
	}
	if n := len(d.Text()); n > 80 {
		t.Errorf("%d bytes: %s", n, d.Text())
	}
	d.Images = Images{Pulled: 52_428_800, Served: 157_286_400}
	if got, err := Parse(d.Text()); err != nil || got != d || len(d.Text()) > 112 {
		t.Errorf("%s: %+v, %v", d.Text(), got, err)
	}
	most := Digest{
		strings.Repeat("v", 99), Follower, math.MaxInt64, time.Unix(math.MaxUint32, 0).UTC(), math.MaxInt64, math.MaxInt64,
		math.MaxInt64, math.MaxInt64, strings.Repeat("c", 99), Images{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		EdgesOf(worst()),
	}
	if n := len(most.Text()); n > MaxText {
		t.Errorf("%d bytes: %s", n, most.Text())
	}
	if got, err := Parse(most.Text()); err != nil || got.Down != maxCount || got.Age != maxAge*time.Second ||
		len(got.Version) != maxVersion || got.Images != (Images{maxCount, maxCount, maxCount}) ||
		got.Edges != most.Edges {
		t.Errorf("%s: %+v, %v", most.Text(), got, err)
	}
	for version, want := range map[string]string{
		"(devel) 0123456789ab go1.26": "devel", "": "-", "v1\n\x00/é": "v1", "()": "-",
	} {
		d := Digest{Version: version, Age: Unknown}
		got, err := Parse(d.Text())
		if err != nil || got.Version != want || got.Role != Pending || got.Age != Unknown {
			t.Errorf("%q: %+v, %v", version, got, err)
		}
	}
}

// TestParse: what a later hub appends is left alone, and what no hub would write is an error that says what is wrong,
// and gives nothing.
func TestParse(t *testing.T) {
	text := usual().Text()
	pending := usual()
	pending.Role, pending.Cause = Pending, Timeout
	if got, err := Parse(pending.Text() + " more 7"); err != nil || got != pending {
		t.Errorf("%+v, %v", got, err)
	}
	pending.Images, pending.Edges = Images{1, 2, 3}, EdgesOf([]Edge{{ToHub, "edge-2", 10269, Refused}})
	if got, err := Parse(pending.Text() + " more 7"); err != nil || got != pending {
		t.Errorf("%+v, %v", got, err)
	}
	words := strings.Split(text, " ")
	with := func(i int, word string) string {
		all := append([]string{}, words...)
		all[i] = word
		return strings.Join(all, " ")
	}
	for bad, says := range map[string]string{
		"": "format", "2" + text[1:]: "format", "{}": "format", "1 v1 L": "3 words, want 9",
		text + strings.Repeat(" ", maxRead): "686 at most",
		with(1, "a\nb"):                     "version", with(1, ""): "version",
		with(1, strings.Repeat("v", maxVersion+1)): "version",
		with(2, "X"): "role", with(2, ""): "role",
		with(3, "-2"): "age", with(3, "3153600001"): "age", with(4, "-1"): "start", with(4, "4294967296"): "start",
		with(5, "9007199254740992"): "down",
		with(6, "-1"):               "up", with(7, "1e3"): "feed", with(8, "99999999999999999999"): "served",
		with(8, "0x1"):     "served",
		text + " - -1 0 0": "images pulled", text + " - 0 x 0": "images saved", text + " - 0 0 ": "images served",
		text + " - 0 0 0 ": "number of edges", text + " - 0 0 0 more": "number of edges",
		text + " - 0 0 0 1/1":                 "number",
		text + " - 0 0 0 1/2 c/a/1/t c/b/1/t": "number",
		text + " - 0 0 0 +1/1 c/a/1/t":        "number", text + " - 0 0 0 1/0": "number", text + " - 0 0 0 0/0": "number",
		text + " - 0 0 0 10000/0": "number", text + " - 0 0 0 9/9" + strings.Repeat(" c/a/1/t", 9): "number",
		text + " - 0 0 0 1/1 c/a/1": "edge", text + " - 0 0 0 1/1 c/a/0/t": "edge", text + " - 0 0 0 1/1 c/a/65536/t": "edge",
		text + " - 0 0 0 1/1 c/\x1b[2J/1/t": "edge", text + " - 0 0 0 1/1 cc/a/1/t": "edge",
		text + " - 0 0 0 1/1 /a/1/t": "edge", text + " - 0 0 0 1/1 \n/a/1/t": "edge", text + " - 0 0 0 1/1 c/a/01/t": "edge",
		text + " - 0 0 0 1/1 c/" + strings.Repeat("a", maxPeer+1) + "/1/t":              "edge",
		text + " - 0 0 0 1/1 c/a/1/" + strings.Repeat("a", maxCause+1):                  "edge",
		text + " - 0 0 0 4/4" + strings.Repeat(" c/"+strings.Repeat("a", 40)+"/1/t", 4): "edge",
		text + " a/b": "cause", text + " ": "cause", text + " " + strings.Repeat("c", maxCause+1): "cause",
	} {
		if got, err := Parse(bad); err == nil || !strings.Contains(err.Error(), says) || got != (Digest{}) {
			t.Errorf("%.80q: %+v, %v: want an error about %s", bad, got, err, says)
		}
	}
}

// TestSharing: a hub shares that leads or follows, holds something fresh, and told so not long ago. For each cause
// there are words.
func TestSharing(t *testing.T) {
	for what, c := range map[string]struct {
		is   func(*Digest)
		ago  time.Duration
		want string // "": it shares
	}{
		"a leader":            {},
		"a follower":          {is: func(d *Digest) { d.Role = Follower }, ago: Lapsed},
		"silence":             {ago: Lapsed + time.Second, want: "has told nothing for 2h0m0s"},
		"an older hub":        {is: func(d *Digest) { d.Role = Pending }, want: "it does not say why"},
		"a later one":         {is: func(d *Digest) { d.Role, d.Cause = Pending, "novel" }, want: "it does not say why"},
		"a relay not filled":  {is: func(d *Digest) { d.Age = Unknown }, want: "not complete"},
		"a relay that is old": {is: func(d *Digest) { d.Age = Stale + time.Second }, want: "2m1s old"},
	} {
		d := usual()
		if c.is != nil {
			c.is(&d)
		}
		err := d.Sharing(c.ago)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	for cause, words := range likely {
		d := usual()
		d.Role, d.Cause = Pending, cause
		got, err := Parse(d.Text())
		if err != nil || got != d {
			t.Fatalf("%s: %+v, %v", cause, got, err)
		}
		if err := got.Sharing(0); err == nil || !strings.HasSuffix(err.Error(), words) {
			t.Errorf("%s: %v, want %q", cause, err, words)
		}
	}
}

// FuzzParse: whatever somebody writes, what is taken has its bounds, and is read again.
func FuzzParse(f *testing.F) {
	f.Add(usual().Text())
	f.Add("1 - P -1 0 0 0 0 0 x")
	f.Add("1 - P -1 0 0 0 0 0 - 1 2 3")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text)
		if err != nil {
			if d != (Digest{}) || len(err.Error()) > 400 {
				t.Fatalf("%q: %+v, %v", text, d, err)
			}
			return
		}
		if again, err := Parse(d.Text()); err != nil || again != d || len(d.Text()) > MaxText {
			t.Fatalf("%q: %+v, then %+v, %v", text, d, again, err)
		}
	})
}

// heartbeat is the time between two heartbeats of a kubelet.
const heartbeat = 10 * time.Second

// day counts the digests of a day.
func day(of func(now time.Duration) Digest) (n int) {
	var r Rhythm
	for now := time.Duration(0); now < 24*time.Hour; now += heartbeat {
		if d := of(now); r.Due(now, d) {
			r.Told(now, d)
			n++
		}
	}
	return n
}

// TestRhythm: a day has so many digests, whatever happens.
func TestRhythm(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	for name, c := range map[string]struct {
		of          func(now time.Duration) Digest
		least, most int
	}{
		"nothing happens": {func(time.Duration) Digest { return usual() }, 24, 24},
		"bytes grow": {
			func(now time.Duration) Digest { d := usual(); d.Served += int64(now / time.Second); return d }, 24, 24,
		},
		"from the start": {func(now time.Duration) Digest { return Digest{Role: Follower, Served: int64(now)} }, 28, 32},
		"the role changes": {func(now time.Duration) Digest {
			d := usual()
			d.Role = []Role{Leader, Follower}[now/heartbeat%2]
			return d
		}, 48, 55},
		"all changes": {func(time.Duration) Digest {
			d := usual()
			d.Role, d.Age = []Role{Leader, Follower}[chance.IntN(2)], time.Duration(chance.IntN(300))*time.Second
			return d
		}, 48, 55},
	} {
		if n := day(c.of); n < c.least || n > c.most {
			t.Errorf("%s: %d digests in a day, want %d to %d", name, n, c.least, c.most)
		}
	}
}

// TestRhythmSoon: what somebody would act on is told within a minute, and what did not reach the cloud is tried again
// with the next heartbeat.
func TestRhythmSoon(t *testing.T) {
	var r Rhythm
	d := usual()
	if !r.Due(0, d) || !r.Due(heartbeat, d) {
		t.Error("the first is not due until the cloud has taken it")
	}
	r.Told(heartbeat, d)
	now := heartbeat + Soonest
	if r.Due(now, d) {
		t.Error("nothing has changed, and it is told again")
	}
	for name, change := range map[string]func(*Digest){
		"old": func(d *Digest) { d.Age = Stale + time.Second }, "never filled": func(d *Digest) { d.Age = Unknown },
		"an edge":         func(d *Digest) { d.Edges = EdgesOf([]Edge{{ToHub, "edge-2", 10269, Refused}}) },
		"a follower":      func(d *Digest) { d.Role = Follower },
		"another version": func(d *Digest) { d.Version = "v9" },
		"twice the bytes": func(d *Digest) { d.Served += 2 * (d.Down + d.Up + d.Served) },
		"an image":        func(d *Digest) { d.Images.Pulled += 2 * (d.Down + d.Up + d.Served) },
	} {
		is := usual()
		change(&is)
		if r.Due(now-heartbeat, is) {
			t.Errorf("%s: told within %v of the one before", name, Soonest)
		}
		if !r.Due(now, is) {
			t.Errorf("%s: not told after %v", name, Soonest)
		}
	}
}
