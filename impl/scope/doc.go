// Package scope starts and stops the relays of a process while it runs. The pool's configuration names the resources
// that may be relayed. One of them is relayed while somebody reads it, and Config.Linger longer, so that a reader which
// restarts finds it.
//
// At each hop the next one is a reader. A hub has clients of its node, the coordinator has hubs, and the leader's hub
// has the coordinator beside its own clients. So what nobody reads crosses no link, and what is read crosses it once.
//
//   - What begins is late (relay.Config.Late): nobody counts on it until it holds something. Its clients wait a moment,
//     or are answered by the cloud.
//   - What ends is retired (relay.Relay.Retire): its watches end in order, and its clients go on at the cloud, by
//     version. Nothing ends for want of readers while the source is away: it could not come back.
//   - What goes on is left alone: no stream of another resource ends, and nobody lists another resource again.
//   - A custom resource needs its kind. If the directory does not tell it, the cloud is asked (Find), and the directory
//     told. One that the cloud does not know is told once, in the log, in Status and in a metric. It is asked for
//     again, later each time, and disturbs nothing.
//
// A Scope owns what runs for each relay: the relay, and what feeds it. New starts nothing. Run blocks until its context
// ends, and what it started has ended.
package scope
