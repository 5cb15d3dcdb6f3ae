package workload

import (
	"errors"
	"fmt"

	"k8s.io/utils/clock"
)

const (
	maxServices  = 10_000
	maxEndpoints = 1000 // the endpoints controller truncates Endpoints at this number
	sliceSize    = 100  // --max-endpoints-per-slice of kube-controller-manager, by default
)

// Config says how large a workload is.
type Config struct {
	// Seed decides all content and the order of changes.
	Seed int64
	// Services is the number of Services, 1 to 10000. Each has one Endpoints and as many EndpointSlices as a real
	// controller makes: one for each 100 endpoints.
	Services int
	// Endpoints is the number of endpoints of each Service, 1 to 1000.
	Endpoints int
	// Nodes are the names of the nodes that the endpoints are on, "<pool>-<number>"; the pool is their zone.
	Nodes []string
	// Clock paces the changes; default real time.
	Clock clock.Clock
}

// Validate tells what is wrong with c.
func (c Config) Validate() error {
	var errs []error
	if c.Services < 1 || c.Services > maxServices {
		errs = append(errs, fmt.Errorf("workload: %d services: want 1 to %d", c.Services, maxServices))
	}
	if c.Endpoints < 1 || c.Endpoints > maxEndpoints {
		errs = append(errs, fmt.Errorf("workload: %d endpoints per service: want 1 to %d", c.Endpoints, maxEndpoints))
	}
	if len(c.Nodes) == 0 {
		errs = append(errs, errors.New("workload: no nodes: endpoints need one to be on"))
	}
	return errors.Join(errs...)
}
