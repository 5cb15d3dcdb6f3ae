// Package hubtest has what tests of the parts of a hub share: a certificate that can be replaced, the cloud at a server
// on loopback, and a pool that is told about itself. It starts no goroutine.
package hubtest
