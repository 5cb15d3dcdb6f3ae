// Package routes finds out where clients of a pool are led to by EndpointSlices, and whether that is right.
//
//	Truth    who has which address, and since when: what the machines say
//	Watcher  one client of one node: what it was shown, and when. It keeps an informer, or lists again and again
//	Caller   calls Services as such a client would
//	Named    calls Services by their DNS names, by way of the node's kube-proxy
//	Judge    holds what clients were shown against the truth, once all is over
//	Versions holds the versions of it against those that the cloud gave
//
// A Watcher, a Caller and a Named run until the context of their Run ends. The rest has no goroutines.
package routes
