// Package member decides what a hub does in its pool. It is pure: it has no goroutine, clock, socket, file or log.
//
// A hub makes one Member and steps it. Step takes an Observation, which is what the hub saw since the last step, and
// returns Effects, which are data: things for the hub to do. The hub does them in order and reports back in later
// observations. Package membership (in impl/hub) drives a Member with real connections; the simulators drive the same
// Member in virtual time. So a schedule of faults that a simulator finds is one that the product would take.
//
//	Observation ─► Silence, Proof, Arrivals, Holding ─► role.Machine ─► role.Detours ─► Effects
//	                 what the hub saw, judged              leader or       source of
//	                                                       follower        each relay
//
// # What is decided here
//
//   - Health judges a server by its answers to probes.
//   - silence notices that nothing comes from the cloud to a hub that should hear it.
//   - proof asks for a fresh sign of the cloud before a hub stands for election.
//   - arrivals are what a leader knows of its feed: whether what the cloud showed has come to the coordinator.
//   - differences are the resources that only the hub or only the coordinator has.
//   - ahead and agree compare the history of the cloud that the coordinator is in with the leader's.
//   - stuck leaves a leader hub that says that it is fresh and brings nothing.
//   - heritage says when the next process of the node is told the identity of this one.
//   - aim chooses the source of each relay: see role.Detours.
//
// More machines are stepped by themselves, since what drives them is not the hub's role:
//
//   - Plan says what the feeder of one relay does next: resume, list, compare, ask. Package source drives it.
//   - Follow says when a coordinator takes the election Lease from a leader that it cannot read, and
//   - Rounds and Latest say when it asks the hubs what they hold, and which of them it follows. Package lead drives
//     these.
//   - Fence says from which hub a coordinator reads, and Tenure when the election Lease is free. Package lead
//     drives them.
//
// Package role has the election and the choice of the source that all relays have in common.
//
// # The fence
//
// A Fence decides from which hub a coordinator reads, so that a hub that has lost the lead is read no more. That is the
// hub of the node that holds the election Lease, and nobody else's. A Fence is shown the Lease, by reads, by writes and
// by a watch, and knows the present Leader: the node, the address of its hub, and its term, (incarnation of the
// coordinator's etcd, resourceVersion of the election Lease at the acquisition). What was read from a leader is valid
// as long as that node holds the Lease and no later term has begun: who loses the Lease and wins it back is read again,
// and so is another process of the same node. Nothing that a hub says is believed.
//
// # Rules of a driver
//
// One goroutine steps a Member. A step is due at the time of the last Wake effect, and whenever a field of the
// Observation changed. A step that is not needed does no harm. Each Request and each AskStatus is answered by exactly
// one Result or Answer in a later observation, an error included. Times are of one monotonic clock.
package member
