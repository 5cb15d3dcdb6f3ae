// Package shelter serves this node's clients while the cloud is away, from what passed while it was there.
//
// Who may have what is told by package identity, what there is by packages store and offline, what becomes of writes by package writes. A Shelter decides
// which of the two answers: the cloud (Serve, Observe), or the store (Serve, Rescue, Take). Admit lets in this node with a certificate that has expired.
//
// New starts nothing. Run blocks until its context ends, and then until the last request was served and the store is written. None takes the place of a Shelter
// in a hub that keeps nothing.
package shelter
