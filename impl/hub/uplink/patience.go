package uplink

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// DoubtfulWatch is how long a watch lasts that the hub answers by itself while it is not known that the cloud is away.
const DoubtfulWatch = 10 * time.Second

// ConnectPatience is how long a read waits for a connection to a cloud of which nothing is known yet, if somebody else
// can answer.
const ConnectPatience = 200 * time.Millisecond

// ErrGivenUp is why a request to the cloud was left: the store answers it.
var ErrGivenUp = errors.New("the cloud does not answer: the store does")

// Patience is how long a read of which the authorization may have waited already still waits for a cloud of which
// nothing is known: ConnectPatience since the first wanted to know.
func (k *Cloud) Patience() time.Duration {
	since := k.doubted.Load()
	if since == nil {
		return ConnectPatience
	}
	return max(0, ConnectPatience-k.clock.Since(*since))
}

// Impatient is the context of a request to a cloud of which nothing is known. If it has no connection within
// ConnectPatience, and somebody else can answer, leave is called.
func Impatient(ctx context.Context, c clock.WithTicker, other func() bool, leave func()) context.Context {
	var connected atomic.Bool
	timer := c.NewTimer(ConnectPatience)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			if !connected.Load() && other() {
				leave()
			}
		case <-ctx.Done():
		}
	}()
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
}
