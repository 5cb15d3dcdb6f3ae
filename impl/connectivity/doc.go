// Package connectivity decides which ways of a hub to others of its pool are tried, when, and what it means that one
// fails. A hub tries only what is inside its pool: whether it reaches the cloud is known from all that it asks there.
//
// # The rhythm
//
// An edge is tried a while after it is known, and each Usual from then on, at a moment of its own. One that failed is
// tried again after Again. It counts as failing when it failed Failures times in a row. Then it is tried each Failing,
// and counts as well again after the first attempt that works. A hub that is without its pool tries all edges each
// Failing: somebody will want to know why.
//
// An attempt is a connection of its own, so that it meets the firewall as a new one does. It ends after Patience.
// Attempt is what is said over it: one request, so large that it takes several packets of any link. Where only small
// packets come through it is never answered.
//
// # Causes
//
// Cause makes one word of package digest of how far an attempt came, and of the error by which it ended: a connection
// that nobody answers is a firewall's, one that is taken and on which nothing is said is another program's, and one on
// which large requests alone get lost has a smaller MTU.
//
// A Plan is stepped by its owner, with a time that never goes back. It starts no goroutine, and opens no socket.
// Attempt starts no goroutine that outlives a call.
package connectivity
