// Package moved lets Services follow their pods while the cloud is away: from what kubelets report, it corrects the
// EndpointSlices, Endpoints and Pods that clients of a pool are shown. It is pure: no I/O, no goroutine, no clock.
//
//	kubelet ──status──► queue of the hub ──Correction──► Statement (signed) ──► pool ──► Set of each hub
//	                                                                                       │ form
//	relay of the hub ──events──► Watch of a client ◄── View ◄───────────────────────────────┘
//
//	Correction  what a node says of one of its pods: its addresses, ready or not, gone
//	Statement   all corrections of a node, numbered, and a sign that the node lives
//	Signed      a statement as it is passed on
//	Set         the statements of all nodes of a pool; it corrects a slice
//	View        the versions of corrected objects, and which objects clients may have in a corrected form
//	Watch       what one client is shown, made of the events of a relay and the changes of a Set
//
// Nothing that is corrected is stored as the cloud's or passed on to another relay. A relay would drop it (rule 1),
// since its version is none that the relay waits for.
//
// # What a statement proves
//
// It is signed with the key of the certificate that the hub has for its pool (pki.Hub). It counts only for the node
// that this certificate names, in that pool. So a leader, a coordinator or another hub can keep it back, and can change
// nothing of it. Number and Beat only grow, so an old statement is found out. A node is believed of its own pods: a
// slice says which node a pod is on, and a correction of another node is not looked at. The signature begins with what
// it is about, as those of authorities do, so it is good for nothing else.
//
// A statement is a lease. While the cloud is away, a node with nothing new for Silence takes the readiness of all its
// pods with it. Only time counts in which the desk of the pool was read, so a hub that loses its pool silences nobody.
// Nodes state as soon as they are cut off, which they notice within Notices, and a pool is known to be some time later:
// what is between counts. A hub that starts reads at the desk for how long a node has not been heard (Signed.Age). One
// that lies about it can make a node silent, as it could by holding back what the node says.
//
// # What an endpoint becomes
//
// As the cloud's own controller would make it. An address of the same family replaces the address; a pod that is gone,
// or has no address of that family, is left out. Serving is what the kubelet says of readiness. Ready is that, unless
// the pod is terminating, or its Service publishes addresses that are not ready. Names, zones, hints and ports stay. An
// endpoint that has an address which another pod has now is left out if the same node says so, or if it is not serving.
// Endpoints without targetRef, of no node, or of nodes of other pools stay as they are.
//
// A Pod has the addresses that its node says, and is ready or not as it says. The rest of its status is the cloud's.
//
// # The return
//
// A hub leaves a pod out of its statement when the cloud has its status and its own relay has the slices that follow
// from it (Lagging). The statement names the versions of its relays (Statement.At). Others keep the correction until
// their relays have come so far (Set.Settle). So a link that breaks between a status and its slices costs no pod, and
// nobody sees the former address again on the way. Slices that never follow, as those of a second network, have two
// minutes: then the cloud has the last word of all (Set.Release). What the cloud removes or deletes is removed or
// terminating at once, corrected or not.
//
// # What the cloud did not hear
//
// The cloud makes the pods of a node that it does not hear not ready, also where it hears nobody of a pool, unless the
// policy weir-keep-ready of weir-manager is there. When the link is back, it would say so of every pod of the pool
// until each kubelet has looked again, and a Service of the pool would have nobody to answer. So a hub says of pods
// that are ready that they stay so (Stands): from 30 s of an outage, which is less than the cloud waits, until 15 s
// after it, and then while the slices say otherwise. Such a correction has no address: the pod is where the slice says.
// It never replaces one that has.
//
// # The version rule
//
// Let v be the version of an object, R what the relay has reached, and p what a client has seen.
//
//  1. A corrected form of an object has a version below v, at most 2^20 below. It is a function of the object and of
//     what is corrected in it. Two forms that follow each other in one watch have two versions.
//  2. Such a form comes as the object would: in a list, as an event, or as MODIFIED when corrections change. Behind it
//     comes a bookmark with the version that the client had, if no later event does.
//  3. A watch that goes on at p begins with all objects at or below p that are corrected, or were and are not any more
//     (View.Owed), as MODIFIED, then a bookmark at p. Objects above p come with their events.
//  4. If p is above R, the client knows later forms of some of these objects. So that bookmark has R. The watch shows
//     later what the relay hears, up to p, of the objects that it has touched. Of others the client has that already.
//
// That keeps four promises.
//
//   - No write that is based on a corrected form succeeds. The cloud compares versions for equality. The object's
//     version there is v or later, and v is above that of the form.
//   - No version is invented above R, since v ≤ R. A bookmark has R at most.
//   - A client is shown all corrections first. What it has at p of an object at or below p is that object, or a form
//     of it that was noted in Owed before it was shown. Rule 3 shows it what is true now.
//   - A client never goes backward. Behind the bookmark it is where it was, and the cloud or any relay goes on from
//     there. Informers compare two versions of an object for equality alone (client-go v0.37,
//     sharedIndexInformer.OnUpdate): an update with the version that they have is told to no handler. By rule 1 no
//     change has that version, neither to a form nor back to v.
//
// # What remains
//
// A connection that breaks between a form and its bookmark leaves the client at a version below v. It is shown again
// what it has seen, as at any kube-apiserver, or lists after 410. So it is with a client that takes no bookmarks, and
// with one of rule 4 that breaks off before the relay is where it was.
//
// A client may get two forms of one object without a watch between: in two lists, or before and after a break. They
// have the same version once in a million. Then its handlers hear of the second one with the next change.
//
// A client ahead of its relay has an earlier form of what is not corrected in a corrected object, until the relay is
// there.
package moved
