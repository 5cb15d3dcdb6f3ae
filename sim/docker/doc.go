// Package docker asks the Docker engine of this machine for the few things that the runtime kind needs beside kind
// itself: a network of its own for each run, containers, and faults done to them. It calls the docker command, as kind
// does.
//
// It keeps nothing and starts no goroutine. What it creates carries Labels, by which a later process finds it.
package docker
