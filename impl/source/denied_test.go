package source

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// refusing answers all requests with a code, until that is 0.
type refusing struct {
	relay *relay.Relay
	code  atomic.Int64
	asked atomic.Int64
}

func (u *refusing) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	u.asked.Add(1)
	if code := int(u.code.Load()); code != 0 {
		rest.WriteError(w, req, apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "widgets"}, "",
			"", 0, true))
		return
	}
	(&rest.Handler{Source: u.relay}).ServeHTTP(w, req)
}

// TestFeederDenied: 404 is an answer. What a relay holds is not served on it, and is what it goes on with once the
// upstream has the resource again.
func TestFeederDenied(t *testing.T) {
	cloud, mine := newRelay(t), newRelay(t)
	list(t, cloud, 10, "x")
	up := &refusing{relay: cloud}
	up.code.Store(http.StatusNotFound)
	f := feed(t, mine)
	f.Use(serve(t, "cloud", up))
	eventually(t, "the denial", func() bool { return strings.HasPrefix(mine.Status().Denied, "404 ") })
	up.code.Store(0)
	f.Kick()
	eventually(t, "the first list", func() bool { return mine.Status().Denied == "" && mine.Status().Version == 10 })
	up.code.Store(http.StatusMethodNotAllowed)
	eventually(t, "another denial", func() bool { return strings.HasPrefix(mine.Status().Denied, "405 ") })
	put(t, cloud, "y", 11)
	up.code.Store(0)
	f.Kick()
	eventually(t, "what changed", func() bool { return mine.Status().Denied == "" && mine.Status().Version == 11 })
	if s := f.Status(); s.Lists.Total() != 2 { // one of them was answered by 404
		t.Errorf("%+v", s)
	}
}

// TestFeederForbidden: a relay that holds something does not believe the first 403.
func TestFeederForbidden(t *testing.T) {
	cloud, mine := newRelay(t), newRelay(t)
	list(t, cloud, 10, "x")
	up := &refusing{relay: cloud}
	f := feed(t, mine)
	f.Use(serve(t, "cloud", up))
	eventually(t, "the first list", func() bool { return mine.Status().Version == 10 })
	up.code.Store(http.StatusForbidden)
	before := up.asked.Load()
	eventually(t, "a refusal", func() bool { return up.asked.Load() > before })
	if mine.Denied() != nil {
		t.Error("the first refusal was believed")
	}
	eventually(t, "lasting refusals to be believed", func() bool { return mine.Denied() != nil })
}

// TestServedDenial: a coordinator is told what the cloud told the leader, for as long as that is so.
func TestServedDenial(t *testing.T) {
	leader, pool := newRelay(t), newRelay(t)
	f := feed(t, pool)
	f.Use(shows(t, leader))
	leader.Deny(apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "x"))
	eventually(t, "the coordinator to know", func() bool { return strings.HasPrefix(pool.Status().Denied, "404 ") })
	list(t, leader, 10, "x")
	f.Kick()
	eventually(t, "the state", func() bool { return pool.Status().Denied == "" && pool.Status().Version == 10 })
	leader.Deny(apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "x"))
	eventually(t, "the coordinator to know once more",
		func() bool { return strings.HasPrefix(pool.Status().Denied, "404 ") })
}

func list(t *testing.T, r *relay.Relay, version uint64, name string) {
	t.Helper()
	if err := r.Replace(version, []*wire.Object{slice(t, name, version)}); err != nil {
		t.Fatal(err)
	}
}
