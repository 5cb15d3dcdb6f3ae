package trust

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/testkit"
)

// asked is a server that is valid.
type asked struct {
	*HeldDenylist
	seen []string
}

func (a *asked) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a.seen = append(a.seen, req.Method)
	a.HeldDenylist.ServeHTTP(w, req)
}

// TestDenylistExchange: two of a pool have the same after one exchange, whoever knew more, and then it is one small
// question.
func TestDenylistExchange(t *testing.T) {
	p := newDenier(t, "harbour")
	one := p.first(noon, Denial{Node: "edge-1", Before: noon})
	two, _ := one.Next(noon.Add(time.Minute), Denial{Node: "edge-2", Before: noon})
	other := p.first(noon.Add(time.Hour), Denial{Node: "edge-3", Before: noon})
	for _, c := range []struct {
		about        string
		mine, theirs []Denylist
		want, asked  []string
	}{
		{"neither", nil, nil, nil, []string{"GET"}},
		{"the other", nil, []Denylist{one}, []string{"edge-1"}, []string{"GET"}},
		{"this one", []Denylist{one}, nil, []string{"edge-1"}, []string{"GET", "POST"}},
		{"the other, more", []Denylist{one}, []Denylist{two}, []string{"edge-1", "edge-2"}, []string{"GET"}},
		{"this one, more", []Denylist{one, two}, []Denylist{one}, []string{"edge-1", "edge-2"}, []string{"GET", "POST"}},
		{"both", []Denylist{two}, []Denylist{other}, []string{"edge-1", "edge-2", "edge-3"}, []string{"GET", "POST"}},
	} {
		mine, server := p.holder(""), &asked{HeldDenylist: p.holder("")}
		for _, l := range c.mine {
			p.take(mine, l)
		}
		for _, l := range c.theirs {
			p.take(server.HeldDenylist, l)
		}
		s := httptest.NewServer(server)
		at := must(url.Parse(s.URL))
		for range 2 {
			if err := mine.Exchange(t.Context(), http.DefaultTransport, at); err != nil {
				t.Errorf("%s knows: %v", c.about, err)
			}
		}
		s.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if !slices.Equal(nodes(mine), c.want) || !slices.Equal(nodes(server.HeldDenylist), c.want) ||
			!slices.Equal(server.seen, append(c.asked, "GET")) {
			t.Errorf("%s knows: %v and %v, asked %v", c.about, nodes(mine), nodes(server.HeldDenylist), server.seen)
		}
	}
}

// TestForgedExchange: who hands over what nobody signed gets a clear answer, and nothing changes.
func TestForgedExchange(t *testing.T) {
	p, h := newDenier(t, "harbour"), newDenier(t, "harbour").holder("")
	for method, code := range map[string]int{
		http.MethodPost: http.StatusBadRequest, http.MethodPut: http.StatusMethodNotAllowed,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, contract.DenylistPath, strings.NewReader(string(p.text(p.first(noon))))))
		if w.Code != code || h.Number() != 0 {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}

// cloud shows one ConfigMap.
type cloud struct {
	mu     sync.Mutex
	asked  []string
	refuse int
	body   *io.PipeReader
}

func (c *cloud) RoundTrip(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, req.URL.RequestURI())
	if c.refuse > 0 {
		c.refuse--
		return &http.Response{StatusCode: http.StatusForbidden, Status: "403 Forbidden", Body: http.NoBody}, nil
	}
	body := c.body
	context.AfterFunc(req.Context(), func() { _ = body.CloseWithError(req.Context().Err()) })
	return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
}

// soon is a clock whose timers are over at once.
type soon struct{ clock.RealClock }

func (soon) NewTimer(time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(time.Millisecond) }

// TestFollow: what the cloud shows is held, after a refusal too, and a DELETED forgives nothing.
func TestFollow(t *testing.T) {
	p := newDenier(t, "harbour")
	h := p.holder("")
	from, to := io.Pipe()
	c := &cloud{refuse: 1, body: from}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Follow(ctx, c, soon{})
	}()
	send := func(kind string, text string) {
		m := corev1.ConfigMap{Data: map[string]string{contract.DenylistKey: text}}
		if err := json.NewEncoder(to).Encode(map[string]any{"type": kind, "object": m}); err != nil {
			t.Error(err)
		}
	}
	one := p.first(noon, Denial{Node: "edge-1", Before: noon})
	two, _ := one.Next(noon.Add(time.Minute), Denial{Node: "edge-2", Before: noon})
	send("ADDED", string(p.text(one)))
	send("DELETED", "")
	send("MODIFIED", "{}")
	send("MODIFIED", string(p.text(two)))
	testkit.Until(t, time.Minute, "both lists are held", func() bool { return h.Number() == two.Number })
	if got := nodes(h); !slices.Equal(got, []string{"edge-1", "edge-2"}) {
		t.Errorf("%v", got)
	}
	cancel()
	<-done
	want := "/api/v1/namespaces/weir-pki/configmaps?fieldSelector=metadata.name%3Ddenylist-harbour&" +
		"timeoutSeconds=43200&watch=1"
	if len(c.asked) != 2 || c.asked[1] != want {
		t.Errorf("asked %v", c.asked)
	}
}
