package directory

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// entry names a coordinator at a version.
func entry(version, host string) Entry {
	return must(Parse("harbour", object(version, func(o *corev1.Endpoints) { o.Annotations[contract.LeaderHubCoordinators] = "https://" + host })))
}

// holder holds nothing yet.
func holder(file string, log io.Writer) *Directory {
	return New(Config{
		Pool: "harbour", File: file, Clock: clock.RealClock{}, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Flags: Entry{Coordinators: []string{"https://flag:1"}, Scope: []Shared{{"example.com", "v1", "widgets", "Widget"}}},
	})
}

func (d *Directory) coordinator() string { return strings.Join(d.Now().Coordinators, ",") }

// TestPrecedence: flags count until something is told, and then for what is not told.
func TestPrecedence(t *testing.T) {
	d := holder("", io.Discard)
	if e := d.Now(); e.Version != 0 || e.Mode != contract.ModeCoordinator || d.coordinator() != "https://flag:1" || len(e.Scope) != 1 || d.Status().By != ByFlags {
		t.Errorf("flags: %+v, %+v", e, d.Status())
	}
	for about, test := range map[string]struct {
		annotations map[string]string
		mode, at    string
		scope       string
	}{
		"nothing told":     {nil, contract.ModeCoordinator, "https://flag:1", "widgets.v1.example.com=Widget"},
		"mode alone":       {map[string]string{contract.LeaderHubMode: contract.ModeLeaderHubs}, contract.ModeLeaderHubs, "https://flag:1", "widgets.v1.example.com=Widget"},
		"coordinators":     {map[string]string{contract.LeaderHubCoordinators: "https://b:2"}, contract.ModeCoordinator, "https://b:2", "widgets.v1.example.com=Widget"},
		"scope":            {map[string]string{contract.LeaderHubScope: "/v1/pods"}, contract.ModeCoordinator, "https://flag:1", "pods.v1."},
		"kind of the flag": {map[string]string{contract.LeaderHubScope: "example.com/v1/widgets"}, contract.ModeCoordinator, "https://flag:1", "widgets.v1.example.com=Widget"},
	} {
		e, err := Parse("harbour", object("5", func(o *corev1.Endpoints) { o.Annotations = test.annotations }))
		d.takeCloud(e)
		if now := d.Now(); err != nil || now.Mode != test.mode || d.coordinator() != test.at || now.Scope[0].Flag() != test.scope {
			t.Errorf("%s: %+v, %v", about, now, err)
		}
	}
	none := New(Config{Pool: "harbour", Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler)})
	if none.Now().Mode != "" {
		t.Errorf("nothing at all: %+v", none.Now())
	}
	none.takeCloud(must(Parse("harbour", object("5", func(o *corev1.Endpoints) { o.Annotations = map[string]string{contract.LeaderHubConnectivity: "true"} }))))
	if none.Now().Mode != contract.ModeLeaderHubs {
		t.Errorf("connected, and no coordinator: %+v", none.Now())
	}
}

// TestKept: what was heard is known after a restart, and where a watch may go on; a file that is spoilt is as none.
func TestKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "directory")
	d := holder(file, io.Discard)
	d.takeCloud(entry("5", "cloud"))
	again := holder(file, io.Discard)
	if again.coordinator() != "https://cloud" || again.behind() != "5" || again.Status().By != ByDisk || again.Live() || again.Status().AgeSeconds < 0 {
		t.Errorf("%+v", again.Status())
	}
	d.takePool(entry("6", "pool"), false)
	if again = holder(file, io.Discard); again.coordinator() != "https://pool" || again.behind() != "" {
		t.Errorf("of the pool: %+v behind %q", again.Status(), again.behind())
	}
	var log strings.Builder
	for _, text := range []string{"", "{", `{"entry":{"pool":"quay","version":3}}`, strings.Repeat("x", 3*MaxText)} {
		log.Reset()
		bad := holder("", &log)
		bad.File = file
		if err := bad.load([]byte(text)); err == nil || bad.Now().Version != 0 {
			t.Errorf("%.20q: %v, %+v", text, err, bad.Now())
		}
	}
}

