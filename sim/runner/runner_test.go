package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// TestSmallPool runs a whole scenario: real control plane, hubs, coordinator, clients, judge and report.
func TestSmallPool(t *testing.T) {
	s, err := scenario.Parse("small.yaml", []byte(`
name: small
description: Two nodes, few objects.
seed: 7
topology:
  pool: {name: quay, nodes: 2, uplink: {rate: 20Mbit/s, rtt: 20ms}, coordinators: 1}
workload: {services: 8, endpoints: 30, changes: 40, changesPerSecond: 20}
clients: [kube-proxy, coredns, json, kubectl]
expectations:
  - watch_violations == 0
  - client_relists == 0
  - pool_bytes_ratio <= 1.25
  - stock_bytes_ratio >= 2
`))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	logs := filepath.Join(dir, "logs")
	res, err := Run(t.Context(), s, Options{
		Runtime: &runtime.Local{LogDir: logs}, Dir: dir, Repeat: "go test ./sim/runner",
		Progress: func(m string) { t.Log(m) },
	})
	if err != nil || !res.Passed {
		for _, name := range []string{"hub-quay-1.log", "coordinator-quay.log"} {
			b, _ := os.ReadFile(filepath.Join(logs, name))
			t.Logf("%s:\n%s", name, b)
		}
		t.Fatalf("%v\n%+v\n%+v", err, res.Expectations, res.Violations)
	}
	if err := report.Write(dir, res); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"summary.md", "report.html", "result.json", "timeline.jsonl"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(b) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	// One hub feeds the pool; the others read nothing of class pool from the cloud.
	fed := map[string]bool{}
	for _, row := range res.Bytes {
		if row.Way == report.WayWeir && row.Class == "pool" && row.Bytes > 0 {
			fed[row.Node] = true
		}
	}
	if len(fed) != 1 {
		t.Errorf("bytes of class pool at %v, want one node", fed)
	}
	wanted, err := cloud.Choose("")
	minor, _, _ := strings.Cut(strings.TrimPrefix(wanted.String(), "v1."), ".") // an installed one may be of another patch
	if got := res.Versions["kube-apiserver"]; err != nil || !strings.HasPrefix(got, "v1."+minor+".") {
		t.Errorf("the report says kube-apiserver %q, want %s: %v", got, wanted, err)
	}
	if m := res.Metrics; m["hub_rss_anon_bytes_max"] == 0 || m["coordinator_rss_anon_bytes"] == 0 ||
		m["cache_ready_seconds"] == 0 {
		t.Errorf("metrics are missing: %v", strings.Join(strings.Fields(strings.TrimSpace(res.Scenario)), " "))
	}
}

// TestTwoPools: two pools of different size over links of their own, each with a reference and a stock way beside it. A
// fault happens to one, and the other does not notice; sums are over both.
func TestTwoPools(t *testing.T) {
	s, err := scenario.Parse("two.yaml", []byte(`
name: two
seed: 7
topology:
  pools:
    - {name: quay, nodes: 2, uplink: {rate: 20Mbit/s, rtt: 20ms}}
    - {name: town, nodes: 1, uplink: {rate: 10Mbit/s, rtt: 10ms}}
workload: {services: 8, endpoints: 30, changes: 40, changesPerSecond: 20}
clients: [kube-proxy]
faults:
  - {at: 500ms, action: cut, target: pool, pool: town, link: cloud, for: 1s}
expectations:
  - watch_violations == 0
  - client_relists == 0
`))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	res, err := Run(t.Context(), s, Options{
		Runtime: &runtime.Local{LogDir: filepath.Join(dir, "logs")}, Dir: dir, Progress: func(m string) { t.Log(m) },
	})
	if err != nil || !res.Passed {
		t.Fatalf("%v\n%+v\n%+v", err, res.Expectations, res.Violations)
	}
	for _, way := range []string{report.WayReference, report.WayStock, report.WayWeir} {
		all, sum := res.Bytes.Sum(report.ByteRow{Way: way}), int64(0)
		for _, pool := range []string{"quay", "town"} {
			n := res.Bytes.Sum(report.ByteRow{Way: way, Pool: pool})
			if n == 0 {
				t.Errorf("way %s: no bytes of pool %s", way, pool)
			}
			sum += n
		}
		if sum != all {
			t.Errorf("way %s: %d bytes in all, %d in its pools", way, all, sum)
		}
	}
	nodes, ready := map[string]int{}, map[string]bool{}
	for _, c := range res.Clients {
		nodes[c.Way+" "+c.Node]++
	}
	for _, node := range []string{
		"reference reference-quay-1", "reference reference-town-1", "stock stock-quay-2", "stock stock-town-1", "weir quay-2",
		"weir town-1",
	} {
		if nodes[node] == 0 {
			t.Errorf("no client at %s; there are %v", node, nodes)
		}
	}
	for _, x := range res.Readiness {
		ready[x.Pool+"/"+x.Node] = x.Synced
	}
	for _, of := range []string{"quay/", "quay/quay-2", "town/town-1"} {
		if !ready[of] {
			t.Errorf("nobody tells when the cache of %s was ready: %v", of, ready)
		}
	}
	if _, told := ready["town/"]; told {
		t.Errorf("the coordinator of a pool of one node holds something that nobody reads: %v", ready)
	}
	if len(res.Faults) != 1 || res.Faults[0].Target != "pool town" {
		t.Errorf("faults %+v, want one of pool town", res.Faults)
	}
	for _, word := range []string{"pool quay, kB", "pool town ÷ its reference", "nodes of town"} {
		if !strings.Contains(report.Summary(res), word) {
			t.Errorf("the summary does not tell %q", word)
		}
	}
}
