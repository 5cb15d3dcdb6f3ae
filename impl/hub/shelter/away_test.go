package shelter

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
)

// TestOnAway: a write leaves when the cloud is found to be away, also where the link was away before that, because
// writes of before wait.
func TestOnAway(t *testing.T) {
	servers := map[uplink.Class][]*url.URL{}
	for _, class := range uplink.Classes {
		servers[class] = []*url.URL{{Scheme: "https", Host: "127.0.0.1:1"}} // refused
	}
	k := uplink.NewCloud(uplink.CloudConfig{
		Net: &net.Dialer{}, Servers: servers, Roots: &uplink.Bundle{}, Node: &uplink.Pair{}, Hub: &uplink.Pair{},
		Policy: member.Probing{
			Interval: time.Millisecond, Timeout: time.Second, Failures: 2, Healthy: 1, Away: time.Second,
			Confirm: time.Millisecond, Limit: time.Second,
		},
		Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	defer k.Close()
	link := uplink.NewLink(func() bool { return false })
	link.Look()
	a := &Attempt{Shelter: &Shelter{Config: Config{Cloud: k}, link: link}}
	left := make(chan struct{})
	defer a.onAway(func() { close(left) })()
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	runs.Go(func() { _ = k.Run(ctx) })
	defer func() { cancel(); runs.Wait() }()
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Error("it waits on, although the cloud is away")
	}
}
