package trust

import (
	"bytes"
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pool is an authority that is replaced again and again, and the text that tells of it.
type pool struct {
	name string
	s    *pki.Succession
	text []byte
	at   time.Time
}

var plan = pki.Plan{Settle: time.Minute, Overlap: time.Hour}

func newPool(name string) *pool {
	p := &pool{name: name, s: &pki.Succession{Signer: must(pki.NewPoolAuthority(name, now))}, at: now}
	p.publish()
	return p
}

func (p *pool) publish() { p.text = must(Publish(p.text, p.name, p.s, 0, p.at)) }

func (p *pool) step(step func() error) {
	if err := step(); err != nil {
		panic(err)
	}
	p.publish()
}

func (p *pool) prepare() {
	p.step(func() error { return p.s.Prepare(must(pki.NewPoolAuthority(p.name, p.at)), p.at, plan) })
}

func (p *pool) switches() {
	p.at = p.at.Add(plan.Settle)
	p.step(func() error { return p.s.Switch(p.at) })
}

func (p *pool) retire() {
	p.at = p.at.Add(plan.Overlap)
	p.step(func() error { return p.s.Retire(p.at) })
}

func (p *pool) rotate() {
	p.prepare()
	p.switches()
	p.retire()
}

func (p *pool) file() func() []*x509.Certificate {
	c := p.s.Signer.Cert()
	return func() []*x509.Certificate { return []*x509.Certificate{c} }
}

func holds(first func() []*x509.Certificate, dir string) *Held {
	return New(Config{Pool: "harbour", First: first, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
}

// counts fails unless exactly these authorities are trusted, the one that signs first.
func counts(t *testing.T, h *Held, want ...*x509.Certificate) {
	t.Helper()
	have := h.List()
	if len(have) != len(want) {
		t.Fatalf("%d authorities count, want %d", len(have), len(want))
	}
	for i := range want {
		if !have[i].Equal(want[i]) {
			t.Errorf("authority %d is %s, want %s", i, Name(have[i]), Name(want[i]))
		}
	}
	if !h.Get().Equal(poolOf(want)) {
		t.Error("the pool is another one than the list")
	}
}

// TestChain: whoever knows one authority follows to the last, at whatever step he hears of it; from a disk too. Nothing
// older counts again.
func TestChain(t *testing.T) {
	p, dir := newPool("harbour"), t.TempDir()
	first := p.file()
	away := holds(first, "")
	h := holds(first, dir)
	a := p.s.Signer.Cert()
	counts(t, h, a)
	if must(h.Take(p.text)); h.Number() == 0 {
		t.Fatal("the first bundle does not count")
	}
	old := p.text
	p.prepare()
	must(h.Take(p.text))
	counts(t, h, a, p.s.Next.Cert())
	p.switches()
	must(h.Take(p.text))
	b := p.s.Signer.Cert()
	counts(t, h, b, a)
	if !h.Signer().Equal(b) {
		t.Error("the one that signs is another one")
	}
	if changed, err := h.Take(old); changed || err != nil {
		t.Errorf("an older text: %v, %v", changed, err)
	}
	if changed, err := h.TakeOfCloud(old); changed || err == nil || !strings.Contains(err.Error(), "weir pki rotate") {
		t.Errorf("an older text of the cloud: %v, %v", changed, err)
	}
	p.retire()
	must(h.Take(p.text))
	counts(t, h, b)
	h = holds(first, dir)
	counts(t, h, b)
	if file := must(os.ReadFile(filepath.Join(dir, CAFile))); !bytes.Equal(file,
		pki.EncodeCertificates([]*x509.Certificate{b})) {
		t.Error("the file of authorities says something else")
	}
	p.rotate()
	must(away.Take(p.text)) // who was away for two rotations
	counts(t, away, p.s.Signer.Cert())
	if changed := must(away.Take(p.text)); changed {
		t.Error("the same text changes something")
	}
}

// TestForged: a text counts whole and signed, of this pool, by one that signs or is to sign. One that did has no say.
func TestForged(t *testing.T) {
	p := newPool("harbour")
	h := holds(p.file(), "")
	thief := *p.s // whoever has the key of the first authority
	stolen := p.text
	must(h.Take(p.text))
	p.prepare()
	p.switches()
	must(h.Take(p.text))
	want := h.List()

	thief.SignsAt = time.Time{}
	evil := &pool{name: "harbour", s: &thief, text: stolen, at: p.at.Add(time.Hour)}
	evil.prepare()
	other, another := newPool("lighthouse"), newPool("harbour")
	another.text, another.at = nil, p.at.Add(time.Hour)
	another.publish()
	p.retire()
	lines := bytes.SplitAfter(p.text, []byte("\n"))
	var many []byte
	for range 3 {
		many = append(many, p.text...)
	}
	five := *p.s
	five.Before = []*x509.Certificate{want[0], want[0], want[0], want[0]}
	if _, err := Publish(p.text, "harbour", &five, 0, p.at); err == nil {
		t.Error("five authorities are published")
	}
	for what, text := range map[string][]byte{
		"the key of before": evil.text, "another pool": other.text, "nobody's": another.text,
		"half": lines[len(lines)-2][:200], "twice": many,
		"not JSON": []byte("ca.crt\n"), "too long": bytes.Repeat([]byte("\n"), MaxText+1),
		"another number": bytes.Replace(lines[len(lines)-2], []byte(`"number":1`), []byte(`"number":9`), 1),
		"too many":       bytes.Repeat(lines[0], MaxLinks+1),
	} {
		if changed, err := h.Take(text); changed || err == nil {
			t.Errorf("%s: %v, %v", what, changed, err)
		}
		counts(t, h, want...)
	}
	// the cloud may not break a pool by accident either.
	for what, text := range map[string][]byte{"another pool": other.text, "half": lines[len(lines)-2][:200]} {
		if changed, err := h.TakeOfCloud(text); changed || err == nil {
			t.Errorf("%s, of the cloud: %v, %v", what, changed, err)
		}
	}
	must(h.Take(p.text))
	counts(t, h, p.s.Signer.Cert())
}

// TestLostKey: the cloud replaces an authority that nobody can vouch for. Inside the pool that counts for nobody.
func TestLostKey(t *testing.T) {
	p := newPool("harbour")
	first := p.file()
	h, peer := holds(first, ""), holds(first, "")
	must(h.Take(p.text))
	must(peer.Take(p.text))
	a := p.s.Signer.Cert()
	p.s = must(pki.Recover(p.s.Trusted(), must(pki.NewPoolAuthority("harbour", now)), now, plan))
	p.publish()
	if changed, err := peer.Take(p.text); changed || err == nil {
		t.Errorf("inside the pool: %v, %v", changed, err)
	}
	must(h.TakeOfCloud(p.text))
	counts(t, h, p.s.Signer.Cert(), a)
	both := p.s.Trusted() // the hub of the machine, or a person, replaces the file
	peer.First = func() []*x509.Certificate { return both }
	if !peer.Reread() || peer.Reread() {
		t.Fatal("the file does not count, or it does each time")
	}
	counts(t, peer, p.s.Signer.Cert(), a)
	must(peer.Take(p.text))
	counts(t, peer, p.s.Signer.Cert(), a)
	// With nothing to begin with, the cloud's word is the first.
	fresh := holds(nil, "")
	counts(t, fresh)
	if _, err := fresh.Take(p.text); err == nil {
		t.Error("anybody's text is the first")
	}
	must(fresh.TakeOfCloud(p.text))
	counts(t, fresh, p.s.Signer.Cert(), a)
}

// TestFile: a file that is older than what is held, and did not change, overrules nothing; one of another authority
// does, once.
func TestFile(t *testing.T) {
	p, dir := newPool("harbour"), t.TempDir()
	first := p.file()
	h := holds(first, dir)
	p.rotate()
	must(h.Take(p.text))
	if h = holds(first, dir); h.Reread() || h.Number() == 0 {
		t.Error("the old file counts again")
	}
	other := newPool("harbour")
	if h = holds(other.file(), dir); h.Number() != 0 {
		t.Error("the new file does not count")
	}
	counts(t, h, other.s.Signer.Cert())
	if h = holds(other.file(), dir); h.Number() != 0 {
		t.Error("the new file does not count after a restart")
	}
	for _, text := range []string{"", "{", `{"text":"half`, `{"text":"{\"bundle\":"}`} {
		if err := os.WriteFile(filepath.Join(dir, TextFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		counts(t, holds(first, dir), first()...)
	}
}

// TestOthers: an authority in the file that is none of the pool's goes on to count beside the bundle. The file for
// others has all that count.
func TestOthers(t *testing.T) {
	p, dir, beside := newPool("harbour"), t.TempDir(), filepath.Join(t.TempDir(), "coordinator")
	a, theirs := p.s.Signer.Cert(), must(pki.NewAuthority("people", now, time.Hour)).Cert()
	h := New(Config{
		Pool: "harbour", First: func() []*x509.Certificate { return []*x509.Certificate{theirs, a} }, Dir: dir,
		Beside: beside, Logger: slog.New(slog.DiscardHandler),
	})
	shown := func(want ...*x509.Certificate) {
		t.Helper()
		for _, d := range []string{dir, beside} {
			if file := must(os.ReadFile(filepath.Join(d, CAFile))); !bytes.Equal(file, pki.EncodeCertificates(want)) {
				t.Errorf("the file in %s says something else", d)
			}
		}
	}
	shown(theirs, a)
	p.rotate()
	must(h.Take(p.text))
	counts(t, h, p.s.Signer.Cert(), theirs)
	shown(p.s.Signer.Cert(), theirs)
	if h.Reread() {
		t.Error("the file overrules, and did not change")
	}
}

// TestExchange: two of a pool come to hold the same, whoever heard of it. They say no more than a tag when they do.
func TestExchange(t *testing.T) {
	p := newPool("harbour")
	first := p.file()
	mine, theirs, changes := holds(first, ""), holds(first, ""), 0
	mine.Retrust = func() { changes++ }
	asked := []string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked = append(asked, req.Method)
		theirs.ServeHTTP(w, req)
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	at := must(url.Parse(server.URL))
	exchange := func() {
		t.Helper()
		if err := mine.Exchange(context.Background(), transport, at); err != nil {
			t.Fatal(err)
		}
	}
	p.rotate()
	must(theirs.Take(p.text))
	exchange()
	counts(t, mine, p.s.Signer.Cert())
	p.rotate()
	must(mine.TakeOfCloud(p.text))
	exchange()
	counts(t, theirs, p.s.Signer.Cert())
	asked = nil
	if exchange(); len(asked) != 1 || changes != 2 {
		t.Errorf("asked %v, %d changes", asked, changes)
	}
}

// TestBounds: a text has the last bundles only, and they are still a chain.
func TestBounds(t *testing.T) {
	p := newPool("harbour")
	for range MaxLinks {
		p.rotate()
	}
	all, err := read(p.text, "harbour")
	if err != nil || len(all) != MaxLinks || len(chain(all)) != MaxLinks {
		t.Errorf("%d bundles, %v", len(all), err)
	}
	if n := len(p.text); n > MaxText/2 {
		t.Errorf("%d bytes", n)
	}
	if text := must(Publish(p.text, "harbour", p.s, 0, p.at)); !bytes.Equal(text, p.text) {
		t.Error("nothing happened, and is published")
	}
	if all := must(read(must(Publish([]byte("half"), "harbour", p.s, 0, p.at)), "harbour")); len(all) != 1 {
		t.Errorf("begun anew with %d bundles", len(all))
	}
}

// TestAhead: no number is ahead by more than an hour. The cloud's may be by two, so that it can be above whatever a
// member of the pool made others believe.
func TestAhead(t *testing.T) {
	p := newPool("harbour")
	h := holds(p.file(), "")
	h.Time = pki.OpenProven("", clocktesting.NewFakePassiveClock(now), slog.New(slog.DiscardHandler))
	of := func(number uint64) []byte { return must(Publish(nil, "harbour", p.s, number, now.Add(-time.Minute))) }
	for what, c := range map[string]struct {
		number uint64
		take   func([]byte) (bool, error)
	}{
		"of the pool":     {bulletin.Next(0, now.Add(bulletin.Ahead+time.Second)), h.Take},
		"of the cloud":    {bulletin.Next(0, now.Add(2*bulletin.Ahead+time.Second)), h.TakeOfCloud},
		"the last number": {1<<64 - 1, h.TakeOfCloud},
	} {
		if _, err := c.take(of(c.number)); err == nil || !strings.Contains(err.Error(), "ahead") || h.Number() != 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(h.Take(of(bulletin.Next(0, now.Add(bulletin.Ahead)))))
	must(h.TakeOfCloud(of(bulletin.Next(0, now.Add(2*bulletin.Ahead)))))
	// A text with such a number is begun again: nothing could follow it.
	if all := must(read(must(Publish(of(1<<64-1), "harbour", p.s, 0, now)), "harbour")); len(all) != 1 ||
		all[0].Number != bulletin.Next(0, now) {
		t.Errorf("after the last number comes %d", all[len(all)-1].Number)
	}
}

// TestSpeakers: one that signed before has no word any more, and is trusted still. One that a restored cloud has
// forgotten has.
func TestSpeakers(t *testing.T) {
	p := newPool("harbour")
	h := holds(p.file(), "")
	if got := h.Speakers(); len(got) != 1 {
		t.Errorf("without a bundle: %d", len(got))
	}
	first, next := p.s.Signer, must(pki.NewPoolAuthority("harbour", now.Add(time.Hour)))
	must(h.Take(must(Publish(nil, "harbour", &pki.Succession{Signer: first, Next: next}, 1, now))))
	if got := h.Speakers(); len(got) != 2 {
		t.Errorf("while the next one is known: %d", len(got))
	}
	text, _ := h.Text()
	must(
		h.Take(must(Publish(text, "harbour", &pki.Succession{Signer: next, Before: []*x509.Certificate{first.Cert()}}, 1,
			now.Add(time.Second)))))
	if got := h.Speakers(); len(got) != 1 || !got[0].Equal(next.Cert()) || len(h.List()) != 2 {
		t.Errorf("after the switch: %d of %d", len(got), len(h.List()))
	}
	restored := holds(p.file(), "")
	must(
		restored.Take(
			must(Publish(nil, "harbour", &pki.Succession{Signer: first, Before: []*x509.Certificate{next.Cert()}}, 1, now))))
	if got := restored.Speakers(); len(got) != 2 {
		t.Errorf("after a restore: %d", len(got))
	}
}
