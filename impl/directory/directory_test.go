package directory

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pool is a pool with the authorities that it trusts, the one that signs first.
type pool struct {
	authorities []*pki.Authority
}

func newPool() *pool {
	return &pool{[]*pki.Authority{must(pki.NewPoolAuthority("harbour", time.Now()))}}
}

func (p *pool) trusted() (all []*x509.Certificate) {
	for _, a := range p.authorities {
		all = append(all, a.Cert())
	}
	return all
}

func (p *pool) speakers() []*x509.Certificate { return pki.Speakers(p.trusted()) }

// rotate lets another authority sign. The one before is trusted still.
func (p *pool) rotate() {
	p.authorities = append([]*pki.Authority{must(pki.NewPoolAuthority("harbour", time.Now().Add(time.Minute)))},
		p.authorities...)
}

// says is an entry that names a coordinator, signed by the authority that signs now.
func (p *pool) says(number uint64, host string) []byte {
	return must(entry(number, host).Sign(p.authorities[0]))
}

// entry names a coordinator under a number.
func entry(number uint64, host string) Entry {
	return must(
		Parse("harbour", object(func(o *corev1.Endpoints) {
			o.Annotations[contract.LeaderHubCoordinators] = "https://" + host
		}), number))
}

// holder holds nothing yet.
func (p *pool) holder(file string, log io.Writer) *Directory {
	return New(Config{
		Pool: "harbour", File: file, Trusted: p.trusted, Speakers: p.speakers, Clock: clock.RealClock{},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
		Flags:  Entry{Coordinators: []string{"https://flag:1"}, Scope: []Shared{{"example.com", "v1", "widgets", "Widget"}}},
	})
}

func (d *Directory) coordinator() string { return strings.Join(d.Now().Coordinators, ",") }

// TestPrecedence: flags are used until something is told, and then for what is not told.
func TestPrecedence(t *testing.T) {
	p := newPool()
	d := p.holder("", io.Discard)
	if e := d.Now(); e.Version != 0 || e.Mode != contract.ModeCoordinator || d.coordinator() != "https://flag:1" ||
		len(e.Scope) != 1 || d.Status().By != ByFlags || d.Status().Signed {
		t.Errorf("flags: %+v, %+v", e, d.Status())
	}
	number := uint64(4)
	tell := func(d *Directory, annotations map[string]string) error {
		number++
		e, err := Parse("harbour", object(func(o *corev1.Endpoints) { o.Annotations = annotations }), number)
		if err == nil {
			_, err = d.TakeOfCloud(must(e.Sign(p.authorities[0])))
		}
		return err
	}
	for about, test := range map[string]struct {
		annotations map[string]string
		mode, at    string
		scope       string
	}{
		"nothing told": {nil, contract.ModeCoordinator, "https://flag:1", "widgets.v1.example.com=Widget"},
		"mode alone": {
			map[string]string{contract.LeaderHubMode: contract.ModeLeaderHubs}, contract.ModeLeaderHubs, "https://flag:1",
			"widgets.v1.example.com=Widget",
		},
		"coordinators": {
			map[string]string{contract.LeaderHubCoordinators: "https://b:2"}, contract.ModeCoordinator, "https://b:2",
			"widgets.v1.example.com=Widget",
		},
		"scope": {
			map[string]string{contract.LeaderHubScope: "/v1/pods"}, contract.ModeCoordinator, "https://flag:1", "pods.v1.",
		},
		"kind of the flag": {
			map[string]string{contract.LeaderHubScope: "example.com/v1/widgets"}, contract.ModeCoordinator, "https://flag:1",
			"widgets.v1.example.com=Widget",
		},
	} {
		err := tell(d, test.annotations)
		if now := d.Now(); err != nil || now.Mode != test.mode || d.coordinator() != test.at ||
			now.Scope[0].Flag() != test.scope || !d.Status().Signed {
			t.Errorf("%s: %+v, %v", about, now, err)
		}
	}
	none := New(Config{
		Pool: "harbour", Trusted: p.trusted, Speakers: p.speakers, Clock: clock.RealClock{},
		Logger: slog.New(slog.DiscardHandler),
	})
	if none.Now().Mode != "" {
		t.Errorf("nothing at all: %+v", none.Now())
	}
	if err := tell(none, map[string]string{contract.LeaderHubConnectivity: "true"}); err != nil ||
		none.Now().Mode != contract.ModeLeaderHubs {
		t.Errorf("connected, and no coordinator: %+v, %v", none.Now(), err)
	}
}

