package bench

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestBareFile: a bare server serves a file as it is now, whole and in part.
func TestBareFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "layer")
	for name, text := range map[string]string{file: "a layer", filepath.Join(dir, bareFile): file} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	handler, err := bareHandler(dir)
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]string{"": "a layer", "bytes=2-": "layer"} {
		w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		if part != "" {
			req.Header.Set("Range", part)
		}
		if handler.ServeHTTP(w, req); w.Body.String() != want {
			t.Errorf("%q: %d %q, want %q", part, w.Code, w.Body, want)
		}
	}
}