// pair is one who asks and one who is asked.
func ask(t *testing.T, d *Directory, of http.Handler) error {
	t.Helper()
	by := roundTripper(func(req *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		of.ServeHTTP(w, req)
		return w.Result(), nil
	})
	return d.Ask(t.Context(), by, must(url.Parse("https://other")), false)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// watching is one who watches the object in the cloud, for long.
func watching(d *Directory) *Directory {
	d.opened = d.Clock.Now().Add(-time.Hour)
	return d
}

// TestWhoTells holds who counts: the cloud above all, a later version above an earlier one, and who watches in the cloud above any version.
func TestWhoTells(t *testing.T) {
	asked := func(e Entry) *Directory {
		d := holder("", io.Discard)
		if e.Version != 0 {
			d.takeCloud(e)
		}
		return d
	}
	for about, test := range map[string]struct {
		mine   Entry
		live   bool // this one watches in the cloud
		theirs *Directory
		want   string
	}{
		"neither knows":                         {Entry{}, false, asked(Entry{}), "https://flag:1"},
		"nothing is held":                       {Entry{}, false, asked(entry("5", "a")), "https://a"},
		"a later one":                           {entry("5", "a"), false, asked(entry("6", "b")), "https://b"},
		"an earlier one":                        {entry("6", "b"), false, asked(entry("5", "a")), "https://b"},
		"an earlier one of who watches":         {entry("900", "lie"), false, watching(asked(entry("5", "a"))), "https://a"},
		"a later one, and the cloud tells here": {entry("5", "a"), true, asked(entry("900", "lie")), "https://a"},
		"who watches, and the cloud tells here": {entry("5", "a"), true, watching(asked(entry("900", "lie"))), "https://a"},
	} {
		d := asked(test.mine)
		if test.live {
			watching(d)
		}
		for range 2 {
			if err := ask(t, d, test.theirs); err != nil {
				t.Errorf("%s: %v", about, err)
			}
		}
		if d.coordinator() != test.want {
			t.Errorf("%s: %s, want %s", about, d.coordinator(), test.want)
		}
	}
}

// TestLie: a leader that lied with a version of the far future has no say once one leads that watches in the cloud, at the coordinator and at a hub without the cloud.
func TestLie(t *testing.T) {
	coordinator, hub := holder("", io.Discard), holder("", io.Discard)
	coordinator.Hearsay = true
	liar, honest := watching(holder("", io.Discard)), watching(holder("", io.Discard))
	liar.takeCloud(entry("9000000000000000000", "lie"))
	honest.takeCloud(entry("7", "true"))
	for _, leader := range []*Directory{liar, honest} {
		for _, who := range []struct{ asks, asked *Directory }{{coordinator, leader}, {hub, coordinator}} {
			if err := ask(t, who.asks, who.asked); err != nil {
				t.Fatal(err)
			}
		}
		if hub.coordinator() != leader.coordinator() {
			t.Errorf("the hub has %s, the leader %s", hub.coordinator(), leader.coordinator())
		}
	}
	if hub.Live() {
		t.Error("a hub passes on what it only heard as what the cloud says")
	}
}

// TestSure: the word of who watches in the cloud is passed on by a coordinator for a while, and no longer.
func TestSure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, leader := holder("", io.Discard), watching(holder("", io.Discard))
		c.Hearsay = true
		leader.takeCloud(entry("7", "true"))
		for range 3 { // told, and then the same again
			if err := ask(t, c, leader); err != nil {
				t.Fatal(err)
			}
			time.Sleep(sure - time.Second)
			if !c.Live() {
				t.Fatal("not sure any more")
			}
		}
		time.Sleep(time.Second)
		if c.Live() || c.Status().AgeSeconds != sure.Seconds() {
			t.Errorf("sure for ever: %+v", c.Status())
		}
	})
}

