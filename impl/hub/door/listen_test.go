package door

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPanicIsTold: a panic ends its own request and is told as an error, with where it was. A stream that is broken on
// purpose is none.
func TestPanicIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		panics any
		told   string
	}{"a bug": {"index out of range", "listen_test.go"}, "a broken stream": {http.ErrAbortHandler, ""}} {
		var log bytes.Buffer
		h := loud(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(test.panics) }),
			slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})))
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
					t.Errorf("%s: it goes on as %v", name, p)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api", nil))
		}()
		if got := log.String(); test.told == "" && got != "" || !strings.Contains(got, test.told) {
			t.Errorf("%s is told as %q", name, got)
		}
	}
}
