// Package access decides who may take what of a hub: who calls, whether there is room for the request, and whether the cloud lets its caller read.
//
//	request ─► Identifier: who calls ─► Gate: bounds of callers, of tokens, of all ─► Authorizer ─► a read of a relay
//	                                     │  └ prover: what an unknown token is worth     └ Reviewer: asks the cloud, as the caller
//	                                     └ Through: the way to the cloud, from each caller's share
//
// This node passes no gate. Nothing fails open: what the cloud does not say, and nobody remembers, is refused.
//
// NewGate and NewAuthorizer start nothing. Reviews and questions about tokens run in goroutines of their own, since many callers may wait for one; each ends
// within ten seconds.
package access
