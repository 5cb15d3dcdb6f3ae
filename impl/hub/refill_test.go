package hub

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// TestRefillWithoutCloud: with the cloud away a coordinator that has lost everything is given the newest state that a
// hub holds, and a hub that starts with nothing reads it there. Nobody takes that for fresh. When the cloud is back,
// all of them go on.
func TestRefillWithoutCloud(t *testing.T) {
	nodes := []string{"edge-1", "edge-2"}
	p := newPoolBed(t, append(nodes, "edge-3")...)
	cloud, link := p.clouds[0], newCut(t, strings.TrimPrefix(p.clouds[0].url(), "https://"))
	for _, h := range p.hubs {
		h.config.CloudServers = []string{link.url()}
		h.config.CoordinatorWait = time.Second
	}
	cloud.put("default", "first")
	p.start(nodes...)
	eventually(t, "one hub to lead and the other to follow", func() bool { return p.settled(nodes...) != "" })
	p.shows("edge-1", "first")
	p.shows("edge-2", "first")

	// All machines but the cloud are gone, the coordinator's disk with them.
	link.set(true)
	for _, n := range nodes {
		p.stops[n]()
	}
	p.coordinator.empty()
	p.start(append(nodes, "edge-3")...)
	h := p.hubs["edge-3"]
	eventually(t, "edge-3 to be fed", func() bool {
		for _, r := range h.hub.Status().Resources {
			if !r.Synced || !r.Restored || r.Source != "coordinator" || r.Version < 100 || r.AgeSeconds <= 0 ||
				r.FreshAt.IsZero() {
				return false
			}
		}
		return true
	})
	for _, r := range p.coordinator.relays {
		if s := r.Status(); !s.Restored || s.Fresh(time.Now(), time.Hour) {
			t.Errorf("the coordinator believes in it: %+v", s)
		}
	}
	for _, r := range p.hubs["edge-1"].hub.Status().Resources {
		first := r.AgeSeconds
		eventually(t, "the age to grow", func() bool {
			return p.hubs["edge-1"].hub.Status().Resources[0].AgeSeconds > first+1
		})
		break
	}
	client := h.client(nil)
	resp, body := get(t, client, h.url()+"/api/v1/endpoints", alice...)
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "nothing is remembered") ||
		resp.Header.Get("Retry-After") == "" {
		t.Errorf("whom a hub without memory does not know gets %d: %s", resp.StatusCode, body)
	}
	for query, want := range map[string]int{
		"watch=1&resourceVersion=100": http.StatusTooManyRequests, // client-go goes on there, and does not list
		"watch=1":                     http.StatusServiceUnavailable,
		"watch=1&resourceVersion=0":   http.StatusServiceUnavailable,
		"watch=1&resourceVersion=100&sendInitialEvents=true&resourceVersionMatch=NotOlderThan": http.StatusServiceUnavailable,
	} {
		if resp, body := get(t, client, h.url()+"/api/v1/endpoints?"+query, alice...); resp.StatusCode != want ||
			resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s of whom a hub without memory does not know gets %d: %s", query, resp.StatusCode, body)
		}
	}
	resp, _ = get(t, p.hubs["edge-1"].client(nil), p.hubs["edge-1"].url()+"/api/v1/namespaces/default/endpoints/first",
		alice...)
	if resp.StatusCode != http.StatusOK || resp.Header.Get(contract.AgeHeader) == "" {
		t.Errorf("whom edge-1 remembers gets %d, age %q", resp.StatusCode, resp.Header.Get(contract.AgeHeader))
	}

	cloud.put("default", "second")
	link.set(false)
	for _, n := range append(nodes, "edge-3") {
		p.shows(n, "second")
	}
	eventually(t, "all to be fresh", func() bool {
		for _, n := range append(nodes, "edge-3") {
			for _, r := range p.hubs[n].hub.Status().Resources {
				if r.Restored || r.AgeSeconds > 10 {
					return false
				}
			}
		}
		return true
	})
}
