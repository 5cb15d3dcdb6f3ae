package access

import (
	"context"
	"log/slog"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/nodelocal"
	"github.com/weir-edge/weir/impl/identity"
)

// GateConfig is what a gate is made of.
type GateConfig struct {
	Anonymous   bool  // all paths are for those without a credential
	Rate, Burst int   // of new requests to the cloud, by caller
	Bytes       int64 // of requests of known callers under way
	Cloud       reachability
	Unproven    http.RoundTripper // for questions about tokens of which nothing is known
	Judge       *identity.Judge   // is told of tokens that the cloud refuses
	// is told of a pod when the cloud has taken a token of its that was not known; nil: nobody wants to know.
	Called func(nodelocal.Pod)
	Clock  clock.PassiveClock
	Count  func(reason string)
	Logger *slog.Logger
}

// AuthorizerConfig is what an authorizer is made of.
type AuthorizerConfig struct {
	Review ReviewFunc
	Cloud  reachability
	Judge  *identity.Judge // knows what is valid while the cloud is away
	Clock  clock.WithTicker
	Count  func(outcome string) // cached, allowed, denied, refused, remembered, unavailable
	Stay   *Stay                // of Review; nil: no watch stays open
}

// reachability is what is known of the way to the cloud.
type reachability interface {
	IsAway() (yes bool, until context.Context) // until ends when that changes
	AwayBy(err error) bool                     // a request failed so because the cloud is away
	Unknown() bool                             // nothing is known of it yet; then it is asked
}
