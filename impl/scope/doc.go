// Package scope starts and stops the relays of a process while it runs: it starts those of the resources that the
// pool's configuration names, and stops the others.
//
// Everything else goes on: no stream of another resource ends, and nobody lists another resource again.
//
//   - What is added comes late (relay.Config.Late): nobody waits for it, and its clients are answered by the cloud
//     until it holds something.
//   - What is removed is retired (relay.Relay.Retire): its watches end in order, and its clients go on at the cloud, by
//     version.
//   - A custom resource needs its kind. If the directory does not tell it, the cloud is asked (Find), and the directory
//     told. One that the cloud does not know is told once, in the log, in Status and in a metric. It is asked for
//     again, later each time, and disturbs nothing.
//
// A Scope owns what runs for each relay: the relay, and what feeds it. New starts nothing. Run blocks until its context
// ends, and what it started has ended.
package scope
