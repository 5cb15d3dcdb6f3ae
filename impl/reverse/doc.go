// Package reverse serves over a connection that the server dialed. Nodes that cannot accept a connection, for example
// behind NAT, can so be read by others.
//
// The one who connects sends POST contract.LinePath with "Upgrade: weir-line" over HTTP/1.1 (RFC 9110, section 7.8).
// After the answer 101 the roles are exchanged. What follows is what a connection of the other direction would carry,
// with a TLS handshake of its own, so each knows the other by the same rules. A connection waits without a byte until
// it is wanted; then the next one is opened.
package reverse
