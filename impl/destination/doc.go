// Package destination names where a connection may go: a network and its ports, as spec.reach of a Pool has them. It
// knows the networks to which none ever goes.
//
// weir-manager reads spec.reach, signs it in the directory of the pool, and the leader of the pool dials by it for
// weir-gate. All three have one type for it, Span, and one list of what is refused, Forbidden.
//
// It is pure: it resolves no name, and dials nothing.
package destination
