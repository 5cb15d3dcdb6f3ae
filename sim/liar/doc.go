// Package liar leads a pool with the key of one of its nodes, and lies. It serves the objects of the cloud and one
// EndpointSlice that the cloud never had, under a version that the cloud gave to another object. So the versions fit,
// and only the cloud itself contradicts.
//
// It is made of the parts by which a hub leads (relays that are fed from the cloud, and the server for its pool), so
// that the product has no way to lie. Lead starts goroutines and a server; Stop ends them.
package liar
