package lead

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// TestHubs: a coordinator counts the nodes whose hubs have asked it lately, each once.
func TestHubs(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	x := &Reporter{Clock: clock, NodeOf: func(req *http.Request) string { return req.Header.Get("node") }}
	for _, step := range []struct {
		node  string
		later time.Duration
		want  int
	}{
		{"edge-1", 0, 1}, {"edge-2", 30 * time.Second, 2}, {"edge-1", 30 * time.Second, 2}, {"", 0, 2},
		{"edge-3", 61 * time.Second, 2}, {"edge-3", hubsPatience + time.Second, 1}, {"", hubsPatience + time.Second, 0},
	} {
		clock.Step(step.later)
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		req.Header.Set("node", step.node)
		if got := x.heard(req); got != step.want {
			t.Errorf("%v later %q asks: %d hubs, want %d", step.later, step.node, got, step.want)
		}
	}
	if n := (&Reporter{Clock: clock}).heard(httptest.NewRequest(http.MethodGet, "/", nil)); n != 0 {
		t.Errorf("%d hubs where nobody tells who asks", n)
	}
}
