// Package gate is the relay in the cloud. It stands beside kube-apiserver and reads it once for all pools. The hub that
// leads a pool reads here what its pool shares, over one connection, and asks for differences instead of objects
// (package delta).
//
//	kube-apiserver ──► source.Feeder ──► relay ──► rest.Handler ──► source.Feeder of a leader
//
// A gate is optional. A hub that finds none, or one that does not answer, reads the same at kube-apiserver, and goes on
// at the version that it has reached: versions are the cloud's everywhere.
//
// # Who may read
//
// It serves get, list and watch of the resources that its flags name, and nothing else: never Secrets, no write. Each
// caller is known by a client certificate of the cluster or by a token, and may read what kube-apiserver lets him read:
// a SubjectAccessReview tells. An allowed review counts for five minutes, a denied one for half a minute. Tokens for
// kube-apiserver are never sent here by hubs; they show their certificate.
//
// # A gate that is behind
//
// A relay that its source has shown no sign of life for Config.FreshWithin is not served: a request for it is answered
// by 503 with Retry-After, and watches of it end. So nobody takes a gate that has lost kube-apiserver for the cloud.
//
// Memory for each further reader is that of its stream: changes are encoded once for all.
//
// Run blocks until its context ends.
package gate
