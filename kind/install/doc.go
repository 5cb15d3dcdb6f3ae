// Package install holds the specs of an installation: a stock kind cluster that knows nothing of Weir, then the
// commands of the README, word for word, with a release of this tree, whose images machines pull by their digests from
// a registry on the cluster's network. `make test-kind` runs them.
//
// When all was taken off again, the release of a former revision is installed and becomes that of this tree.
//
// The pods of a Deployment are called all the while, from the cloud and from a node. Each call that fails counts.
//
// They do not run with `go test ./...`: they need a Docker engine and some minutes.
package install
