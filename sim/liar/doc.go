// Package liar leads a pool with the key of one of its nodes, and lies: it shows what the cloud has, and one
// EndpointSlice that the cloud never had, under a version that the cloud gave to something else. So versions fit, and
// nothing but the cloud itself contradicts.
//
// It is made of the parts by which a hub leads (relays that are fed from the cloud, and the server for its pool), so
// that the product has no way to lie. Lead starts goroutines and a server; Stop ends them.
package liar
