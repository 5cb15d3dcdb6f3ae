// Package access decides which caller of a hub may read what: it authenticates the caller, limits its requests, and
// asks the cloud whether the caller may read.
//
//	request ─► Identifier: who calls ─► Gate: bounds of callers, of tokens, of all ─► Authorizer ─► a read of a relay
//	                                     │  └ prover: what an unknown token is worth     └ Reviewer: asks the cloud
//	                                     ├ Way: where a request waits for others of its caller
//	                                     └ Through: the way to the cloud, from each caller's share
//
// This node passes no gate. Nothing fails open: what the cloud does not say, and nobody remembers, is refused.
//
// NewGate and NewAuthorizer start nothing. Reviews and questions about tokens run in goroutines of their own, since
// many callers may wait for one; each ends within ten seconds.
//
// # Who is calling
//
// The hub ends TLS, so a client certificate cannot be passed on; tokens can.
//
//	caller shows                                     goes on to the cloud
//	a token                                          with the token, over connections without any certificate
//	a certificate of system:node:<this node>         with the node's certificate, which the hub has too
//	both                                             with the token alone: nothing is lent to the one that names another
//	                                                 identity
//	any other certificate, also an unknown one       not at all: 401
//	nothing                                          not at all: 401; but for /healthz, /livez, /readyz and /version
//	nothing, with --anonymous                        without credentials, and the cloud decides about system:anonymous
//
// What the hub itself reads, for relays above all, it reads as a user of its own, weir:hub:<pool>:<node>, by another
// certificate, over other connections. No request of anybody goes that way: whoever holds the node's certificate gets
// through the hub what kube-apiserver grants to the node, and no more.
//
// A certificate of this node that has expired stays valid for --offline-token-allowance (24 h) while the cloud is away,
// since nobody can renew it then; it is refused as soon as the cloud is back, and nothing of such a request is ever
// sent there (package shelter). So it reads, registers, gets tokens that were issued before, and sends heartbeats,
// which a leader forwards as its own; statuses and Events are refused with 503. A kubelet with rotateCertificates does
// not show its certificate any more when that has expired, except on connections that it has: so a hub or a kubelet
// that restarts then finds no credentials. Only a longer life helps. The certificate for the hub may be by an authority
// of the node's own (--client-ca-file), as the cloud never sees it.
//
// Connections with different certificates, or none, are never mixed, nor are their TLS sessions (a session resumes the
// identity it began with). Headers by which a front proxy tells who calls, and from where (X-Remote-*, X-Forwarded-*,
// X-Real-Ip), are dropped; impersonation is the cloud's to judge. The plain HTTP port knows no certificates. A request
// whose Connection header names anything but close, keep-alive, upgrade, te and http2-settings, or whose line names no
// path, is answered 400: the cloud could get another request than the one that came.
//
// A token that the cloud answers 401 is answered so here for 10 s, whatever it is used for: kube-apiserver ends the
// connection with each 401. At once all that was remembered of it is no longer valid while the cloud is there, and its
// open watches of relays end. Without the cloud it is no longer valid when the 401 stands: see package identity. The
// watches also end when the store sees the pod go to which the token is bound. A ServiceAccount that is deleted, and
// rights that are taken away, are found out when the token is used with the cloud next. A watch that goes on does not
// ask, nor does one that begins within ten minutes of the last question: with client-go that is twenty minutes at most.
// (A 401 from behind kube-apiserver, by a server of another group or through services/proxy, says nothing of a token
// that was good.)
//
// # Who may have how much
//
// All but this node pass a gate. It bounds requests under way and new requests to the cloud, by caller and in sum, so
// that no pod can take the uplink, the memory or the connections of others; docs/limits.md is the table. A caller is
// known once the cloud has taken its token. When the cloud has refused a token lately, unknown ones are first asked
// about over connections of their own (see prover), as kube-apiserver ends the HTTP/2 connection that carries a bad
// one. Heartbeats, probes and requests of this node are never behind others.
//
// A caller may have more requests under way than are at the cloud: further ones wait, in the order in which they came,
// for one of its ways there (Admission.Way). So a slow cloud costs less memory of the hub, and a caller that lists all
// that it knows takes few streams of the connection that all share. A way is given back when the answer is over. A
// caller whose client does not take its answers holds up itself alone, until these are ended (limit.StallTimeout).
// Reviews, and lists by which the store catches up with a watch, have bounds of their own and never wait here: others
// wait for the places that they hold.
//
// # Who may read
//
// Each read from a relay is authorized by the cloud, with the credentials of the request itself, which authenticates
// and authorizes in one round trip. Who may watch is asked by the very watch, which is left as soon as it begins (100
// bytes); who may get or list, by a SelfSubjectAccessReview (500 bytes). Allowances are valid for 5 minutes, of watches
// for 10, denials 30 seconds: one review for each token and question in that time. kube-apiserver ends a connection on
// which nothing ran for 90 seconds, so a quiet caller needs another one for its next question, and that costs more than
// forty questions. So the other watches of the same token are asked about together, if they were used and half of their
// time is over. If a review fails beside a cloud that is there, the
// answer is 503. In place of a 503 a watch that goes on at a version is told 429, after which client-go tries again and
// does not list. A selector of more than 8 KiB is the cloud's to answer. Without the cloud an allowance that is
// remembered is still valid, a refusal only if it was recalled without the cloud; then package identity tells who is
// calling, by the cluster's own keys, and what the cloud decided for that caller last: what was denied twice, ten
// seconds apart, is denied, an allowance is valid for --offline-access (7 days), and what nobody decided is 503. It
// never fails open. Decisions are kept on disk, as hashes of the one that asked and of what was asked.
//
// What a caller does with pods of this node, as to read their logs, passes to the cloud without a question. So that it
// is known without the cloud who may do that, the hub asks once it was done (Learn, and package shelter).
package access
