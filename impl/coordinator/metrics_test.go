package coordinator

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
)

// TestMetricsLint: what a coordinator tells of itself is named by the conventions of Prometheus.
func TestMetricsLint(t *testing.T) {
	r, err := relay.New(relay.Config{
		Resource: relay.Resource{Version: "v1", Resource: "services", Kind: "Service", Singular: "service", Namespaced: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	kept := prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_kept", Help: "Stands for what is kept on the disk."})
	m := newMetrics("harbour", scope.NewSet(r).All, kept, func(*relay.Relay) error { return errors.New("not synced") })
	m.freed.WithLabelValues("broken").Inc()
	m.refilled.WithLabelValues("services", "edge-1").Inc()
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(m.registry, "weir_build_info", "weir_member_info", "weir_coordinator_ready",
		"weir_relay_synced"); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
