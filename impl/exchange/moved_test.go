package exchange

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/moved"
)

// of is a statement as a hub hands it in. Nobody at a desk looks at its signature.
func of(text string) *moved.Signed {
	return &moved.Signed{Text: text, Signature: []byte{1}, Chain: [][]byte{{2}}}
}

// TestMovedPods: a hub hands in what is of its own node, and reads what others said since, once.
func TestMovedPods(t *testing.T) {
	now := testingclock.NewFakeClock(time.Unix(0, 0))
	d := Moved{Clock: now}
	h := d.Handler(func(req *http.Request) string { return req.Header.Get("By") })
	ask := func(by, method string, a any) (int, MovedAnswer) {
		t.Helper()
		body, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		req, w := httptest.NewRequest(method, "/", bytes.NewReader(body)), httptest.NewRecorder()
		req.Header.Set("By", by)
		h.ServeHTTP(w, req)
		var out MovedAnswer
		if w.Code == http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
				t.Fatal(err)
			}
		}
		return w.Code, out
	}
	for _, c := range []struct {
		by, method string
		a          any
		want       int
	}{
		{"", "POST", MovedAsk{}, 403},
		{"a", "GET", MovedAsk{}, 405},
		{"a", "POST", MovedAsk{Statement: of("b 1 1")}, 400},
		{"a", "POST", MovedAsk{Statement: of("a 1")}, 400},
		{"a", "POST", MovedAsk{Desk: strings.Repeat("x", maxMovedAsk)}, 400},
		{"a", "POST", MovedAsk{Statement: of("a 1 1 same")}, 200},
	} {
		if code, _ := ask(c.by, c.method, c.a); code != c.want {
			t.Errorf("%s by %q: %d, want %d", c.method, c.by, code, c.want)
		}
	}
	texts := func(a MovedAnswer) (all string) {
		for _, s := range a.Statements {
			all += s.Text + map[bool]string{true: "; ", false: " with its chain; "}[len(s.Chain) == 0]
		}
		return all
	}
	if _, out := ask("a", "POST", MovedAsk{Statement: of("a 1 1 same")}); !out.Whole || out.Desk == "" {
		t.Errorf("contents that the desk does not have: %+v", out)
	}
	if _, out := ask("a", "POST", MovedAsk{Statement: of("a 1 2 p=10.0.0.9")}); out.Whole || len(out.Statements) > 0 {
		t.Errorf("the whole: %+v", out)
	}
	_, out := ask("b", "POST", MovedAsk{Statement: of("b 1 1")})
	if got := texts(out); got != "a 1 2 p=10.0.0.9 with its chain; " {
		t.Errorf("b reads %s", got)
	}
	_, _ = ask("a", "POST", MovedAsk{Statement: of("a 1 3 same"), Mute: true})
	_, out = ask("b", "POST", MovedAsk{Desk: out.Desk, After: out.At})
	if got := texts(out); got != "a 1 3 same; " {
		t.Errorf("then b reads %s", got)
	}
	_, again := ask("b", "POST", MovedAsk{Desk: out.Desk, After: out.At})
	if len(again.Statements) > 0 || again.At != out.At {
		t.Errorf("what was read comes again: %+v", again)
	}
	now.Step(20 * time.Second)
	_, _ = ask("a", "POST", MovedAsk{Statement: of("a 1 4 same"), Mute: true})
	now.Step(5 * time.Second)
	_, all := ask("c", "POST", MovedAsk{Desk: "another", After: out.At})
	if len(all.Statements) != 3 {
		t.Errorf("numbers of another desk: %s", texts(all))
	}
	for _, s := range all.Statements { // a sign of life makes what the node said before as young as it is
		if want := map[bool]int64{true: 25, false: 5}[s.Text[0] == 'b']; s.Age != want {
			t.Errorf("%s is %d s old, want %d", s.Text, s.Age, want)
		}
	}
	if _, none := ask("c", "POST", MovedAsk{Mute: true}); len(none.Statements) > 0 {
		t.Error("who is mute is given statements")
	}
}

// TestMovedBounds: a desk has a bound, and so has an answer.
func TestMovedBounds(t *testing.T) {
	d := Moved{Clock: clock.RealClock{}}
	for i := range moved.MaxNodes + 10 {
		s := of("n" + strconv.Itoa(i) + " 1 1")
		s.Chain = [][]byte{make([]byte, 4<<10)}
		if _, err := d.Exchange("n"+strconv.Itoa(i), MovedAsk{Statement: s, Mute: true}); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.of) != moved.MaxNodes || d.of["n9"] != nil || d.of["n10"] == nil {
		t.Errorf("%d nodes", len(d.of))
	}
	seen := map[string]bool{}
	for a := (MovedAsk{}); ; {
		out, err := d.Exchange("reader", a)
		if err != nil || len(out.Statements) > 100 {
			t.Fatalf("%d at once, %v", len(out.Statements), err)
		}
		for _, s := range out.Statements {
			seen[s.Text] = true
		}
		if a = (MovedAsk{Desk: out.Desk, After: out.At}); !out.More {
			break
		}
	}
	if len(seen) != moved.MaxNodes {
		t.Errorf("%d were read", len(seen))
	}
}
