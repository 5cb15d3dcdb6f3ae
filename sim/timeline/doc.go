// Package timeline keeps what happened in a run of a scenario, in order, as JSON lines: the record that
// reports are drawn from and that a person greps when something went wrong.
//
// # Schema
//
// One event is one line, one JSON object. There are no other lines. The schema's name is in the first
// event, which Writer writes by itself:
//
//	{"t":0,"lane":"phase","event":"timeline","str":{"schema":"weir.timeline/1","start":"2026-10-05T09:12:44.1Z"}}
//	{"t":1204511301,"lane":"cache","way":"weir","node":"edge-2","event":"synced","str":{"resource":"endpoints.v1."}}
//
// The fields, of which only t, lane and event are always there:
//
//	t      nanoseconds since the start of the timeline, by a monotonic clock; never less than in the line before
//	lane   what the event is about:
//	         link      bytes, connections and shaping of a link
//	         leader    role, term and election of hubs
//	         cache     a relay: synced, resumed, switched source, stale
//	         client    what a client's list/watch stream saw
//	         workload  writes to the cloud
//	         fault     a fault began or was healed
//	         phase     a way or a phase of the scenario began or ended
//	         proc      a process started, became ready, ended; its memory
//	way    reference, stock or weir: the part of the run it belongs to
//	node   the node, empty for the cloud and for the pool as a whole
//	class  the traffic class: pool, node, heartbeat, control
//	event  the name of what happened, lower case
//	num    numbers by name; a number that JSON cannot write (NaN, infinite) is in str instead
//	str    strings by name
//
// # Promises
//
// Writer is safe for concurrent use. Each event is handed to the operating system by one write before Emit
// returns: nothing waits in memory, so a process that is killed loses no event that it emitted, and a line
// is broken in two only if the kill or a full disk hits that one write. Memory is bounded by the largest
// line (MaxLine). Emit never fails the run it watches: what could not be written is counted and reported
// by Close. Reader accepts a last line that was cut off, and refuses anything else that is not an event,
// with the number of the line.
//
// The package starts no goroutine.
package timeline
