package exchange

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRollCall: a hub hands in the entry of its own node, and only the leader collects and posts.
func TestRollCall(t *testing.T) {
	var d RollCall
	h := d.Handler(func(req *http.Request) string { return req.Header.Get("By") }, func(node string) bool {
		return node == "lead"
	})
	for _, c := range []struct{ by, method, body, want string }{
		{"", "PUT", `{"period":4}`, "403"},
		{"", "POST", `{}`, "403"},
		{"a", "POST", `{}`, "403"},
		{"a", "GET", ``, "405"},
		{"a", "PUT", `{"node":"b","period":4,"link":"AQAAAAAAAAAAAAAAAAAAAA","reaches":true}`, "200 {}\n"},
		{"a", "PUT", `{"period":4,"link":"AQ"}`, "400"},
		{"a", "PUT", `{"period":4,"link":"` + strings.Repeat("A", maxRollCall) + `"}`, "400"},
		{"lead", "POST", `{"receipt":"r","roster":"x"}`,
			`200 [{"node":"a","period":4,"link":"AQAAAAAAAAAAAAAAAAAAAA","reaches":true}]` + "\n"},
		{"lead", "POST", `{}`, "200 []\n"},
		{"a", "PUT", `{"link":"AAAAAAAAAAAAAAAAAAAAAA"}`, `200 {"receipt":"r","roster":"x"}` + "\n"},
	} {
		req, w := httptest.NewRequest(c.method, "/", strings.NewReader(c.body)), httptest.NewRecorder()
		req.Header.Set("By", c.by)
		h.ServeHTTP(w, req)
		if got := http.StatusText(w.Code); !strings.HasPrefix(c.want, "200") {
			if !strings.HasPrefix(c.want, strings.Fields(w.Result().Status)[0]) {
				t.Errorf("%s %.60s by %q: %d %s, want %s", c.method, c.body, c.by, w.Code, got, c.want)
			}
		} else if got := "200 " + w.Body.String(); got != c.want {
			t.Errorf("%s %.60s by %q: %s, want %s", c.method, c.body, c.by, got, c.want)
		}
	}
}
