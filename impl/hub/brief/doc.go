// Package brief makes the answers to writes of a kubelet short. The cloud answers a status or a deletion with the whole
// object, which the kubelet's own watch then brings again. The hub holds that object. So it asks the cloud for the
// metadata alone, and makes the whole answer itself.
//
//	request                            what the cloud is asked                 what the hub makes of the answer
//	PATCH pods/status, nodes/status    the same on condition of the version    that version with the same patch
//	DELETE pods, at once               that the hub holds, for metadata        that version
//
// A status of a Node that brings nothing but later heartbeat times of its conditions stays here, see onlyBeats: the
// kubelet is answered with the Node as it is at the cloud, at the version that it has there. When these times are half
// an hour old at the cloud, or anything else changes, the next status passes.
//
// Each of the others gets the metadata of the answer: its resourceVersion is the cloud's. Nothing that is made here is
// stored as the cloud's word.
//
// # When requests pass as they are
//
// A request passes as it came if no open watch of the caller holds the object, or if the request is not what a kubelet
// sends: a dry run, another kind of patch, a version of its own, fields that are not known here. If somebody else wrote
// meanwhile, the cloud refuses the brief request, and the hub sends the one that came. The caller sees only the answer
// to that one.
//
// # Where the answer could be wrong
//
// The cloud does more than a patch says: it keeps some fields, and sets others. What is known of that is in prepare.go.
// So each answer is compared with what the watch shows at the same version, before or after the answer. At the first
// difference such requests pass as they are until the hub restarts: one line in the log has the field.
//
// The package starts no goroutine.
package brief
