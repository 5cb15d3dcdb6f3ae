// Package attack runs attacks on a pool, and reports which of them succeed.
//
// An Attack is data: who tries it (Position), what he wants (Goal), what he sends, what has to be answered, and a
// control: the same or
// nearly the same request by somebody who may do it. The control has to succeed, so that a hub that is dead does not
// count as one that
// refuses. A goal outlives the protocol of today: "the pool elects nobody any more" stays when the request that did it
// is gone.
//
// All stand against real processes: a kube-apiserver, hubs and coordinators of the runtime "local" (sim/runtime), with
// real tokens and
// certificates. Each attack has a place, a pool of its own or one that it shares with others that change nothing;
// places are played side
// by side. An attack that needs the cloud to be away has two acts: Before, with the cloud, and the attempt, with the
// uplink cut.
//
// Files: one for each subject (identity, away, exhaustion, coordinator, liar, cloud, disk, stolen, directory, signed,
// gate), and beside it one of what is played (awayplay.go and so on). claimant.go is a hub that leads and lies, and
// gatebombs.go a gate that does. attack.go is what an attack is, stage.go and ground.go where it is played, caller.go
// and raw.go how something is sent, run.go who plays it, write.go the report.
// cb0e56d.json holds what was seen at the revision of the reviews.
//
// Run starts processes and goroutines, and ends them all before it returns.
package attack
