// Package exchange is the meeting place of a pool: what its hubs tell each other over HTTP, each about its own node. A
// coordinator has one, and so has each leader hub. There are four exchanges:
//
//	Images     who pulls content of images, and who has it; package images has what that is for
//	Moved      what kubelets say of moved pods; see package moved
//	RollCall   which kubelets have renewed, for the leader to report; see package heartbeat
//	CallBacks  whether others reach the port of a hub; see package connectivity
//
// Each is in memory: what is lost with it is said again by the hubs a moment later. Images and Moved have a name
// (ImagesAnswer.Desk, MovedAnswer.Desk), by which hubs see that they speak to another one. All bound what they read and
// what they keep.
//
// An exchange is one POST with a JSON value, and a JSON value is the answer. In the roll call hubs use PUT:
//
//	PUT   by a hub: the entry of its node; the answer is the newest notice
//	POST  by the leader: a notice, or an empty one; the answer is all entries, which are gone then
//
// The caller is known by its certificate. It says nothing of other nodes than its own, except that it could not read
// from one of them. The package starts no goroutine: a call back ends with the request that asked for it.
//
// # Who pulls
//
// The first member that wants what nobody has pulls it. It says how far it is, and others read from it meanwhile. A
// pull of which nothing is heard for PullStall ends, and one without a new byte for PullSlow: the next member that asks
// pulls. A member that cannot read from another one says so, and is led elsewhere. The pull of the other one stays. So
// a member that lies costs the link its own pull, and no more.
//
// # What is believed of images
//
// What a member says that it has is believed: members check what they read by its digest. A member that served wrong
// bytes is barred for the member that says so, and for all when two say so.
//
// What a tag leads to is believed when two members say the same, each of what a registry said to its own containerd. A
// lone word is told as one: the asking hub uses it while the cloud is away, and only then. It is not told beside a word
// that is another one. So a member that lies has to find a tag that nobody else has asked for. A member that two others
// contradict, before and after, is barred for all.
//
// # What is believed of moved pods, and in the roll call
//
// Nothing: hubs read signatures. What came of moved pods is numbered, so that nobody reads a thing twice.
//
// # Who is called back
//
// A hub alone cannot know whether others reach its port. It has to answer at its address. A hub says itself where that
// is, as it does in the Lease of a leader, so it may have a connection opened to an address that other machines reach,
// too: one at a time, and one each CallBackRest. It is told how far that came, in one word.
//
// The answer also names a few members that asked lately, those that follow the caller by name: so each hub is tried by
// others, and none by all.
package exchange
