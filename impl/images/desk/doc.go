// Package desk is where the hubs of a pool agree on who pulls content of images from a registry, and learn who has it.
// Package images has what that is for. A coordinator has a desk, and so has each leader hub. It is in memory: what is
// lost with it is said again by the hubs, which see by Answer.Desk that it is another one. It starts no goroutine.
//
//	POST  by a hub: an Ask; the answer is an Answer
//
// # Who pulls
//
// The first member that wants what nobody has pulls it. It says how far it is, and others read from it meanwhile. A
// pull of which nothing is heard for Stall ends, and one without a new byte for Slow: the next member that asks pulls.
// A member that cannot read from another one says so, and is led elsewhere. The pull of the other one stays. So a
// member that lies costs the link its own pull, and no more.
//
// # What is believed
//
// The caller is known by its certificate. What it says that it has is believed: members check what they read by its
// digest. A member that served wrong bytes is barred for the member that says so, and for all when two say so.
//
// What a tag leads to is believed when two members say the same, each of what a registry said to its own containerd. A
// lone word is told as one: the asking hub uses it while the cloud is away, and only then. It is not told beside a word
// that is another one. So a member that lies has to find a tag that nobody else has asked for. A member that two others
// contradict, before and after, is barred for all.
package desk
