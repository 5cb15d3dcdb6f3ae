// Package denylist revokes certificates. It lists, for a pool, the nodes whose certificates are refused, and up to
// which time of issue.
//
// weir-manager writes a list when a Node is deleted, or leaves the pool, and signs it by the authority of the pool.
// Anyone with the certificate of that authority can tell a true list from any other, so it does not matter who hands a
// list on (package bulletin). A leader that would keep a list back keeps it from nobody.
//
// # What is refused
//
// An Entry names a node and a time. Refused are the certificates of the node's hub, and of the coordinator's replica on
// it, that began until then. So a node of the same name can come back: weir-manager lets its new certificates begin
// later (List.Floor). An entry ends when no certificate of before can be alive, allowances included: see Lasts.
//
// Held.Refuse judges one certificate. Held.Guard ends what is open by it when a list comes that refuses it.
//
// # What grows, and what is never forgotten
//
// Lists are numbered. The number is the time of writing in milliseconds, or one more than the number before, whatever
// is more. So after a restore from a backup, the next list of the restored cloud is above all that the pool holds. A
// list with more entries of the past does not come from it until a hub has given them back (Lacking): therefore an
// entry is valid to its end, whatever a later list says, and lists that have such entries are kept and handed on beside
// the newest (MaxLists of them).
//
// A number, and a time in a list, is refused that is ahead of the time by more than an hour. What an authority has
// signed that may not sign any more (Config.Speakers) is valid only until there is a list of one that may: weir-manager
// signs again what is valid of it. So a key that was stolen has no say once it is replaced.
//
// # Bounds
//
// A list has MaxEntries, one for each name; the writer drops those that end first, and says so. A text has MaxText
// bytes.
//
// # What it does not do
//
// It starts no goroutine. It does not reach kube-apiserver, which knows no such list: see package manager/revocation.
package denylist
