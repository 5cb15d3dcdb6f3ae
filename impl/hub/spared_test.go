package hub

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestOddReviewIsNoOutage: the caller is told it, and nobody takes it for a cloud that is away.
func TestOddReviewIsNoOutage(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	b.fed()
	b.clouds[0].answers(http.StatusBadRequest, "alice")
	for range 2 {
		if resp, body := get(t, b.client(nil), b.url()+slicesPath,
			append(alice, "Impersonate-Group", "x")...); resp.StatusCode != http.StatusBadRequest ||
			resp.Header.Get("Retry-After") != "" {
			t.Errorf("%s %v %s", resp.Status, resp.Header, body)
		}
	}
	if log := b.log.String(); strings.Contains(log, "the cloud is away") {
		t.Error("the log says that the cloud is away")
	}
}

// TestProbesAreSpared: answers to clients take the place of probes.
func TestProbesAreSpared(t *testing.T) {
	b := newBed(t, 1)
	b.config.HeartbeatInterval = 500 * time.Millisecond
	cloud := b.clouds[0]
	b.start()
	eventually(t, "the cloud to be known as healthy", func() bool { return b.hub.cloud.Healthy() })
	probes := func() (n int) {
		cloud.set(func() {
			for _, s := range cloud.seen {
				if s.path == "/readyz" {
					n++
				}
			}
		})
		return n
	}
	before, client := probes(), b.client(nil)
	for began := time.Now(); time.Since(began) < 5*b.config.HeartbeatInterval; {
		get(t, client, b.url()+"/echo/x", "Authorization", "Bearer alice")
	}
	if n := probes() - before; n > 1 {
		t.Errorf("%d probes in five intervals, beside a server that answers all the time", n)
	}
}
