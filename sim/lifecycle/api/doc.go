// Package api is a small kube-apiserver in memory, for clients in a bubble of fake time (testing/synctest), where no
// socket may be. A Server answers the requests of unmodified clients, client-go's and controller-runtime's, through an
// http.RoundTripper: get, list, watch with initial events and resumed by version, create, update, delete, merge and
// strategic merge patches, status as a resource of its own, dry runs, resourceVersion and UID as preconditions. It
// knows the kinds that node controllers and weir-manager use, keeps Events no longer than it takes to answer, and
// deletes a pod at once.
//
// It does what the admission policies of weir-manager say about pods (admission.go), as kube-apiserver would evaluate
// them, late by Config.PolicyLag. sim/managertest holds that against the real kube-apiserver, request by request.
//
// A Server starts no goroutine and never waits: a request is answered when RoundTrip returns, and what a watch has to
// say is buffered without bound. So a client may ask while it holds a lock, as the node lifecycle controller does.
package api
