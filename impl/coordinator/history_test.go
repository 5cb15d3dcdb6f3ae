package coordinator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestAnotherHistory: a leader brings another history of the cloud; watches end with 410. A coordinator that is killed
// keeps its number, and takes nothing of an earlier one, whatever its version.
func TestAnotherHistory(t *testing.T) {
	p := newPool(t)
	first := p.spawn().healthy()
	hub := first.hub("a")
	leader := leaderRelay(t, 1000)
	shows := hub.show(leader)
	hub.elect("a_1")
	eventually(t, "the list", func() bool { return hub.reached() == 1000 })

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		first.url.String()+slicesPath+"?watch=1&resourceVersion=1000", nil)
	check(t, err)
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	resp, err := first.viewer().http.Do(req)
	check(t, err)
	defer resp.Body.Close()

	check(t, leader.ReplaceIn(relay.History{Number: 1, Lost: 1000}, 900, []*wire.Object{slice(t, "kept", 800)}))
	eventually(t, "the other history", func() bool { return hub.slices().History == 1 && hub.slices().Version == 900 })
	events := wire.NewEventReader(resp.Body, wire.Protobuf, leader.Resource().WireKind())
	if ev, err := events.Next(); err != nil || ev.Type != wire.Error || ev.Status.Code != http.StatusGone {
		t.Errorf("the watch of before shows %+v, %v", ev, err)
	}
	put(t, leader, "new", 901)
	eventually(t, "all to be on disk", func() bool { return hub.kept() == "901" })
	shows.die()
	check(t, first.cmd.Process.Kill())
	first.ended()

	second := p.spawnAt(first.url.Port()).healthy()
	hub = second.hub("a")
	if s := hub.slices(); s.History != 1 || s.Version != 901 || !s.Restored {
		t.Errorf("restored %+v", s)
	}
	before := hub.show(leaderRelay(t, 2000)) // a leader of before, which was away
	hub.elect("a_2")
	eventually(t, "it to be read", before.read)
	if s := hub.slices(); s.History != 1 || s.Version != 901 {
		t.Errorf("a leader of before was followed: %+v", s)
	}
	hub.show(leader)
	hub.elect("a_3")
	put(t, leader, "newer", 902)
	eventually(t, "the feed to go on", func() bool { return hub.reached() == 902 })
	if list := second.viewer().want(http.StatusOK, http.MethodGet, slicesPath, ""); strings.Contains(
		list, `"name":"one"`) || strings.Count(list, `"name":"`) != 3 {
		t.Errorf("list %s", list)
	}
}
