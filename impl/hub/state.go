package hub

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/role"
)

// state exports what the parts of a hub hold.
type state struct{ *Hub }

var expiry = prometheus.NewDesc("weir_certificate_expiry_timestamp_seconds",
	"When a certificate of this process ends, by kind; absent while there is none.", []string{"kind"}, nil)

// Describe implements prometheus.Collector.
func (s state) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector.
func (s state) Collect(ch chan<- prometheus.Metric) {
	h := s.Hub
	// names and values of labels in turn.
	send := func(kind prometheus.ValueType, name, help string, v float64, labels []string) {
		var names, values []string
		for i := 0; i < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc("weir_hub_"+name, help, names, nil), kind, v, values...)
	}
	gauge := func(name, help string, v float64, labels ...string) {
		send(prometheus.GaugeValue, name, help, v, labels)
	}
	counter := func(name, help string, v float64, labels ...string) {
		send(prometheus.CounterValue, name, help, v, labels)
	}
	for _, c := range h.certificates(h.serving.cert) {
		ch <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(c.Cert.Leaf.NotAfter.Unix()),
			string(c.Kind))
	}
	user, _ := h.atCloud.Is()
	gauge("own_user", "1 while the hub reads at the cloud as a user of its own, 0 while it does so as its node.",
		number(user == h.atCloud.Name))
	for _, server := range h.cloud.Status() {
		gauge("cloud_server_healthy", "1 while a cloud server answers.", number(server.Healthy), "server", server.Server)
		gauge("cloud_server_ready", "1 while a cloud server answers, and does not say that it is not ready (/readyz).",
			number(server.Ready()), "server", server.Server)
	}
	for _, c := range uplink.Counted {
		b := h.cloud.Bytes(c)
		for direction, n := range map[string]int64{"down": b.Down, "up": b.Up} {
			counter("cloud_bytes_total", "Bytes to and from the cloud, TLS included, by class of traffic.", float64(n), "class",
				string(c), "direction", direction)
		}
		counter("cloud_connections_total", "Connections opened to the cloud, by class of traffic.", float64(b.Connections),
			"class", string(c))
	}
	gauge("waiting_requests", "Requests of callers that wait for one of their caller's ways to the cloud.",
		float64(h.door.Gate.Waiting()))
	gauge("authorization_cache_size", "Verdicts remembered.", float64(h.door.Authorizer.Size()))
	gauge("authorization_unsaved", "Changes of who may read without the cloud that are not on the disk yet.",
		float64(h.judge.Unsaved()))
	gauge("authorization_doubts", "Denials that may be ones in passing, which the cloud is asked about again.",
		float64(h.judge.Doubts()))
	for _, f := range h.sources.All() {
		st := f.Status()
		name := f.Resource
		counter("relay_source_switches_total", "Changes of a relay's source.", float64(st.Switches), "resource", name)
		for cause, n := range st.Lists.All() {
			counter("relay_source_lists_total",
				"Full lists opened to feed a relay, by cause: first, expired (410), history (another one), cheaper.", float64(n),
				"resource", name, "cause", string(cause))
		}
		counter("relay_source_mismatches_total",
			"Differences from the pool that were to an object which the relay does not hold, and came whole.",
			float64(st.Mismatches), "resource", name)
		counter("relay_source_resyncs_total", "Times a relay was compared with its source by metadata, after 410.",
			float64(st.Resyncs), "resource", name)
		counter("relay_source_watches_total", "Watches opened to feed a relay.", float64(st.Watches), "resource", name)
		gauge("relay_denied",
			"1 while the cloud does not give a resource to this hub (404, 403): requests are the cloud's to answer.",
			number(f.Relay.Denied() != nil), "resource", name)
	}
	gauge("cut_off", "1 while heartbeats of this node's kubelet do not reach the cloud.",
		number(h.door.Beats.Status().CutOff))
	pool := h.pool.Status()
	if pool == nil {
		return
	}
	for lacks, resources := range map[string][]string{
		"coordinator": pool.Coordinator.Lacks.Coordinator, "hub": pool.Coordinator.Lacks.Hub,
	} {
		for _, r := range resources {
			gauge("resources_differ", "1 for a resource of --pool-scope-resources that the hub, or the coordinator, lacks.", 1,
				"resource", r, "lacks", lacks)
		}
	}
	counter("pods_address_losses_total",
		"Times something took --pods-address away from this machine. It is put back where the hub may; else pods are led "+
			"to the cloud.", float64(h.pods.Losses()))
	gauge("delegated_nodes",
		"Nodes of the pool that say in the coordinator that they are cut off, as this hub sees it; a leader forwards their "+
			"heartbeats.", float64(pool.Delegation.Nodes))
	gauge("delegated_nodes_unread", "Leases of such nodes that cannot be read: nobody speaks for these nodes.",
		float64(pool.Delegation.Unread))
	counter("heartbeat_forwards_expired_total",
		"Heartbeats of other nodes that this hub, as leader, could not forward in time.", float64(pool.Delegation.Expired))
	if last := pool.Delegation.Last; !last.IsZero() {
		gauge("heartbeat_forward_age_seconds", "Time since this hub last forwarded a heartbeat; absent if it never did.",
			h.clock.Since(last).Seconds())
	}
	if last := h.rollCall.Renewed(); !last.IsZero() {
		gauge("heartbeat_receipt_age_seconds", "Time since the last heartbeat of this node's kubelet of which weir-manager "+
			"has signed that it has renewed the Lease for it; absent if there is none.", h.clock.Since(last).Seconds())
	}
	snap := h.self.Snapshot()
	for _, r := range []role.Role{role.Pending, role.Follower, role.Leader} {
		gauge("role", "1 for the role that the hub has now.", number(r == snap.Role), "role", r.String())
	}
	for outcome, n := range map[string]int64{
		"tried": pool.Coordinator.Elections.Tried, "won": pool.Coordinator.Elections.Won,
	} {
		counter("elections_total", "Elections that this hub tried to win, and those it won.", float64(n), "outcome", outcome)
	}
	gauge("term", "Lease version of the hub's leadership, 0 if it does not lead.", float64(snap.Term.Version))
	gauge("coordinator_ready", "1 while the pool's cache is fresh.", number(snap.Ready))
	gauge("leader_fresh",
		"1 while a leader's streams from the cloud are fresh, and what they brought arrived at the coordinator.",
		number(pool.Fresh))
	gauge("coordinator_healthy", "1 while the coordinator answers.", number(pool.Coordinator.Healthy))
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
