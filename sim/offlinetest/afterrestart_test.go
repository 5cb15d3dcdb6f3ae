package offlinetest

import (
	"net/http"
	"testing"
)

// TestReadsAfterARestart: a hub that starts with a full disk knows soon that it is as far as the cloud. Lists with
// unset version wait for that, and none of them crosses the uplink.
func TestReadsAfterARestart(t *testing.T) {
	b := newBed(t, unread())
	b.fillSlices(50, 20)
	token, client := b.account("reader"), b.bare()
	defer client.CloseIdleConnections()
	b.here()
	list := func() {
		code, why := ask(t.Context(), client, b.url+"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?limit=500",
			"Bearer "+token)
		if code != http.StatusOK {
			t.Errorf("a list: got %d %s", code, why)
		}
	}
	list()
	b.written()
	before := b.crossed()
	b.restart()
	for range 20 {
		list()
	}
	if n := b.crossed() - before; n > 100_000 { // a list is 200 kB
		t.Errorf("%.0f bytes crossed for 20 lists after a restart", n)
	}
}
