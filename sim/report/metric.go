package report

import (
	"maps"
	"slices"
	"strings"
)

// Metric documents one number of Outcome.Metrics. Names and meanings are stable.
type Metric struct {
	Name string
	Unit Unit
	Doc  string
}

// Metrics returns the metrics that scenarios report, in the order in which they are shown. A scenario may
// report others too; those are shown after these, without a description.
func Metrics() []Metric {
	return []Metric{
		{"pool_bytes_ratio", UnitRatio, "bytes of class pool over the uplink with Weir ÷ those of the reference"},
		{"churn_bytes_ratio", UnitRatio, "pool_bytes_ratio of the time in which objects change"},
		{
			"bytes_per_change", UnitBytes,
			"bytes of class pool from the cloud in the time in which objects change, with Weir, TLS included ÷ versions of " +
				"objects that the cloud was given in that time, for each pool",
		},
		{
			"bytes_per_change_alone", UnitBytes,
			"the same while one object changes in a second: no other change is sent with it, and what is said in that second " +
				"without a change counts, too",
		},
		{"total_bytes_ratio", UnitRatio, "all bytes over the uplink with Weir, both ways, ÷ those of the reference"},
		{"stock_bytes_ratio", UnitRatio, "all bytes over the uplink without Weir, both ways, ÷ those of the reference"},
		{"cloud_bytes_down", UnitBytes, "bytes from the cloud to the pool with Weir"},
		{"cloud_bytes_up", UnitBytes, "bytes from the pool to the cloud with Weir"},
		{
			"cache_ready_seconds", UnitSeconds,
			"from the start of the pool until its cache was synced and fresh for all resources",
		},
		{"stock_catch_up_seconds", UnitSeconds, "how much longer than Weir the stock way took to deliver everything"},
		{"client_relists", UnitCount, "lists that clients had to repeat, with Weir"},
		{"client_relists_min", UnitCount, "the fewest lists that a stream of a client had to repeat, with Weir"},
		{"client_relists_max", UnitCount, "the most lists that a stream of a client had to repeat, with Weir"},
		{"watch_violations", UnitCount, "breaks of the promises of list and watch that clients saw, with Weir"},
		{
			"merged_changes", UnitCount,
			"versions of objects that clients were not shown one by one, with Weir, by stream of a client: they were shown a " +
				"list instead, or a later version of the same object; 20 clients that list once after ten changes make 200",
		},
		{"coordinator_rss_anon_bytes", UnitBytes, "anonymous memory (RssAnon) of the coordinator, largest reading"},
		{"coordinator_rss_bytes", UnitBytes, "resident memory (VmRSS) of the coordinator, largest reading"},
		{"hub_rss_anon_bytes_max", UnitBytes, "anonymous memory (RssAnon) of a hub, largest reading of all"},
		{"hub_rss_bytes_max", UnitBytes, "resident memory (VmRSS) of a hub, largest reading of all"},
		{"failovers", UnitCount, "leader changes that were caused and measured"},
		{"failover_seconds_p50", UnitSeconds, "leader lost → a marker written afterwards reached every client, median"},
		{"failover_seconds_p99", UnitSeconds, "the same, 99th percentile"},
		{
			"failover_detect_seconds_p99", UnitSeconds,
			"part of it: until the coordinator had taken the lead from the lost leader, 99th percentile",
		},
		{"failover_elect_seconds_p99", UnitSeconds, "part of it: from then until another hub led, 99th percentile"},
		{
			"failover_resume_seconds_p99", UnitSeconds, "part of it: from then until the marker was everywhere, 99th percentile",
		},
		{
			"recovery_seconds_max", UnitSeconds,
			"a fault, or its end → a marker written afterwards reached every client that can be served, longest",
		},
		{
			"fresh_seconds_max", UnitSeconds,
			"a fault's end → every cache of the pool, on all nodes, held what was written then, longest",
		},
		{
			"catch_up_bytes_share", UnitRatio,
			"bytes of class pool from a fault until all was as before ÷ (the changes of that time, uncompressed, and one " +
				"list, gzipped), worst",
		},
		{
			"link_load_share", UnitShare,
			"the changes from a fault until all was as before, uncompressed ÷ what the link carries in that time, most",
		},
		{
			"failover_cloud_bytes", UnitBytes,
			"bytes of class pool that a fault caused until it was healed, beyond the changes themselves, worst",
		},
		{
			"new_cloud_connections", UnitCount,
			"connections to the cloud that were opened from a fault until it was healed, all faults",
		},
		{"new_pool_connections", UnitCount, "those of class pool among them"},
		{
			"grace_seconds_min", UnitSeconds,
			"from a fault until a new connection of class pool brought the cloud its first byte, shortest of all faults " +
				"that had one",
		},
		{
			"late_markers", UnitCount,
			"markers, written at a fault or its end, that did not reach every client that can be served within two minutes",
		},
		{"stale_seconds_max", UnitSeconds, "longest time for which a served cache was not known to be fresh, once all were"},
		{
			"jitter_nodes", UnitCount,
			"nodes that left a cache that was gone for the cloud. Their window ends when the cache is back",
		},
		{"jitter_first_seconds", UnitSeconds, "from the loss of the cache to the first of them"},
		{"jitter_seconds", UnitSeconds, "from the first of them to the last"},
		{
			"jitter_changes_ratio", UnitRatio,
			"bytes of class pool of these nodes in the window ÷ (bytes of the changes in it, as plain protobuf × the nodes)",
		},
		{"jitter_peak_ratio", UnitRatio, "the second of the window with most bytes ÷ its mean"},
		{
			"jitter_stock_ratio", UnitRatio,
			"the same bytes if every node listed again and then watched, as stock does, ÷ (bytes of the changes × the nodes)",
		},
		{
			"lie_found_seconds", UnitSeconds, "from what a leader forged until the first hub said that the cloud contradicts it",
		},
		{"lie_deposed_seconds", UnitSeconds, "from what a leader forged until another node led"},
		{"misled_clients", UnitCount, "clients that saw what a leader forged"},
		{"misled_clients_left", UnitCount, "those that show it in the end"},
		{
			"revoked_seconds_max", UnitSeconds,
			"from the deletion of a Node, or the pool's first contact after it, until coordinator, hubs and kube-apiserver " +
				"refused all that was granted, open streams included, longest",
		},
		{
			"revoked_probes", UnitCount,
			"requests and streams of the node that were granted before and refused afterwards, least of all deletions",
		},
		{
			"revoked_again", UnitCount,
			"what coordinator and hubs granted to a node that was deleted, after the cloud was restored from a backup in " +
				"which it is not",
		},
		{"revoked_beside_relists", UnitCount, "lists that clients had to repeat on nodes that were not deleted"},
		{"returned_seconds_max", UnitSeconds, "from a Node that was made again until its hub led or followed, longest"},
		{"forged_requests", UnitCount, "requests for certificates that are not the node's own"},
		{"forged_controls", UnitCount, "requests beside them that are, and were signed"},
		{
			"forged_wrong", UnitCount,
			"those of the first that were signed, or refused for another reason than their own, and those of the second " +
				"that were not",
		},
		{
			"offline_lists", UnitCount,
			"clients that were started while the cloud was away and all machines of the pool had lost power, and got " +
				"a full state",
		},
		{"offline_lists_missing", UnitCount, "those that got none, of hubs that kept their disks"},
		{"offline_refills", UnitCount, "parts that had lost their disks and held all caches again while the cloud was away"},
		{"offline_refills_missing", UnitCount, "those that did not"},
		{
			"offline_refill_seconds_max", UnitSeconds,
			"from when the machines had power again until the last of those that did had all caches",
		},
		{
			"offline_age_understated_seconds_max", UnitSeconds,
			"by how much the age that was told was less than the time since the cut, most",
		},
		{"offline_age_overstated_seconds_max", UnitSeconds, "by how much it was more, most"},
		{
			"wrong_evictions", UnitCount,
			"pods that were evicted with Weir though their node was alive, or earlier than the policy of a silent pool says",
		},
		{
			"missed_evictions", UnitCount,
			"pods that were not evicted with Weir though their node was dead, or the policy of a silent pool says so",
		},
		{"stock_evictions", UnitCount, "pods that stock Kubernetes evicted from the pool in the same course of events"},
		{
			"not_ready_while_delegated", UnitCount,
			"times that a node was not Ready in the cloud though it was alive and a hub of its pool was connected long enough",
		},
		{"stock_not_ready", UnitCount, "times that a node of the pool was not Ready with stock Kubernetes"},
		{
			"late_heartbeats", UnitCount,
			"gaps between heartbeats at the cloud longer than a Lease lasts, of nodes that were alive, with Weir; time in " +
				"which no hub of the pool could reach the cloud is taken off",
		},
		{
			"store_reads", UnitCount,
			"reads that hubs answered from their stores since the first fault, of hubs that run in the end, since their start",
		},
		{"kept_heartbeats", UnitCount, "heartbeats that hubs did not pass to the cloud since the first fault, likewise"},
		{"failed_calls", UnitCount, "calls of a Service from within the pool that failed, with Weir"},
		{
			"late_failed_calls", UnitCount,
			"those of them that began when all pods had been at their addresses for five seconds",
		},
		{"stock_failed_calls", UnitCount, "calls of a Service from within the pool that failed, with stock Kubernetes"},
		{"calls", UnitCount, "calls of a Service from within the pool, with Weir"},
		{
			"heartbeat_bytes_per_second", UnitCount,
			"bytes of class heartbeat over the uplink before anything is cut, both ways: of nodes and of the pool",
		},
		{"heartbeat_bytes_per_minute", UnitBytes, "the same in a minute, of the whole pool"},
		{
			"quiet_received_bytes_per_second", UnitCount,
			"bytes a second from the cloud for each node of the pool, with Weir, before the first fault",
		},
		{"stock_quiet_received_bytes_per_second", UnitCount, "the same with stock Kubernetes"},
		{
			"quiet_bytes_per_node_second", UnitCount,
			"bytes a second of each node of the pool over the uplink, both ways, with Weir, before the first fault",
		},
		{"stock_quiet_bytes_per_node_second", UnitCount, "the same with stock Kubernetes"},
		{"quiet_bytes_ratio", UnitRatio, "the former ÷ the latter"},
		{
			"quiet_connections_per_node", UnitCount,
			"connections to the cloud that each node of the pool has open, with Weir, before the first fault",
		},
		{"stock_quiet_connections_per_node", UnitCount, "the same with stock Kubernetes"},
		{"update_bytes", UnitBytes, "bytes of the pool over the uplink, both ways, with Weir, while its pods are replaced"},
		{"stock_update_bytes", UnitBytes, "the same with stock Kubernetes"},
		{"node_bytes_ratio", UnitRatio, "the former ÷ the latter"},
		{
			"stock_shareable_bytes", UnitBytes,
			"bytes of reads that are the same on each node, with stock Kubernetes, from the quiet time to the last replaced pod",
		},
		{"saved_bytes", UnitBytes, "the same less what the pool took for them with Weir, by what crossed the uplinks"},
		{"saved_bytes_told_ratio", UnitRatio, "what hubs say to have saved in that time ÷ what they did"},
		{
			"join_bytes", UnitBytes,
			"bytes over the uplink of a node that joins the pool with an empty disk, both ways, with Weir, in its first minute",
		},
		{"stock_join_bytes", UnitBytes, "the same with stock Kubernetes"},
		{"join_bytes_ratio", UnitRatio, "the former ÷ the latter"},
		{
			"delegation_bytes_per_second", UnitCount,
			"bytes of class heartbeat over the uplink while heartbeats are delegated, both ways",
		},
		{
			"detect_seconds_max", UnitSeconds,
			"from the cut of a node until its first delegated heartbeat reached the cloud, longest",
		},
		{
			"eviction_later_seconds_max", UnitSeconds,
			"by how much longer than stock Kubernetes it took until the pods of dead nodes were evicted",
		},
		{
			"marks_missing", UnitCount,
			"nodes that were cut off for long and that the cloud did not show as such, by taint and condition",
		},
		{
			"offline_reads_served", UnitCount,
			"lists of a node's pods, one a second, that its hub answered in full while the cloud was away",
		},
		{"offline_reads_refused", UnitCount, "the same that it refused, with a reason"},
		{"wrong_answers", UnitCount, "the same with a pod missing, or with neither a list nor a reason"},
		{
			"damage_found", UnitCount, "rows and files of hubs' stores, and waiting writes, that were found damaged and dropped",
		},
		{
			"collections_refetched_share", UnitShare,
			"collections that hubs could serve without the cloud in the end ÷ those before the faults, least of all hubs",
		},
		{"pods_apart", UnitCount, "pods of which the cloud did not say in the end what their machine said of them"},
		{
			"taken_writes", UnitCount,
			"writes of statuses of nodes and pods, and of Events, that hubs took from a client that writes none of them twice",
		},
		{
			"lost_writes", UnitCount,
			"those of them that the cloud did not have in the end; statuses count once for each object",
		},
		{"doubled_writes", UnitCount, "statuses that went back to what they were before, or came twice"},
		{
			"pods_back_seconds", UnitSeconds,
			"from the start of a kubelet, hub or machine without the cloud until all containers ran again, longest",
		},
		{"pods_back_stock_seconds", UnitSeconds, "the same of a connected stock kubelet"},
		{"pods_back_later_seconds", UnitSeconds, "how much longer it took with Weir and without the cloud"},
		{
			"moved_seconds_p99", UnitSeconds,
			"a pod's container runs at another address than before → each client on another node is shown this address and " +
				"no other, and was answered by the pod if it calls it by its Service's name, 99th percentile of these pods, with " +
				"Weir",
		},
		{
			"stock_moved_seconds_p99", UnitSeconds,
			"the same with stock Kubernetes, from when the pod's machine is switched on: its kubelet starts no container " +
				"without the cloud",
		},
		{"moved_pods", UnitCount, "times that a pod had another address than before, after its machine was switched on"},
		{
			"wrong_routes", UnitCount,
			"clients that were shown a pod as ready at an address that is not its own, longer than ten seconds after the pod " +
				"had another one, by pod",
		},
		{
			"routes_back", UnitCount,
			"clients that were shown another address of a pod again, after the right one, by pod",
		},
		{
			"wrong_versions", UnitCount,
			"EndpointSlices that clients were shown at a version of the cloud's with other endpoints, at a version above all " +
				"of the cloud's, or at an earlier version of the cloud's again",
		},
		{
			"calls_to_dead", UnitCount,
			"clients that were shown a pod as ready whose machine had had no power for more than forty seconds, by pod",
		},
		{
			"first_offline_answer_seconds", UnitSeconds,
			"from the start of a hub without the cloud until it listed the pods of its node, longest",
		},
		{
			"agreed_seconds", UnitSeconds,
			"from the return of the link until the cloud said of all pods what their machines said, longest",
		},
		{"deleted_left", UnitCount, "pods that the cloud deleted while it was away and that were there in the end"},
		{"store_bytes", UnitBytes, "size of a hub's store in the end, largest"},
		{"disk_bytes_written", UnitBytes, "what all hubs wrote to their disks"},
		{"refused_attempts", UnitCount, "attempts to read that a hub refused without the cloud"},
		{"allowed_attempts", UnitCount, "attempts to read that a hub allowed without the cloud"},
		{"wrong_attempts", UnitCount, "of both, those that should have ended otherwise"},
		{
			"return_peak_ratio", UnitRatio,
			"the busiest second of the uplink after the link returned ÷ what the link carries in a second",
		},
		{"joined_nodes", UnitCount, "nodes that were Ready in the end"},
		{"marks_left", UnitCount, "nodes that were back and still shown as cut off, or not Ready, in the end"},
		{"rotated_certificates", UnitCount, "certificates that hubs renewed once all caches were there"},
		{"rotated_members", UnitCount, "hubs and coordinators that trust the pool's next authority in the end, and no other"},
		{
			"hub_restarts", UnitCount,
			"hubs whose process was another one in the end than when all caches were there, without those of machines that " +
				"lost their power",
		},
		{
			"moved_relists", UnitCount,
			"lists that clients had to repeat on nodes that never lost their power; those of the others would begin " +
				"again with " +
				"their machine",
		},
		{
			"moved_seconds_max", UnitSeconds,
			"from when the coordinator was to be elsewhere, or its machine had lost its power, until all hubs read it " +
				"there, longest",
		},
		{
			"dropped_streams", UnitCount,
			"streams of clients that ended from then on, and relays of hubs that listed, compared or changed their source: " +
				"more than a resume repairs",
		},
		{
			"failed_requests", UnitCount,
			"requests that a client of each node sent twice a second while the authority was replaced, and that failed",
		},
		{
			"late_certificates", UnitCount,
			"times that a hub or a coordinator let a certificate count, to read, that had ended while the cloud was away",
		},
		{"late_leaders", UnitCount, "times that a hub was seen to lead with a certificate that had ended"},
		{
			"applied_seconds_max", UnitSeconds,
			"from a change of an object that says what a pool is until all its hubs went by it, longest",
		},
		{
			"relay_lists", UnitCount,
			"times that a relay of a hub was refilled since all caches were there, by a list or by comparing",
		},
		{
			"delta_mismatches", UnitCount,
			"differences that relays were told, and that were to an object which the reader did not hold",
		},
		{
			"gate_connections", UnitCount,
			"connections of class pool over the uplinks that end at weir-gate, most at one time, from when all caches were " +
				"there until the first fault or the end",
		},
		{
			"cloud_watches", UnitCount,
			"watches that all pools with Weir have open at kube-apiserver, by its own metric; nodes that did not run are " +
				"multiplied. Most at one time, if an object changes",
		},
		{"stock_cloud_watches", UnitCount, "the same of the clients of as many nodes without Weir"},
		{
			"cloud_connections", UnitCount,
			"connections that the nodes of all pools with Weir have open to kube-apiserver; nodes that did not run " +
				"are multiplied",
		},
		{"stock_cloud_connections", UnitCount, "the same of the clients of as many nodes without Weir"},
		{"follower_watches", UnitCount, "watches at kube-apiserver that one more node of a pool with Weir opens"},
		{"follower_connections", UnitCount, "connections to kube-apiserver that one more node of a pool with Weir opens"},
		{"multiplied_share", UnitShare, "nodes that did not run and were multiplied, of all"},
		{
			"image_bytes_ratio", UnitRatio,
			"bytes of class image over the uplink, both ways, with Weir ÷ what one pull of the image brings to a machine",
		},
		{"stock_image_bytes_ratio", UnitRatio, "the same of nodes that pull straight from the registry"},
		{
			"image_seconds", UnitSeconds,
			"from the beginning of the first pull until the last node had the image, with Weir; not measured if a node did " +
				"not get it",
		},
		{"stock_image_seconds", UnitSeconds, "the same of nodes that pull straight from the registry"},
		{"image_seconds_ratio", UnitRatio, "the former ÷ the latter"},
		{"image_nodes", UnitCount, "nodes that have the image in the end, with Weir"},
		{"stock_image_nodes", UnitCount, "nodes that have it when they pull straight from the registry"},
		{"image_nodes_offline", UnitCount, "nodes that got the image while the uplink of the pool was cut, with Weir"},
		{"stock_image_nodes_offline", UnitCount, "the same of nodes that pull straight from the registry"},
		{
			"cache_wait_seconds", UnitSeconds,
			"from a change in the cloud until the last node of the pool saw it, at most, while nodes pulled an image, with " +
				"Weir; less the time in which a node was off or cut off",
		},
		{"stock_cache_wait_seconds", UnitSeconds, "the same of nodes without Weir"},
		{"resync_bytes_share", UnitShare, "bytes to catch up after 410 ÷ one gzipped full list"},
	}
}

// reported returns the metrics that any of outcomes has: the documented ones in their order, then the others by name.
func reported(outcomes ...Outcome) []Metric {
	names := map[string]bool{}
	for _, o := range outcomes {
		for name := range o.Metrics {
			names[name] = true
		}
	}
	var list []Metric
	for _, m := range Metrics() {
		if names[m.Name] {
			list = append(list, m)
			delete(names, m.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list = append(list, Metric{Name: name, Unit: guessUnit(name)})
	}
	return list
}

// guessUnit reads the unit of a metric that is not documented from the end of its name.
func guessUnit(name string) Unit {
	switch {
	case strings.HasSuffix(name, "_ratio"):
		return UnitRatio
	case strings.HasSuffix(name, "_share"):
		return UnitShare
	case strings.Contains(name, "_bytes"):
		return UnitBytes
	case strings.Contains(name, "_seconds"):
		return UnitSeconds
	}
	return UnitCount
}

// FormatMetric writes a value of the metric for a person, as the reports do: for Expectation.Got and Want.
func FormatMetric(name string, v float64) string {
	for _, m := range Metrics() {
		if m.Name == name {
			return m.Unit.Format(v)
		}
	}
	return guessUnit(name).Format(v)
}
