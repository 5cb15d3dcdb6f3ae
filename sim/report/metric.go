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
		{"total_bytes_ratio", UnitRatio, "all bytes over the uplink with Weir, both ways, ÷ those of the reference"},
		{"stock_bytes_ratio", UnitRatio, "all bytes over the uplink without Weir, both ways, ÷ those of the reference"},
		{"cloud_bytes_down", UnitBytes, "bytes from the cloud to the pool with Weir"},
		{"cloud_bytes_up", UnitBytes, "bytes from the pool to the cloud with Weir"},
		{"cache_ready_seconds", UnitSeconds, "from the start of the pool until its cache was synced and fresh for all resources"},
		{"stock_catch_up_seconds", UnitSeconds, "how much longer than Weir the stock way took to deliver everything"},
		{"client_relists", UnitCount, "lists that clients had to repeat, with Weir"},
		{"client_relists_min", UnitCount, "the fewest lists that a stream of a client had to repeat, with Weir"},
		{"client_relists_max", UnitCount, "the most lists that a stream of a client had to repeat, with Weir"},
		{"watch_violations", UnitCount, "breaks of the promises of list and watch that clients saw, with Weir"},
		{"coordinator_rss_anon_bytes", UnitBytes, "anonymous memory (RssAnon) of the coordinator, largest reading"},
		{"coordinator_rss_bytes", UnitBytes, "resident memory (VmRSS) of the coordinator, largest reading"},
		{"hub_rss_anon_bytes_max", UnitBytes, "anonymous memory (RssAnon) of a hub, largest reading of all"},
		{"hub_rss_bytes_max", UnitBytes, "resident memory (VmRSS) of a hub, largest reading of all"},
		{"failovers", UnitCount, "leader changes that were caused and measured"},
		{"failover_seconds_p50", UnitSeconds, "leader lost → a marker written afterwards reached every client, median"},
		{"failover_seconds_p99", UnitSeconds, "the same, 99th percentile"},
		{"failover_detect_seconds_p99", UnitSeconds, "part of it: until the coordinator had taken the lead from the lost leader, 99th percentile"},
		{"failover_elect_seconds_p99", UnitSeconds, "part of it: from then until another hub led, 99th percentile"},
		{"failover_resume_seconds_p99", UnitSeconds, "part of it: from then until the marker was everywhere, 99th percentile"},
		{"recovery_seconds_max", UnitSeconds, "a fault, or its end → a marker written afterwards reached every client that can be served, longest"},
		{"failover_cloud_bytes", UnitBytes, "bytes of class pool that a fault caused until it was healed, beyond the changes themselves, worst"},
		{"new_cloud_connections", UnitCount, "connections to the cloud that were opened from a fault until it was healed, all faults"},
		{"stale_seconds_max", UnitSeconds, "longest time for which a served cache was not known to be fresh, once all were"},
		{"jitter_nodes", UnitCount, "nodes that left a cache that was gone for the cloud. Their window ends when the cache is back"},
		{"jitter_seconds", UnitSeconds, "from the first of them to the last"},
		{"jitter_changes_ratio", UnitRatio, "bytes of class pool of these nodes in the window ÷ (bytes of the changes in it, as plain protobuf × the nodes)"},
		{"jitter_peak_ratio", UnitRatio, "the second of the window with most bytes ÷ its mean"},
		{"jitter_stock_ratio", UnitRatio, "the same bytes if every node listed anew and then watched, as stock does, ÷ (bytes of the changes × the nodes)"},
		{"offline_lists", UnitCount, "clients that were started while the cloud was away and all machines of the pool had lost power, and got a full state"},
		{"offline_lists_missing", UnitCount, "those that got none, of hubs that kept their disks"},
		{"offline_refills", UnitCount, "parts that had lost their disks and held all caches again while the cloud was away"},
		{"offline_refills_missing", UnitCount, "those that did not"},
		{"offline_age_understated_seconds_max", UnitSeconds, "by how much the age that was told was less than the time since the cut, most"},
		{"offline_age_overstated_seconds_max", UnitSeconds, "by how much it was more, most"},
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
