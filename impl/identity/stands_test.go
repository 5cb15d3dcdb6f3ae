package identity

import (
	"encoding/binary"
	"net/http"
	"os"
	"testing"
	"time"
)

// TestADenialHasToStand: a kube-apiserver that starts answers 401 or 403 to good callers, for some seconds. What was
// allowed before outlives one such answer, and two that are close; it is lost by two that are Stands apart. All of it
// is so after a restart of the hub.
func TestADenialHasToStand(t *testing.T) {
	const secret, all = "/api/v1/namespaces/a/secrets/x", "/api/v1/namespaces/a/secrets"
	type said struct {
		after time.Duration
		uri   string
		code  int
	}
	tests := []struct {
		name string
		said []said
		ask  string
		want int // 0: allowed
	}{
		{"403 once", []said{{0, secret, 200}, {time.Hour, secret, 403}}, secret, 0},
		{
			"403 several times, within moments", []said{
				{0, secret, 200}, {time.Hour, secret, 403}, {9 * time.Second, secret, 403},
			}, secret, 0,
		},
		{"403 that stands", []said{{0, secret, 200}, {time.Hour, secret, 403}, {10 * time.Second, secret, 403}}, secret, 403},
		{
			"403, allowed between, 403", []said{
				{0, secret, 200}, {time.Hour, secret, 403}, {5 * time.Second, secret, 200}, {5 * time.Second, secret, 403},
			}, secret, 0,
		},
		{
			"403 that stood, and allowed again", []said{
				{0, secret, 403}, {10 * time.Second, secret, 403}, {time.Second, secret, 200},
			}, secret, 0,
		},
		{"403 once, never allowed", []said{{0, secret, 403}}, secret, 403},
		{"a list: one 403 to the list does not take its members", []said{{0, all, 200}, {time.Minute, all, 403}}, secret, 0},
		{"a list: one 403 to a member does not take it", []said{{0, all, 200}, {time.Minute, secret, 403}}, secret, 0},
		{
			"a list: 403 that stands takes the watch", []said{
				{0, all + "?watch=1", 200}, {0, all, 200}, {time.Minute, all, 403}, {time.Minute, all, 403},
			}, all + "?watch=1", 403,
		},
		{
			"a list: one 403 does not take the watch", []said{
				{0, all + "?watch=1", 200}, {0, all, 200}, {time.Minute, all, 403},
			}, all + "?watch=1", 0,
		},
		{"discovery", []said{{0, "/apis", 200}, {time.Minute, "/apis", 403}}, "/apis", 0},
		{"401 once", []said{{0, secret, 200}, {time.Hour, secret, 401}}, secret, 0},
		{"401 to something else", []said{{0, secret, 200}, {time.Hour, "/apis", 401}}, secret, 0},
		{
			"401 that stands", []said{{0, secret, 200}, {time.Hour, secret, 401}, {10 * time.Second, "/apis", 401}}, secret, 401,
		},
		{
			"401, taken between, 401", []said{
				{0, secret, 200}, {time.Hour, secret, 401}, {time.Minute, secret, 403}, {time.Minute, "/apis", 401},
			}, secret, 0,
		},
		{
			"401 that stood, and taken again", []said{
				{0, secret, 200}, {time.Hour, secret, 401}, {time.Minute, secret, 401}, {time.Minute, secret, 200},
			}, secret, 0,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for who, make := range map[string]func(b *bed) *http.Request{
				"node":   func(*bed) *http.Request { return carrying("Test-Node", "yes") },
				"pod":    func(b *bed) *http.Request { return withToken(b.key.sign(t, podClaims(day, nil))) },
				"static": func(*bed) *http.Request { return withToken("static") },
			} {
				b := newBed(t, func(c *Config) { c.Allowance = 24 * time.Hour })
				b.fetch()
				req := make(b)
				for _, s := range test.said {
					b.clock.Step(s.after)
					b.Learn(req.Header, who == "node", read(s.uri), s.code)
				}
				b.clock.Step(RefusedFor)
				want := test.want
				if want == 401 && who == "node" { // that is about the certificate, and the hub's own
					want = 0
				}
				for _, restarted := range []bool{false, true} {
					if restarted {
						b.verdicts.save()
						b.start(func(c *Config) { c.Allowance = 24 * time.Hour })
					}
					got := 0
					if _, refusal := b.authorizeRequest(req, read(test.ask)); refusal != nil {
						got = int(refusal.ErrStatus.Code)
					}
					if got != want && (who != "static" || got != 503 || want != 403) {
						t.Errorf("%s, restarted %v: got %d, want %d", who, restarted, got, want)
					}
				}
			}
		})
	}
}

// TestABreakBetweenDenials: two servers that start, one after the other, deny in passing twice. So denials count
// together only if the cloud was there without a break.
func TestABreakBetweenDenials(t *testing.T) {
	var broke time.Time
	b := newBed(t, nil)
	b.start(func(c *Config) { c.Unbroken = func() time.Duration { return b.clock.Since(broke) } })
	who, a := carrying("Test-Node", "yes"), read("/api/v1/namespaces/a/secrets/x")
	deny := func(after time.Duration, want decision) {
		t.Helper()
		b.clock.Step(after)
		b.Learn(who.Header, true, a, http.StatusForbidden)
		if d := b.decide(b.node, a); d != want {
			t.Errorf("%v, want %v", d, want)
		}
	}
	b.Learn(who.Header, true, a, http.StatusOK)
	deny(time.Hour, allowed)
	b.clock.Step(300 * time.Millisecond)
	broke = b.clock.Now() // within the second of the denial
	deny(time.Minute, allowed)
	b.clock.Step(5 * time.Second)
	broke = b.clock.Now()
	deny(5*time.Second, allowed)
	deny(9*time.Second, allowed)
	deny(2*time.Second, denied)
	broke = b.clock.Now()
	deny(time.Second, denied) // what stands, stands
}

