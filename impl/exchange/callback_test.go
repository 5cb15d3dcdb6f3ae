package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/connectivity"
	"github.com/weir-edge/weir/impl/digest"
)

// asks sends a request of a node, as HTTP does.
func asks(t *testing.T, d *CallBacks, node, body string) (int, CallBackAnswer) {
	t.Helper()
	w := httptest.NewRecorder()
	d.Handler(func(*http.Request) string { return node }).ServeHTTP(w,
		httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)))
	var a CallBackAnswer
	if w.Code == http.StatusOK {
		if err := json.NewDecoder(bytes.NewReader(w.Body.Bytes())).Decode(&a); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, a
}

// TestCallBacks: a hub is called at its own address and told what came of that, not too often, and who else is there.
func TestCallBacks(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	var calls []string
	fails := map[string]error{"edge-2": syscall.ECONNREFUSED}
	d := &CallBacks{Clock: clk, Call: func(_ context.Context, node, address string) (connectivity.Stage, error) {
		calls = append(calls, node+" "+address)
		return connectivity.Nothing, fails[node]
	}}
	at := func(i int) string { return fmt.Sprintf(`{"address":"10.0.0.%d:10269"}`, i) }
	for i, want := range []CallBackAnswer{
		{Called: true},
		{Called: true, Cause: digest.Refused, Members: []Member{{"edge-1", "10.0.0.1:10269"}}},
		{Called: true, Members: []Member{{"edge-1", "10.0.0.1:10269"}, {"edge-2", "10.0.0.2:10269"}}},
	} {
		code, got := asks(t, d, fmt.Sprint("edge-", i+1), at(i+1))
		if code != http.StatusOK || !reflect.DeepEqual(got, want) {
			t.Errorf("edge-%d: %d, %+v; want %+v", i+1, code, got, want)
		}
	}
	if _, got := asks(t, d, "edge-2", at(2)); got.Called || len(got.Members) != 2 || got.Members[0].Node != "edge-3" {
		t.Errorf("at once again: %+v", got)
	}
	clk.SetTime(clk.Now().Add(CallBackRest))
	delete(fails, "edge-2")
	if _, got := asks(t, d, "edge-2", at(2)); !got.Called || got.Cause != "" {
		t.Errorf("later: %+v", got)
	}
	if _, got := asks(t, d, "edge-4", `{"address":"reverse"}`); got.Called || len(got.Members) != MaxTold {
		t.Errorf("one that cannot be called: %+v", got)
	}
	if _, got := asks(t, d, "edge-3", at(3)); len(got.Members) != 2 || got.Members[0].Node != "edge-1" {
		t.Errorf("one that cannot be called is told: %+v", got)
	}
	clk.SetTime(clk.Now().Add(CallBackSilence + time.Second))
	if _, got := asks(t, d, "edge-1", at(1)); len(got.Members) != 0 {
		t.Errorf("who is silent is told: %+v", got)
	}
	before := len(calls)
	for _, bad := range []string{
		`{"address":""}`, `{"address":"example.com:1"}`, `{`, `{"address":"` + strings.Repeat("1", maxCallBackAsk) + `"}`,
	} {
		if code, _ := asks(t, d, "edge-9", bad); code != http.StatusBadRequest {
			t.Errorf("%.40s: %d", bad, code)
		}
	}
	if code, _ := asks(t, d, "", at(1)); code != http.StatusForbidden || len(calls) != before {
		t.Errorf("a stranger: %d, %d calls", code, len(calls)-before)
	}
}

// TestCallBackBounds: one hub has one call under way, and all together have few; members are bounded.
func TestCallBackBounds(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	wait, entered := make(chan struct{}), make(chan struct{}, 2*maxCalls)
	d := &CallBacks{Clock: clk, Within: time.Minute}
	d.Call = func(ctx context.Context, _, _ string) (connectivity.Stage, error) {
		entered <- struct{}{}
		select {
		case <-wait:
		case <-ctx.Done():
		}
		return connectivity.Nothing, nil
	}
	done := make(chan CallBackAnswer, maxCalls)
	more := func(i int) {
		go func() {
			a, _ := d.Exchange(context.Background(), fmt.Sprint("edge-", i), CallBackAsk{"10.0.0.1:1"})
			done <- a
		}()
		<-entered
	}
	refused := func(node string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if a, err := d.Exchange(ctx, node, CallBackAsk{"10.0.0.1:1"}); err != nil || a.Called {
			t.Errorf("%s: %+v, %v", node, a, err)
		}
	}
	for i := range maxCalls - 1 {
		more(i)
	}
	clk.SetTime(clk.Now().Add(CallBackRest))
	refused("edge-0")
	more(maxCalls - 1)
	refused("another")
	close(wait)
	for range maxCalls {
		if a := <-done; !a.Called {
			t.Errorf("%+v", a)
		}
	}
	d.Call = nil
	for i := range 2 * maxCallers {
		_, _ = d.Exchange(t.Context(), fmt.Sprint("many-", i), CallBackAsk{"10.0.0.1:1"})
	}
	if len(d.members) > maxCallers {
		t.Errorf("%d members", len(d.members))
	}
}

// TestCallBackAddresses: an address that is one of each machine would lead to where only the machine of the desk gets.
func TestCallBackAddresses(t *testing.T) {
	for _, c := range []struct {
		from, address string
		code          int
	}{
		{"10.0.0.1:5000", "127.0.0.1:2379", http.StatusBadRequest}, {"10.0.0.1:5000", "[::1]:2379", http.StatusBadRequest},
		{"10.0.0.1:5000", "[::ffff:127.0.0.1]:2379", http.StatusBadRequest},
		{"10.0.0.1:5000", "169.254.169.254:80", http.StatusBadRequest},
		{"10.0.0.1:5000", "0.0.0.0:80", http.StatusBadRequest},
		{"127.0.0.1:5000", "127.0.0.1:10269", http.StatusOK}, {"10.0.0.1:5000", "10.0.0.1:10269", http.StatusOK},
	} {
		called := false
		d := &CallBacks{
			Clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)),
			Call: func(context.Context, string, string) (connectivity.Stage, error) {
				called = true
				return connectivity.Secured, nil
			},
		}
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
			strings.NewReader(`{"address":"`+c.address+`"}`))
		req.RemoteAddr = c.from
		d.Handler(func(*http.Request) string { return "edge-1" }).ServeHTTP(w, req)
		if w.Code != c.code || called != (c.code == http.StatusOK) {
			t.Errorf("%s asks to be called at %s: %d, called %v; want %d", c.from, c.address, w.Code, called, c.code)
		}
	}
}
