// Package certificates approves and signs the certificates of Weir. Nodes request them by CertificateSigningRequests,
// so no operator makes one by hand. Package pki lists the contents of each certificate.
//
// # Two signers
//
//   - What kube-apiserver has to trust is asked for at kubernetes.io/kube-apiserver-client: a hub's user of its own
//     (weir:hub:<pool>:<node>) and a leader's for forwarding. This package approves, kube-controller-manager signs.
//     Requests there that name nothing of Weir's are left alone.
//   - What is trusted inside a pool is asked for at weir.dev/<kind>. This package approves and signs, with the
//     authority of the pool.
//
// # What is approved
//
// A request is approved if all of this agrees, and denied at the first thing that does not, with a reason, an Event and
// a metric:
//
//   - it is signed by the key that it is for, and is no larger than pki.MaxRequest;
//   - it is of a node: by the user system:node:<node> of the group system:nodes, or by a bootstrap token of this node
//     (contract.BootstrapGroup), which counts once for each kind. The hub's own user asks for nothing: it may only
//     read;
//   - the Node exists, is not about to be deleted, and is no younger than the request: so a request of a Node that was
//     deleted gets nothing when another of its name comes. What is approved names the Node's uid, and is signed for
//     that Node only;
//   - its pool is that of the Node's label contract.NodePoolLabel, which the policy weir-membership denies nodes to
//     write;
//   - common name, organizations, usages, addresses (those of the Node's status), type of key and life are exactly
//     those of the kind;
//   - a coordinator's certificate is for a Node that says so by contract.CoordinatorLabel, which NodeRestriction denies
//     kubelets to write.
//
// Nothing is approved or signed before the node is on the roster of its pool (package revocation): who has no line
// there could not be revoked, and his user may not do anything at kube-apiserver yet. That takes half a second for a
// node that has just joined.
//
// What somebody else approved is judged by the same rules before it is signed, and fails if it breaks them. What
// somebody else approved for kube-apiserver is not in our hands: the verb approve on that signer is a right to be given
// away with care.
//
// # Keys
//
// The authority of a pool is a Secret in contract.KeyNamespace, made when the pool first needs it. Whom to trust is in
// a ConfigMap beside it: as a file, and as signed bundles that hubs read and hand on (package trust). If the ConfigMap
// is there and the Secret is not, the key is lost. Nothing is signed then: a new authority that nobody trusts would
// only make the pool fall apart, leaf by leaf. Somebody has to decide, by `weir pki rotate --lost-key`.
//
// # Rotation
//
// The Rotator replaces an authority: when it is due (at 70 to 80 % of its life), or when contract.RotateAnnotation of
// the ConfigMap asks for it, which is what `weir pki rotate` writes. The steps are those of pki.Succession. The next
// one is trusted, and signs when all nodes of the pool have told that they hold the bundle that says so (package
// holding), and that the replica of the coordinator holds it that they use. A hub that is away is waited for until the
// time that the order says. A node that was away all that time finds out over its connection to the cloud, or by the
// chain of bundles in its pool. Then leaves are renewed. The one before is valid until none of its leaves can be alive:
// 180 days, or what the order says.
//
// A second order before the next authority signs is refused, and so is one that would make five authorities are
// trusted. contract.RotationAnnotation says how far a rotation is, and what became of the last order; an Event of that
// ConfigMap and a metric tell of each step.
//
// After a loss nobody can vouch for the new authority. Hubs take it because the cloud says so, and the file that they
// write for their coordinator has it.
//
// After the cloud was restored from a backup of before a rotation hubs refuse the older bundle, and give back what they
// hold (bulletin.Returner). If the authority that signs here vouches for it, it signs again, by a bundle above that,
// and those that came after it count until what they signed is renewed.
//
// # Ends
//
// The Watchman tells of certificates and authorities that end without a successor: docs/certificates.md has the
// reasons.
//
// # Another signer
//
// In the mode Approve requests are approved and denied, and not signed. A signer in its place (an HSM, another
// certificate manager) has to sign exactly what was asked for, and only what has the condition Approved with the reason
// WeirApproved.
//
// # Two at once
//
// One replica of weir-manager acts. If two do all the same, each write says which version it was made from, and one of
// them fails; a Secret is created once. So nothing is signed twice.
//
// # Goroutines
//
// New starts none. Start has those of its controller, which end with its context.
package certificates
