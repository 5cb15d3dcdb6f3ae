package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/testkit"
)

// wrongClock is a clock that runs right and shows another time.
type wrongClock struct {
	clock.RealClock
	by time.Duration
}

func (c wrongClock) Now() time.Time                  { return time.Now().Add(c.by) }
func (c wrongClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestClock1970: a machine without a battery clock starts in 1970. It judges the certificates of the cloud and of the
// coordinator by the latest time that was proved, which is on its disk: so it finds its pool again. One whose disk
// tells no time takes what the cloud's own certificate proves. One whose disk tells a time when they had expired finds
// nobody: that shows by which time they are judged. The world of this test is in the year 2100, so that nothing is
// right by accident.
func TestClock1970(t *testing.T) {
	world := time.Until(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	at1970 := wrongClock{by: time.Until(time.Unix(60, 0))}
	for name, c := range map[string]struct {
		kept time.Duration // the time on the disk, from that of the world; 0: there is none
		fed  bool
	}{
		"a disk of half an hour ago":                   {-30 * time.Minute, true},
		"an empty disk":                                {0, true},
		"a disk of a time when the certificates ended": {2 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBedAt(t, 1, world)
			coordinator := newFakeCoordinator(t, b.local)
			b.config.EnableCoordinator, b.config.CoordinatorServers = true, []string{coordinator.server.URL}
			b.config.DataDir, b.config.StoreKeyFile, b.config.clock = filepath.Join(b.dir, "data"), NoKey, at1970
			if c.kept != 0 {
				b.keepTime(b.ca.now().Add(c.kept))
			}
			b.start()
			met := func() bool {
				s := b.hub.Status()
				return s.Cloud[0].Healthy && s.Coordinator.Healthy && b.hub.time.Now().Sub(b.ca.now()).Abs() < 10*time.Minute
			}
			refused := func() bool {
				s := b.hub.Status()
				return strings.Contains(s.Cloud[0].Error, "expired or is not yet valid") &&
					strings.Contains(s.Coordinator.Error, "expired or is not yet valid")
			}
			if c.fed {
				testkit.Until(t, time.Minute, "the cloud and the coordinator to be known", met)
				b.fed()
				return
			}
			testkit.Until(t, time.Minute, "their certificates to be refused", refused)
			if met() {
				t.Error("a certificate counts by no time that was proved")
			}
		})
	}
}

// keepTime writes a time to the disk of a hub, as one does that heard it from the cloud.
func (b *bed) keepTime(at time.Time) {
	b.t.Helper()
	check(b.t, os.MkdirAll(b.config.DataDir, 0o700))
	check(b.t, os.WriteFile(filepath.Join(b.config.DataDir, "time"), []byte(at.UTC().Format(time.RFC3339)+"\n"), 0o600))
}
