package coordinator_test

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/relay"
)

// TestFeedDenied: what the cloud does not give to the leader is answered so, takes nothing from the readiness of
// others, and is fed once it is given.
func TestFeedDenied(t *testing.T) {
	s := newPool(t).start()
	a, viewer := s.hub("a"), s.viewer()
	res, err := relay.ParseResource("endpoints.v1.")
	check(t, err)
	endpoints, err := relay.New(relay.Config{Resource: res})
	check(t, err)
	check(t, endpoints.Replace(100, nil))
	slices := leaderRelay(t, 100)
	slices.Deny(apierrors.NewNotFound(schema.GroupResource{Resource: "endpointslices"}, "x"))
	a.show(endpoints, slices)
	a.elect("a_1")
	eventually(t, "the denial", func() bool { return strings.HasPrefix(viewer.slices().Denied, "404 ") })
	eventually(t, "the pool to be ready", func() bool { return viewer.state().Ready })
	viewer.want(http.StatusOK, http.MethodGet, "/readyz", "")
	viewer.want(http.StatusNotFound, http.MethodGet, slicesPath, "")
	viewer.want(http.StatusNotFound, http.MethodGet, slicesPath+"?watch=1", "")
	viewer.want(http.StatusOK, http.MethodGet, "/api/v1/endpoints", "")
	put(t, slices, "two", 101)
	eventually(t, "the feed", func() bool {
		return viewer.reached() == 101 && viewer.slices().Denied == "" && viewer.slices().Ready
	})
	viewer.want(http.StatusOK, http.MethodGet, slicesPath, "")
}
