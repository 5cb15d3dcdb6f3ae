// Package e2e holds the specs of pools of real kubelets: `make test-kind`. One cluster serves all of them: a pool of
// four workers with Weir and a stock pool of two, so that what crosses the uplinks can be laid side by side.
//
// They do not run with `go test ./...`: they need a Docker engine and some minutes.
package e2e
