package report

import (
	"regexp"
	"strings"
)

// points are sentences that say in words what a run measured. A name in braces is the value of that metric. The first
// counts whose metrics were all measured, and of which an expectation names one.
func points() []string {
	return []string{
		"Of {calls} calls {failed_calls} failed with Weir, {stock_failed_calls} with stock Kubernetes.",
		"A quiet node exchanged {quiet_bytes_per_node_second} bytes a second with the cloud, with stock Kubernetes " +
			"{stock_quiet_bytes_per_node_second}: {quiet_bytes_ratio} times as many.",
		"What a leader forged was found within {lie_found_seconds}, and another one led within {lie_deposed_seconds}. " +
			"Clients that were misled: {misled_clients}, in the end {misled_clients_left}.",
		"Stock Kubernetes evicted {stock_evictions} of the pods. Weir evicted {wrong_evictions} by mistake, and missed " +
			"{missed_evictions}.",
		"Services led to {moved_pods} moved pods within {moved_seconds_p99}, with stock Kubernetes within " +
			"{stock_moved_seconds_p99} (99th percentile).",
		"Services led to {moved_pods} moved pods within {moved_seconds_p99} (99th percentile).",
		"Nodes that got the image while the uplink was cut: {image_nodes_offline}, with stock Kubernetes " +
			"{stock_image_nodes_offline}.",
		"For {image_nodes} nodes the image crossed the uplink {image_bytes_ratio} times, with stock Kubernetes " +
			"{stock_image_bytes_ratio} times.",
		"For {image_nodes} nodes the image crossed the uplink {image_bytes_ratio} times.",
		"Watches at kube-apiserver: {cloud_watches}, with stock Kubernetes {stock_cloud_watches}.",
		"After each of {failovers} leader changes all clients were current again within {failover_seconds_p99} (99th " +
			"percentile).",
		"Pods were back {pods_back_later_seconds} later than with the cloud and without Weir.",
		"Of {taken_writes} writes without the cloud {lost_writes} were lost.",
		"{collections_refetched_share} of what damaged disks had lost was there again.",
		"Without the cloud {offline_lists} clients that started got a full state, and {offline_lists_missing} did not.",
		"Certificates were renewed, and {dropped_streams} streams of clients ended by it.",
		"All hubs read the coordinator at its new place within {moved_seconds_max}. They listed {moved_relists} times for " +
			"it.",
		"What was changed of a pool was applied by all its hubs within {applied_seconds_max}.",
		"A node that was removed was refused everywhere within {revoked_seconds_max}.",
		"All was current again within {recovery_seconds_max}. Lists that clients repeated: {client_relists}.",
	}
}

var inBraces = regexp.MustCompile(`\{([a-z0-9_]+)\}`)

// point says in one sentence, or two, what the run is about. Empty: no expectation has such a sentence.
func (r Result) point() string {
	units := map[string]Unit{}
	for _, m := range Metrics() {
		units[m.Name] = m.Unit
	}
	for _, text := range points() {
		measured, named := true, false
		said := inBraces.ReplaceAllStringFunc(text, func(braced string) string {
			name := strings.Trim(braced, "{}")
			value, ok := r.metric(name, units[name])
			measured = measured && ok
			named = named || r.expects(name)
			return value
		})
		if measured && named {
			return said
		}
	}
	return ""
}
