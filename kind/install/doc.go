// Package install holds the specs of an installation: a stock kind cluster that knows nothing of Weir, then the commands of the README, word for word, with
// a release of this tree. `make test-kind` runs them.
//
// The pods of a Deployment are called all the while, from the cloud and from a node. Each call that fails counts.
//
// They do not run with `go test ./...`: they need a Docker engine and some minutes.
package install