// TestLearn: the kind that this hub was told by the cloud counts here, and nobody else is told of it.
func TestLearn(t *testing.T) {
	p, file := newPool(), filepath.Join(t.TempDir(), "directory")
	d := p.holder(file, io.Discard)
	e := entry(5, "a")
	e.Scope = []Shared{{"example.com", "v1", "gadgets", ""}}
	must(d.Take(must(e.Sign(p.authorities[0]))))
	_, before := d.Text()
	changed := d.Changed()
	d.Learn(Shared{"example.com", "v1", "gadgets", "Gadget!"})
	<-changed
	if _, after := d.Text(); d.Now().Scope[0].Kind != "Gadget!" || after != before {
		t.Errorf("%+v", d.Now().Scope)
	}
	e.Version = 6
	must(d.Take(must(e.Sign(p.authorities[0])))) // the cloud does not tell its kind now
	if d.Now().Scope[0].Kind != "Gadget!" {
		t.Errorf("after another entry: %+v", d.Now().Scope)
	}
	d.Learn(Shared{"example.com", "v1", "others", "Other"})
	if len(d.learnt) != 1 {
		t.Errorf("learnt %v", d.learnt)
	}
	if again := p.holder(file, io.Discard); !reflect.DeepEqual(again.Now(), d.Now()) {
		t.Errorf("after a restart: %+v", again.Now())
	}
	if err := os.WriteFile(file, append(must(os.ReadFile(file)), "x"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := p.holder(file, io.Discard); again.Now().Version != 6 || again.Now().Scope[0].Kind != "" {
		t.Errorf("with kinds that are spoilt: %+v", again.Now())
	}
}

// TestKept: what was heard is known after a restart, also if another authority signs since. What nobody signed, and a
// file that is spoilt, are as none.
func TestKept(t *testing.T) {
	p, file := newPool(), filepath.Join(t.TempDir(), "directory")
	d := p.holder(file, io.Discard)
	must(d.TakeOfCloud(p.says(5, "cloud")))
	p.rotate()
	again := p.holder(file, io.Discard)
	if s := again.Status(); again.coordinator() != "https://cloud" || s.By != ByDisk || !s.Signed || s.Live ||
		s.AgeSeconds != -1 {
		t.Errorf("%+v", s)
	}
	for about, text := range map[string]string{
		"empty": "", "half": "{", "another pool's": `{"entry":{"pool":"quay","version":3}}`,
		"long":         strings.Repeat("x", 3*MaxText),
		"a stranger's": string(newPool().says(9, "lie")),
		"unsigned":     `{"directory":{"pool":"harbour","version":9,"coordinators":["https://lie:1"]}}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		if bad := p.holder(file, &log); bad.Now().Version != 0 || strings.Count(log.String(), "is invalid") != 1 {
			t.Errorf("%s: %+v, said %s", about, bad.Now(), &log)
		}
	}
}

// TestFormer: what a version of before has kept, which is not signed, is valid until something is signed, is told to
// nobody, and is gone then.
func TestFormer(t *testing.T) {
	p, file := newPool(), filepath.Join(t.TempDir(), "directory")
	kept := must(json.Marshal(map[string]any{"entry": entry(9e18, "before"), "cloud": true, "at": time.Now()}))
	if err := os.WriteFile(file, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	d := p.holder(file, &log)
	if s := d.Status(); d.coordinator() != "https://before" || s.Signed ||
		!strings.Contains(log.String(), "kept unsigned") {
		t.Errorf("%+v, said %s", s, &log)
	}
	if text, tag := d.Text(); text != nil || tag != "" {
		t.Errorf("it is handed on: %s", text)
	}
	must(d.Take(p.says(5, "now")))
	if again := p.holder(file, io.Discard); d.coordinator() != "https://now" || again.coordinator() != "https://now" {
		t.Errorf("%s, and after a restart %s", d.coordinator(), again.coordinator())
	}
}

// TestBelieved holds what is valid, whoever tells it: what an authority that may sign now has signed, under a higher
// number.
func TestBelieved(t *testing.T) {
	p, stranger := newPool(), newPool()
	former := p.says(30, "former")
	p.rotate()
	for about, test := range map[string]struct {
		held, told []byte
		want       string
	}{
		"nothing is held":     {nil, p.says(5, "a"), "https://a"},
		"a later one":         {p.says(5, "a"), p.says(6, "b"), "https://b"},
		"an earlier one":      {p.says(6, "b"), p.says(5, "a"), "https://b"},
		"the same number":     {p.says(6, "b"), p.says(6, "a"), "https://b"},
		"a stranger's":        {p.says(5, "a"), stranger.says(9, "lie"), "https://a"},
		"one of before":       {nil, former, "https://flag:1"},
		"after one of before": {former, p.says(5, "a"), "https://a"},
		"unsigned":            {p.says(5, "a"), must(json.Marshal(entry(9, "lie"))), "https://a"},
		"another pool's": {
			p.says(5, "a"), must(Entry{Pool: "quay", Version: 9}.Sign(p.authorities[0])), "https://a",
		},
		"nothing":            {p.says(5, "a"), nil, "https://a"},
		"more than there is": {p.says(5, "a"), make([]byte, MaxText+5), "https://a"},
		"signed as something else": {
			p.says(5, "a"), must(bulletin.Form{
				Subject: "denylist", Field: "directory", Max: MaxText,
			}.Sign(p.authorities[0], entry(9, "lie"))), "https://a",
		},
		"what its check would fail": {
			p.says(5, "a"), must(form.Sign(p.authorities[0], Entry{Pool: "harbour", Version: 9, Mode: "both"})), "https://a",
		},
	} {
		for _, way := range []string{"of the cloud", "of the pool"} {
			file := filepath.Join(t.TempDir(), "directory")
			if test.held != nil {
				if err := os.WriteFile(file, test.held, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			d := p.holder(file, io.Discard)
			take := map[string]func([]byte) (bool, error){"of the cloud": d.TakeOfCloud, "of the pool": d.Take}[way]
			if _, err := take(test.told); d.coordinator() != test.want {
				t.Errorf("%s, %s: %s, want %s (%v)", about, way, d.coordinator(), test.want, err)
			}
		}
	}
}

// TestAhead: no number is further ahead than an hour, so that a key that was stolen for a moment does not decide for
// ever.
func TestAhead(t *testing.T) {
	p, now := newPool(), time.Now()
	d := p.holder("", io.Discard)
	d.Time = pki.OpenProven("", clocktesting.NewFakePassiveClock(now), slog.New(slog.DiscardHandler))
	for _, ahead := range []time.Duration{bulletin.Ahead + time.Second, 200 * 365 * 24 * time.Hour} {
		if _, err := d.Take(p.says(bulletin.Next(0, now.Add(ahead)), "lie")); err == nil ||
			!strings.Contains(err.Error(), "ahead") {
			t.Errorf("%v ahead: %v", ahead, err)
		}
	}
	if _, err := d.Take(p.says(1<<64-1, "lie")); err == nil {
		t.Error("the last number of all is taken")
	}
	if _, err := d.Take(p.says(bulletin.Next(0, now.Add(bulletin.Ahead)), "a")); err != nil ||
		d.coordinator() != "https://a" {
		t.Errorf("%s: %v", d.coordinator(), err)
	}
}

// TestRefusedOnce: what is invalid is told once, in a line that says why.
func TestRefusedOnce(t *testing.T) {
	p := newPool()
	var log strings.Builder
	d := p.holder("", &log)
	must(d.TakeOfCloud(p.says(5, "a")))
	log.Reset()
	for range 3 {
		if _, err := d.Take(newPool().says(9, "lie")); err == nil {
			t.Error("taken")
		}
	}
	if s := d.Status(); s.Version != 5 || s.Errors != 3 || s.Refused == "" ||
		strings.Count(log.String(), "no trusted authority has signed it") != 1 {
		t.Errorf("%+v, said %s", s, &log)
	}
	must(d.Take(p.says(6, "b")))
	if s := d.Status(); s.Refused != "" {
		t.Errorf("%+v", s)
	}
}

// TestExchange: two members come to hold the same, whoever heard of it first. One that lies is told what is valid.
func TestExchange(t *testing.T) {
	p := newPool()
	mine, theirs := p.holder("", io.Discard), p.holder("", io.Discard)
	by := roundTripper(func(req *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		theirs.ServeHTTP(w, req)
		return w.Result(), nil
	})
	exchange := func() error { return mine.Exchange(t.Context(), by, must(url.Parse("https://other"))) }
	for _, held := range []struct {
		by     *Directory
		number uint64
	}{{theirs, 5}, {mine, 6}, {theirs, 7}} {
		must(held.by.Take(p.says(held.number, "a")))
		if err := exchange(); err != nil || mine.Now().Version != held.number || theirs.Now().Version != held.number {
			t.Errorf("%d and %d, want %d: %v", mine.Now().Version, theirs.Now().Version, held.number, err)
		}
	}
	lies := p.holder("", io.Discard)
	stranger := newPool()
	lies.Trusted, lies.Speakers = stranger.trusted, stranger.speakers
	must(lies.Take(stranger.says(900, "lie")))
	theirs = lies
	if err := exchange(); err == nil || mine.Now().Version != 7 {
		t.Errorf("%+v: %v", mine.Now(), err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// TestLacks: what a cloud that was restored from a backup has forgotten is given back, and nothing else is.
func TestLacks(t *testing.T) {
	p := newPool()
	d := p.holder("", io.Discard)
	must(d.Take(p.says(6, "b")))
	for about, c := range map[string]struct {
		shown []byte
		lacks bool
	}{
		"the same": {p.says(6, "b"), false}, "a later one": {p.says(7, "c"), false}, "one of before": {p.says(5, "a"), true},
		"nothing": {nil, false}, "a stranger's": {newPool().says(5, "lie"), false},
	} {
		if got := d.Lacks(c.shown); (len(got) > 0) != c.lacks {
			t.Errorf("%s: %s", about, got)
		}
	}
}

// cloud shows one object, as events that a test sends.
type cloud struct {
	mu     sync.Mutex
	asked  []url.Values
	code   []int // answers before the watch
	events chan string
}

func (c *cloud) RoundTrip(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, req.URL.Query())
	if req.URL.Path != "/api/v1/namespaces/kube-system/endpoints" {
		panic(req.URL.Path)
	}
	if len(c.code) > 0 {
		code := c.code[0]
		c.code = c.code[1:]
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: http.NoBody}, nil
	}
	from, to := io.Pipe()
	context.AfterFunc(req.Context(), func() { _ = from.CloseWithError(req.Context().Err()) })
	go func() {
		for {
			select {
			case e := <-c.events:
				if e == "" {
					_ = to.Close()
					return
				}
				_, _ = io.WriteString(to, e+"\n")
			case <-req.Context().Done():
				return
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: from}, nil
}

func (c *cloud) since() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.asked {
		all = append(all, q.Get("resourceVersion"))
	}
	return all
}

func event(kind string, o any) string {
	return string(must(json.Marshal(map[string]any{"type": kind, "object": o})))
}

// TestFollow: a watch of one object that goes on behind what was seen. What is not signed and what is deleted change
// nothing. A version that the cloud knows no more, or a cloud that was restored, costs the object once.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		p := newPool()
		d, c := p.holder("", &log), &cloud{events: make(chan string), code: []int{http.StatusForbidden}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Follow(ctx, c, clock.RealClock{})
		}()
		send := func(e string) {
			c.events <- e
			synctest.Wait()
		}
		shows := func(version string, text []byte) any {
			return object(func(o *corev1.Endpoints) {
				o.ResourceVersion = version
				o.Annotations[contract.LeaderHubSigned] = strings.TrimSpace(string(text))
			})
		}
		send(event("ADDED", object(func(o *corev1.Endpoints) { o.ResourceVersion = "4" })))
		if s := d.Status(); s.Version != 0 || s.Errors != 0 {
			t.Errorf("an object that nobody signed: %+v", s)
		}
		send(event("MODIFIED", shows("5", p.says(50, "a"))))
		if d.Status().Live {
			t.Error("live before a change of before could have come")
		}
		time.Sleep(10 * time.Second)
		if s := d.Status(); !s.Live || s.Version != 50 || s.By != ByCloud || s.AgeSeconds != 0 {
			t.Errorf("%+v", s)
		}
		changed := d.Changed()
		send(event("MODIFIED", shows("6", newPool().says(60, "lie"))))
		if d.Status().Live {
			t.Error("live, and the cloud shows something else")
		}
		send(event("DELETED", shows("7", p.says(50, "a"))))
		select {
		case <-changed:
			t.Error("changed")
		default:
		}
		if s := d.Status(); s.Version != 50 || s.Errors != 1 ||
			!strings.Contains(s.Refused, "no trusted authority has signed it") {
			t.Errorf("%+v, said %s", s, &log)
		}
		send(event("ADDED", shows("8", p.says(80, "b"))))
		<-changed
		if s := d.Status(); s.Version != 80 || s.Refused != "" {
			t.Errorf("%+v", s)
		}
		send("") // the watch ends
		time.Sleep(10 * time.Second)
		send(event("ERROR", map[string]any{"kind": "Status", "code": 410, "message": "too old"}))
		time.Sleep(10 * time.Second)
		send(event("ADDED", shows("9", p.says(80, "b"))))
		d.Reset()
		synctest.Wait()
		if got, want := c.since(), []string{"", "", "8", "", ""}; !slices.Equal(got, want) {
			t.Errorf("asked behind %q, want %q", got, want)
		}
		send(event("ADDED", shows("3", p.says(50, "a"))))
		time.Sleep(10 * time.Second)
		if s := d.Status(); s.Version != 80 || len(d.Lacking(time.Now())) == 0 {
			t.Errorf("after a restore: %+v", s)
		}
		for _, q := range c.asked {
			if q.Get("fieldSelector") != "metadata.name=leader-hub-harbour" || q.Get("watch") != "1" {
				t.Errorf("asked %v", q)
			}
		}
		cancel()
		<-done
		if s := d.Status(); s.Live || s.AgeSeconds < 0 {
			t.Errorf("after the end: %+v", s)
		}
	})
}
