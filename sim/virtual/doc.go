// Package virtual runs a whole pool in virtual time on one thread: a failing seed replays exactly.
//
//	go test ./sim/virtual -run TestSchedules -from 0 -schedules 10000   # new random schedules of faults; prints the seed
//	                                                                    # that fails
//	go test ./sim/virtual -run TestSchedules -seed 42 -v                # that one again, with all that happens
//
// # What is real
//
// Each hub is a member.Member and a relay.Relay, the coordinator a fence.Fence and a relay.Relay; each relay is fed as
// a member.Plan says, and the leader is read as a member.Follow says. What a stream brings goes through a relay.Intake,
// and what they show is what the relay's own HTTP handler writes. A handler that serves a watch runs as a coroutine
// (tap): it waits in its timer, and the clock is the simulator's. Models are the cloud, the Leases, the links, the
// clients, and what drives these machines over them: feeder, follow and hear. What the feeder sees of the cloud's
// history is simulated, and so is the choice of a leader hub (survey). A quarter of the pools has leader hubs and no
// coordinator.
//
// # What happens
//
// A Loop holds what is to happen, in order of time. All chance comes from its one source: nothing reads a clock, ranges
// over a map or starts a goroutine that runs beside it. Do executes a command, and Chance draws one:
//
//	write|delete|recreate OBJECT
//	cloud restart|kill|start|forget              restart and forget empty the watch cache: 410 for the one that resumes
//	                                             from
//	                                             before
//	cloud restore N                              another history begins where this one was N versions ago
//	coordinator kill|start|start-empty|freeze|thaw   start-empty: its disk is lost
//	hub HUB kill|start|start-empty|stop|freeze|thaw|clock TIME
//	hub HUB bar|busy|admit                       the cloud answers it 403, or 429, or no longer does
//	hub HUB doubt|trust                          the cloud contradicts what the leader feeds it, or no longer does
//	link HUB cloud|coordinator open|stall|lose [up|down]   stall: arrives when the link is open again; lose: never
//	link HUB cloud|coordinator slow|fast|reset|drop        drop: broken, and nobody is told
//	client CLIENT HUB|cloud                      goes on there, at the version that it has
//	client CLIENT cut N                          loses its connection behind the next N events
//	unread [HUB]                                 its clients, or all, go on at the cloud until all is healed; what nobody
//	                                             reads is given up
//	blackout                                     all links to the cloud lose, all hubs and the coordinator are killed
//	heal                                         ends all faults, and starts what is down
//
// # What must hold
//
// After each step: one effective feed (who is read holds the Lease, terms never go back); no relay goes back; no hub
// leaves the pool's cache for the cloud before its grace period is over, unless it leads, is a leader hub or doubts the
// leader; a client sees no event twice, out of order or with a wrong type, no content that never was, no empty list
// after a full one, and no older list from the same process; at each list and bookmark its state is the cloud's at that
// version: no ghost, nothing missing. Once all is healed, within heals (schedule_test.go): exactly one hub leads,
// everybody is fresh and fed from where they should be, and all clients hold what the cloud does.
//
// A cloud that is restored begins an era. A relay never goes back to an earlier one, and a client is held against the
// era of what it listed: it must be told by 410 before it is shown anything of another. That a hub finds out is taken
// for granted (package source tests how); what is tested is what follows, in whatever order. What Weir does not promise
// is kept out: see agreed, uncounted and Client.lost.
//
// Not modelled yet: more resources than one, the metadata list after 410, and the compressed stream that a leader keeps
// beside its short watches. TestInputsAreReached lists each input that this leaves at one value.
//
// testdata holds schedules written by hand, with their traces; -update rewrites these.
//
// What guards the same thing twice is not told apart: a random schedule does not fail if the fence alone is broken,
// because a coordinator whose leader changes leaves its connection as well. The tests of each part are for that.
package virtual
