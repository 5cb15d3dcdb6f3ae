// Package bulletin distributes the signed documents of a pool to its members. There are three: the trusted authorities
// and the revoked certificates (package trust), and the configuration of the pool (package directory).
//
// A member can tell a true document from any other by its signature and its number, so it does not matter who hands it
// on: the cloud, the coordinator, a leader, another hub. A peer's word may wake somebody up; it never changes what he
// believes.
//
//	Form      how a document is signed, as one line of text
//	Holder    who holds documents of one kind here, and judges what is handed over
//	Document  a Holder with its ways: a watch in the cloud, an exchange between two members of the pool, what the cloud
//	          has forgotten
//	Board     all Documents of one member
//
// # Numbers
//
// Each document has a number that only grows: the time of its writing in milliseconds, or one more than the number
// before (Next). A number or a time that is further ahead than Ahead is refused, so that nobody who has stolen a key
// for a moment can be above all that follows (Bound).
//
// # Ways
//
// In the cloud a document is a field of one object, which is watched (Document.Follow). Inside the pool two members
// compare tags every ten seconds and when something changes, and give each other what one of them lacks
// (Document.Exchange, Document.ServeHTTP). A Returner gives back what a cloud that was restored from a backup has
// forgotten.
//
// Most members of a pool follow a leader that watches all documents. A follower watches none of its own while
// weir-manager confirms, signed, that it holds the newest (Board.Confirm). So who keeps a document back is found: its
// sum does not fit, and within a minute each follower looks itself.
//
// It starts no goroutine but those of Board.Run, which end with its context.
package bulletin
