package rest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func answer(t *testing.T, h *Handler, query string) int {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, slicesPath+query, nil))
	return w.Code
}

// TestDeny: what the source does not give is answered as the source does.
func TestDeny(t *testing.T) {
	r := newRelay(t)
	for _, synced := range []bool{false, true} {
		if synced {
			replace(t, r, 10, slice(t, "a/x", 5))
		}
		r.Deny(apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, ""))
		for _, query := range []string{"", "/x", "?watch=1", "?watch=1&resourceVersion=10", "?resourceVersion=10"} {
			if code := answer(t, &Handler{Source: r}, query); code != http.StatusNotFound {
				t.Errorf("synced %t, %q: %d", synced, query, code)
			}
		}
	}
}

// TestDenyFallsBack: where there is somebody else to ask, that one answers.
func TestDenyFallsBack(t *testing.T) {
	teapot := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	r := newRelay(t)
	replace(t, r, 10)
	r.Deny(apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", nil))
	if code := answer(t, &Handler{Source: r, Fallback: teapot}, "?watch=1"); code != http.StatusTeapot {
		t.Errorf("got %d", code)
	}
}
