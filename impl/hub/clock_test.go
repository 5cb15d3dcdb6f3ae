package hub

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/await"
	"github.com/weir-edge/weir/impl/store"
)

// wrongClock is a clock that runs right and shows another time.
type wrongClock struct {
	clock.RealClock
	by time.Duration
}

func (c wrongClock) Now() time.Time                  { return time.Now().Add(c.by) }
func (c wrongClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestClock1970: a machine without a battery clock starts in 1970. It judges the certificates of the cloud and of the coordinator by the latest time that
// the cloud told, which is on its disk: so it finds its pool again. One whose disk tells no time does not, and one whose disk tells a time when they had
// expired does not either: that shows by which time they are judged. The world of this test is in the year 2100, so that nothing is right by accident.
func TestClock1970(t *testing.T) {
	world := time.Until(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	at1970 := wrongClock{by: time.Until(time.Unix(60, 0))}
	for name, c := range map[string]struct {
		kept time.Duration // the time on the disk, from that of the world; 0: there is none
		fed  bool
	}{
		"a disk of half an hour ago":                   {-30 * time.Minute, true},
		"an empty disk":                                {0, false},
		"a disk of a time when the certificates ended": {2 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBedAt(t, 1, world)
			coordinator := newFakeCoordinator(t, b.local)
			b.config.EnableCoordinator, b.config.CoordinatorServers = true, []string{coordinator.server.URL}
			b.config.DataDir, b.config.StorePlaintextSecrets, b.config.clock = filepath.Join(b.dir, "data"), true, at1970
			if c.kept != 0 {
				b.keepTime(b.ca.now().Add(c.kept))
			}
			b.start()
			met := func() bool {
				s := b.hub.Status()
				return s.Cloud[0].Healthy && s.Coordinator.Healthy
			}
			refused := func() bool {
				s := b.hub.Status()
				return strings.Contains(s.Cloud[0].Error, "expired or is not yet valid") && strings.Contains(s.Coordinator.Error, "expired or is not yet valid")
			}
			if c.fed {
				await.Until(t, time.Minute, "the cloud and the coordinator to be known", met)
				b.fed()
				return
			}
			await.Until(t, time.Minute, "their certificates to be refused", refused)
			if met() {
				t.Error("a certificate counts by no time that was proved")
			}
		})
	}
}

// keepTime lets a hub write the time of the cloud to its disk, as one does that heard it, and end.
func (b *bed) keepTime(at time.Time) {
	b.t.Helper()
	h, err := New(b.config)
	check(b.t, err)
	stop := b.run(h)
	body, err := json.Marshal(map[string]any{"time": at})
	check(b.t, err)
	check(b.t, h.store.PutDocument("weir/identity", store.Document{ContentType: "application/json", Body: body, At: at}))
	stop()
}
