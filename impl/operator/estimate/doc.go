// Package estimate is the command `weir estimate`. It says what the nodes of each site of a cluster exchange with the
// cloud in a day, as stock Kubernetes and with Weir, before anything of Weir is installed. Where Weir does not pay, it
// says so.
//
// It reads and never writes. Objects give sites, pods and sizes. Rates of change come from an audit log, from two reads
// of kube-apiserver's metrics, or from the times in managedFields, in this order; see Source. If the caller has
// no right to read something, the command says which right is missing. Then it goes on with the rest.
//
// The model (Of) is a few sums. All coefficients stand in one table, coefficients.go, each with the report that it was
// measured in. Bytes are those of the Kubernetes API over TLS, both ways. Lists after a broken link, images, logs and
// exec are not counted.
//
// What is read is bounded: lines of an audit log and of metrics, resources, and clients that are told apart. It starts
// no goroutine.
package estimate
