package coordinator_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// kept tells the version of EndpointSlices that a restart would restore.
func (c *caller) kept() string {
	c.t.Helper()
	for line := range strings.Lines(c.want(http.StatusOK, http.MethodGet, "/metrics", "")) {
		if rest, ok := strings.CutPrefix(line, `weir_snapshot_resource_version{resource="`+slicesName+`"} `); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// age is what an answer tells of the age of its state.
func (c *caller) age() int {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url.String()+slicesPath, nil)
	check(c.t, err)
	resp, err := c.http.Do(req)
	check(c.t, err)
	defer resp.Body.Close()
	age, err := strconv.Atoi(resp.Header.Get(contract.AgeHeader))
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("%s, age %q", resp.Status, resp.Header.Get(contract.AgeHeader))
	}
	return age
}

// TestKilledWithoutLeader: a coordinator that is killed and starts again with nobody to feed it serves what it had,
// tells the age, is not ready, lets watches resume, and goes on behind its version when a leader comes.
func TestKilledWithoutLeader(t *testing.T) {
	p := newPool(t)
	first := p.spawn().healthy()
	hub := first.hub("a")
	leader := leaderRelay(t, 100)
	shows := hub.show(leader)
	hub.elect("a_1")
	eventually(t, "the list", func() bool { return hub.reached() == 100 })
	for v := uint64(101); v < 105; v++ {
		put(t, leader, fmt.Sprint("n", v), v)
	}
	eventually(t, "all to be on disk", func() bool { return hub.kept() == "104" })
	shows.die()
	check(t, first.cmd.Process.Kill())
	first.ended()

	second := p.spawnAt(first.url.Port()).healthy()
	viewer := second.viewer()
	if list := viewer.want(http.StatusOK, http.MethodGet, slicesPath, ""); !strings.Contains(
		list, `"resourceVersion":"104"`) || strings.Count(list, `"name":"n10`) != 4 {
		t.Errorf("restored %s", list)
	}
	if s := viewer.state(); s.Ready {
		t.Errorf("%+v", s)
	} else {
		for _, r := range s.Resources {
			if had := r.Resource == slicesName; r.Synced != had || r.Restored != had || r.Ready || r.Feeder != "" {
				t.Errorf("%+v", r)
			}
		}
	}
	viewer.want(http.StatusInternalServerError, http.MethodGet, "/readyz", "")
	age := viewer.age()
	eventually(t, "the age to grow", func() bool { return viewer.age() > age })

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		second.url.String()+slicesPath+"?watch=1&resourceVersion=101", nil)
	check(t, err)
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	resp, err := viewer.http.Do(req)
	check(t, err)
	defer resp.Body.Close()
	events := wire.NewEventReader(resp.Body, wire.Protobuf, leader.Resource().WireKind())
	want := func(version uint64) {
		t.Helper()
		if ev, err := events.Next(); err != nil || ev.Version != version {
			t.Fatalf("got %+v, %v, want version %d", ev, err, version)
		}
	}
	want(102)
	want(103)
	want(104)

	// The leader had gone on: and what the coordinator has not seen is all that it sends.
	put(t, leader, "n105", 105)
	again := second.hub("a")
	again.show(leader)
	again.elect("a_2")
	eventually(t, "what it shows", func() bool { return viewer.reached() == 105 })
	want(105)
	eventually(t, "the relay to be fresh", func() bool {
		for _, r := range viewer.state().Resources {
			if r.Resource == slicesName {
				return r.Ready && !r.Restored && r.Version == 105
			}
		}
		return false
	})
	if said := second.stderr.String(); strings.Count(said, "restored from disk") != 1 {
		t.Errorf("it said %s", said)
	}
}
