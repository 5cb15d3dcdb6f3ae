// Package testkit has what tests share, and no program has.
//
//	Until, Value  wait for a condition instead of for a time
//	Flash         a disk that loses power and fills up
//	Service       runs a service as systemd does, as far as the service can see it: it hears what the service tells,
//	              keeps its sockets over restarts, and hands them to its next process. It knows units of Type=notify only
//	Loop          runs scheduled events in order, in a time that does not pass by itself: simulations of pools use it
//
// A Service has one goroutine, which reads what is told until Close. Nothing else here starts one.
package testkit
