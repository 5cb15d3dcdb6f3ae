// Package trust tells the members of a pool which certificate authorities are trusted, and replaces an authority
// without an interruption. And it tells them which certificates of these authorities are revoked.
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
// # The denylist
//
// A Denylist revokes certificates. It lists, for a pool, the nodes whose certificates are refused, and up to which time
// of issue.
//
// weir-manager writes a list when a Node is deleted, or leaves the pool, and signs it by the authority of the pool.
// Anyone with the certificate of that authority can tell a true list from any other, so it does not matter who hands a
// list on (package bulletin). A leader that would keep a list back keeps it from nobody.
//
// A Denial names a node and a time. Refused are the certificates of the node's hub, and of the coordinator's replica on
// it, that began until then. So a node of the same name can come back: weir-manager lets its new certificates begin
// later (Denylist.Floor). An entry ends after DenialLasts: then each certificate that it refuses has ended, with all
// that is allowed after its end.
//
// HeldDenylist.Refuse judges one certificate. HeldDenylist.Guard ends what is open by it when a list comes that refuses
// it.
//
// # What grows, and what is never forgotten
//
// Denylists are numbered. The number is the time of writing in milliseconds, or one more than the number before,
// whatever is more. So after a restore from a backup, the next list of the restored cloud is above all that the pool
// holds. A list with more entries of the past does not come from it until a hub has given them back (Lacking):
// therefore an entry is valid to its end, whatever a later list says, and lists that have such entries are kept and
// handed on beside the newest (MaxDenylists of them).
//
// A number, and a time in a list, is refused that is ahead of the time by more than an hour. What an authority has
// signed that may not sign any more (DenylistConfig.Speakers) is valid only until there is a list of one that may:
// weir-manager signs again what is valid of it. So a key that was stolen has no say once it is replaced.
//
// A list has MaxDenials, one for each name; the writer drops those that end first, and says so. A text has
// MaxDenylistText bytes. kube-apiserver knows no such list: see package manager/revocation.
//
// The package starts no goroutine, and does not reach kube-apiserver.
package trust