// TestRefusedWithoutTheCloud: for the seconds after a 401 a token is not sent on. That spares the connection to the
// cloud; when the cloud is away there is none, and what was decided before counts, for what the token has opened, too.
func TestRefusedWithoutTheCloud(t *testing.T) {
	away := false
	b := newBed(t, nil)
	b.start(func(c *Config) { c.Away = func() bool { return away } })
	who := withToken("static")
	b.Learn(who.Header, false, read("/version"), 200)
	b.Refuse(answered(who, http.MethodGet, "/version"))
	for _, away = range []bool{false, true} {
		ctx, done := b.While(t.Context(), who.Header)
		if b.Refused(who.Header) == away || (ctx.Err() == nil) != away {
			t.Errorf("away %v: refused %v, what it opens: %v", away, b.Refused(who.Header), ctx.Err())
		}
		done()
	}
}

// TestWords: what is kept of a read over all that can come.
func TestWords(t *testing.T) {
	at := func(s float64) time.Time { return day.Add(time.Duration(s * float64(time.Second))) }
	never := time.Time{}
	yes := word{allowed: secondOf(day)}
	for name, test := range map[string]struct {
		w      word
		stands bool
	}{
		"9.9 s apart, of which seconds make 10": {yes.deny(at(0.9), never).deny(at(10), never), false},
		"10 s apart":                            {yes.deny(at(0.9), never).deny(at(11), never), true},
		"a clock that was set back":             {yes.deny(at(100), never).deny(at(0), never), false},
		"and that goes on":                      {yes.deny(at(100), never).deny(at(0), never).deny(at(10), never), true},
		"set back after it stood":               {yes.deny(at(100), never).deny(at(110), never).deny(at(0), never), true},
		"of before, denied":                     {formerWord([]byte{1, 0, 0, 0x40}), true},
		"of before, allowed":                    {formerWord([]byte{0xfe, 0xff, 0xff, 0xff}), false},
		"denied since, and long ago":            {word{denied: 9}.after(yes), false},
		"denied once here, and for good before": {yes.deny(at(90), never).after(word{since: 5, denied: 70}), false},
		"once, never allowed here":              {word{}.deny(at(90), never).after(word{since: 5, denied: 70}), true},
	} {
		if got := wordOf(test.w.append(nil)); got != test.w || got.stands() != test.stands {
			t.Errorf("%s: %+v, read as %+v", name, test.w, got)
		}
	}
	if w := yes.deny(at(5), never); w.allowed == 0 {
		t.Error("one denial took what was allowed")
	}
	if w := yes.deny(at(5), never).deny(at(50), never); w.allowed != 0 {
		t.Error("a denial that stands did not")
	}
	if w := (word{}).deny(at(5), never).after(yes); w.allowed != yes.allowed {
		t.Error("what was filed under the token is lost")
	}
}

// TestFormerFile: what an earlier version kept is read: what it allowed is allowed, what it denied is denied.
func TestFormerFile(t *testing.T) {
	b := newBed(t, nil)
	node, yes, no := carrying("Test-Node", "yes"), read("/api/v1/services"), read("/api/v1/secrets")
	file := []byte(formerMagic)
	own := b.node.at.caller
	file = binary.LittleEndian.AppendUint32(append(file, own[:]...), 2)
	for i, a := range []Attributes{yes, no} {
		d := a.hash()
		file = binary.LittleEndian.AppendUint32(append(file, d[:]...), uint32(secondOf(day))<<1|uint32(i))
	}
	check(t, os.WriteFile(b.File, binary.LittleEndian.AppendUint32(file, castagnoli(file)), 0o600))
	b.start(nil)
	if _, refusal := b.authorizeRequest(node, yes); refusal != nil {
		t.Error(refusal)
	}
	if _, refusal := b.authorizeRequest(node, no); refusal == nil || refusal.ErrStatus.Code != http.StatusForbidden {
		t.Errorf("a denial is forgotten: %v", refusal)
	}
}

// TestADenialCostsNoFlash: who is denied again and again costs the disk nothing, but for the first time after something
// was allowed: then the order counts.
func TestADenialCostsNoFlash(t *testing.T) {
	b := newBed(t, nil)
	node, list, watch := carrying("Test-Node", "yes"), read("/api/v1/secrets"), read("/api/v1/secrets?watch=1")
	deny := func() int {
		before := b.Unsaved()
		for range 20 {
			b.clock.Step(time.Minute)
			b.Learn(node.Header, true, list, http.StatusForbidden)
		}
		return b.Unsaved() - before
	}
	if n := deny(); n != 2 {
		t.Errorf("%d writes for 20 denials", n)
	}
	if n := deny(); n != 0 {
		t.Errorf("%d writes for 20 more", n)
	}
	b.Learn(node.Header, true, watch, http.StatusOK)
	if n := deny(); n != 1 {
		t.Errorf("%d writes for 20 after something was allowed", n)
	}
	b.verdicts.save()
	b.start(nil)
	if d := b.decide(b.node, watch); d != denied {
		t.Errorf("who was denied to list later may still watch: %v", d)
	}
}