// TestForged: what cannot be meant changes nothing, and is told once.
func TestForged(t *testing.T) {
	var log strings.Builder
	d := holder("", &log)
	d.takeCloud(entry("5", "a"))
	log.Reset()
	for range 3 {
		if err := ask(t, d, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"pool":"quay","version":9}`) })); err == nil {
			t.Error("taken")
		}
	}
	if err := ask(t, d, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, MaxText+5)) })); err == nil {
		t.Error("too much is taken")
	}
	if err := ask(t, d, http.NotFoundHandler()); err == nil {
		t.Error("404 is taken")
	}
	if s := d.Status(); s.Version != 5 || s.Errors != 4 || strings.Count(log.String(), "it is of pool") != 1 {
		t.Errorf("%+v, said %s", s, log.String())
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest(http.MethodPost, contract.DirectoryPath, strings.NewReader(`{}`)))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestWait: who waits hears of a change at once, and of none after a while.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, leader := holder("", io.Discard), holder("", io.Discard)
		leader.takeCloud(entry("5", "a"))
		by := roundTripper(func(req *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			leader.ServeHTTP(w, req)
			return w.Result(), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		done, asked := make(chan struct{}), 0
		go func() {
			defer close(done)
			Keep(ctx, c.Clock, true, func(ctx context.Context) error {
				asked++
				return c.Ask(ctx, by, must(url.Parse("https://leader")), true)
			})
		}()
		time.Sleep(10 * time.Second)
		leader.takeCloud(entry("6", "b"))
		synctest.Wait()
		if c.coordinator() != "https://b" {
			t.Errorf("heard %s", c.coordinator())
		}
		before := asked
		time.Sleep(10 * longest)
		if n := asked - before; n < 5 || n > 12 {
			t.Errorf("asked %d times in %v", n, 10*longest)
		}
		cancel()
		<-done
	})
}

// TestWaitEnds: a question whose waiting is ended here, as where the certificate of who asks has to be shown again, is answered with what holds.
func TestWaitEnds(t *testing.T) {
	d := holder("", io.Discard)
	d.takeCloud(entry("5", "a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, contract.DirectoryPath+"?wait=1", nil)
	req.Header.Set("If-None-Match", quote(tag(d.text)))
	w := httptest.NewRecorder()
	if d.ServeHTTP(w, req); w.Code != http.StatusNotModified {
		t.Errorf("the answer is %d %q", w.Code, w.Body)
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

// TestFollow: a watch of one object that goes on behind what is known. What cannot be meant and what is deleted change nothing. A version that the cloud knows no more, or a
// cloud that was restored, costs the object once.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		d, c := holder("", &log), &cloud{events: make(chan string), code: []int{http.StatusForbidden}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Follow(ctx, c)
		}()
		send := func(e string) {
			c.events <- e
			synctest.Wait()
		}
		send(event("ADDED", object("5", nil)))
		if d.Live() {
			t.Error("live before a change of before could have come")
		}
		time.Sleep(settles)
		if s := d.Status(); !s.Live || s.Version != 5 || s.By != ByCloud || s.AgeSeconds != 0 {
			t.Errorf("%+v", s)
		}
		changed := d.Changed()
		send(event("MODIFIED", object("6", func(o *corev1.Endpoints) { o.Annotations[contract.LeaderHubMode] = "no" })))
		send(event("DELETED", object("7", nil)))
		select {
		case <-changed:
			t.Error("changed")
		default:
		}
		if s := d.Status(); s.Version != 5 || s.Errors != 1 || !strings.Contains(s.Refused, `weir.dev/mode is "no"`) || strings.Count(log.String(), "weir.dev/mode") != 1 {
			t.Errorf("%+v, said %s", s, log.String())
		}
		send(event("ADDED", object("8", nil)))
		<-changed
		if s := d.Status(); s.Version != 8 || s.Refused != "" {
			t.Errorf("%+v", s)
		}
		send("") // the watch ends
		time.Sleep(10 * time.Second)
		send(event("ERROR", map[string]any{"kind": "Status", "code": 410, "message": "too old"}))
		time.Sleep(10 * time.Second)
		d.Anew()
		synctest.Wait()
		if got, want := c.since(), []string{"", "", "8", "", ""}; !slices.Equal(got, want) {
			t.Errorf("asked behind %q, want %q", got, want)
		}
		send(event("ADDED", object("3", nil)))
		if s := d.Status(); s.Version != 3 {
			t.Errorf("after a restore: %+v", s)
		}
		for _, q := range c.asked {
			if q.Get("fieldSelector") != "metadata.name=leader-hub-harbour" || q.Get("watch") != "1" {
				t.Errorf("asked %v", q)
			}
		}
		cancel()
		<-done
		if d.Live() || d.Status().AgeSeconds < 0 {
			t.Errorf("after the end: %+v", d.Status())
		}
	})
}
