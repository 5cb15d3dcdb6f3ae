// Package scenario reads scenario files: one pool, its workload and clients, the faults that happen to it and what
// must hold in the end.
//
//	name: pool-cache                # the name of the file without .yaml; names the folder of the report
//	description: What it shows.     # optional; opens the report
//	seed: 20261005                  # decides all content and the order of changes
//	topology:
//	  pool:
//	    name: harbour               # nodes are harbour-1, harbour-2, …
//	    nodes: 5
//	    uplink: {rate: 8Mbit/s, rtt: 60ms}   # or up: and down: instead of rate:
//	    coordinators: 1             # optional; 0: hubs without a coordinator
//	workload:
//	  services: 40
//	  endpoints: 100                # of each Service
//	  quiet: 30s                    # optional; without changes, before they begin
//	  changes: 200                  # of one endpoint each
//	  changesPerSecond: 10
//	clients: [kube-proxy, coredns, json, kubectl]      # of each on every node
//	faults: []                      # optional; none is implemented yet
//	expectations:                   # each is a metric of package report, a comparison and a limit
//	  - pool_bytes_ratio <= 1.02
//	  - coordinator_rss_anon_bytes <= 64MB
//
// The reader is strict: a field that is unknown, there twice, of a wrong type, out of range or in contradiction to
// another is refused, and so is YAML that reads otherwise than it looks (anchors, aliases, several documents). It
// tells all mistakes of all files at once, each with file, line, field, value and what is allowed, as FileErrors; to
// cli.ExitCode they are wrong usage.
//
// The package only reads files: it runs nothing and starts no goroutine.
package scenario
