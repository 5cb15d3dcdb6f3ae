// Package trust tells the members of a pool which certificate authorities are trusted, and replaces an authority
// without an interruption.
//
// weir-manager writes a Bundle for each step of a rotation (pki.Succession): who signs, who will sign next, who signed
// before. The bundle is signed by the authority that signs at that time. Bundles are lines of one text, the oldest
// first. A member that knows the authority of one line can follow to the last: a bundle counts if its signer is the
// signer, or the next one, of the bundle before it. Those before have no say: who has stolen an old key cannot take the
// pool back.
//
// # How it travels
//
// Hubs that reach the cloud read the text there (Follow). That connection is authenticated by the cloud's own
// authority, and so its word counts even where no earlier authority vouches for it: a key that was lost is replaced so.
// Inside the pool hubs and coordinator give each other what one of them lacks (package bulletin); there only the chain
// of signatures counts.
//
// # The first authority
//
// A file of authorities (Config.First) is valid until there is a bundle. A file that is replaced by one with an
// authority of the pool that the bundle does not have counts above the bundle: so somebody with a key to the machine
// overrules everything but the cloud. Without a file the first bundle is the cloud's. Authorities in the file that are
// none of the pool's by their names go on to count beside the bundle.
//
// # Numbers
//
// A number is refused that is ahead of the time by more than an hour, and of the cloud by more than two: so after a
// theft the cloud's bundle can be above whatever the thief made others believe. An authority that signed before is
// trusted still, and has no word any more in what is signed: see Held.Speakers.
//
// # On the disk
//
// trust.json is the text; ca.crt are the authorities that are valid, in PEM, for programs that only read files. A hub
// writes it beside the certificates that it gets for the coordinator of its machine (Config.Beside) too, which so
// follows even a replacement that nobody vouches for.
//
// # Bounds
//
// A bundle has 4 authorities, a text MaxLinks bundles and MaxText bytes. A member that was away for more steps than
// that asks the cloud.
//
// It starts no goroutine.
package trust
