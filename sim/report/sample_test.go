package report_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/report"
)

// sample is a made-up run of the size and shape of pool-cache, for golden files and for looking at.
func sample(nodes int) report.Result {
	rnd := rand.New(rand.NewPCG(1, 2))
	r := report.Result{
		Outcome: report.Outcome{
			Scenario: "pool-cache",
			Seed:     20261005,
			Passed:   true,
			Metrics: report.Values{
				"cache_ready_seconds": 1.874, "client_relists": 0, "watch_violations": 0,
				"coordinator_rss_anon_bytes": 24.6e6, "coordinator_rss_bytes": 61.2e6,
				"hub_rss_anon_bytes_max": 13.1e6, "hub_rss_bytes_max": 38.9e6,
			},
		},
		Description: "Five edge nodes share an uplink of 8 Mbit/s and 60 ms. kube-proxy, CoreDNS, a JSON client and " +
			"kubectl on every node list and watch the pool-scope resources, once straight from the cloud and once through Weir.",
		Repeat:   "make scenario NAME=pool-cache SEED=20261005",
		Runtime:  "local",
		Started:  time.Date(2026, 10, 5, 9, 12, 44, 0, time.UTC),
		Seconds:  108.4,
		Revision: "3f9c2ab71d05",
		Versions: map[string]string{"kube-apiserver": "v1.37.1", "Go": "go1.26.8", "weir": "v0.1.0"},
		Machine: report.Machine{
			OS: "linux/amd64", Kernel: "6.1.0", CPU: "Intel Xeon @ 2.50GHz", CPUs: 2, MemoryBytes: 8.2e9,
		},
		Topology: []report.Fact{
			{Name: "nodes", Value: float64(nodes)}, {Name: "services", Value: 40}, {Name: "endpoints per service", Value: 100},
			{Name: "endpoint changes", Value: 200}, {Name: "uplink", Value: 8e6, Unit: report.UnitBits},
			{Name: "latency, one way", Value: 0.03, Unit: report.UnitSeconds},
		},
		UplinkBitsPerSecond: 8e6,
	}
	// One full set is about 0.9 MB, each change 25 kB, for the two resources together.
	const first, change, perSecond = 0.92e6, 25.1e3, 4.0
	traffic := func(way string, copies, overhead float64) {
		const churnAt = 20
		var down, up []int64
		backlog := 0.0
		rnd, sums := rand.New(rand.NewPCG(3, 4)), map[report.ByteRow]int64{}
		for s := 0; s < 74 || backlog > 0; s++ {
			phase := "start"
			if s == 1 {
				backlog += first * copies
			}
			if s >= churnAt {
				phase = "churn"
				if s < churnAt+50 {
					backlog += change * copies * (perSecond + rnd.Float64() - 0.5)
				}
			}
			sent := min(backlog, 0.985e6)
			backlog -= sent
			pool := int64(sent)
			control := int64(overhead * (700 + 300*rnd.Float64()))
			down, up = append(down, pool+control), append(up, pool/80+control*2/3)
			for n := range nodes {
				node := fmt.Sprintf("edge-%d", n+1)
				share := pool / int64(nodes)
				if way != report.WayStock {
					share = 0
					if n == 1 {
						share = pool
					}
				}
				count := func(class, direction string, bytes int64) {
					sums[report.ByteRow{Way: way, Class: class, Direction: direction, Phase: phase, Node: node}] += bytes
				}
				count("pool", report.Down, share)
				count("pool", report.Up, share/80)
				count("control", report.Down, control/int64(nodes))
				count("control", report.Up, control*2/3/int64(nodes))
			}
		}
		rows := slices.SortedFunc(maps.Keys(sums), func(a, b report.ByteRow) int {
			return strings.Compare(fmt.Sprint(a.Phase == "churn", a), fmt.Sprint(b.Phase == "churn", b))
		})
		for _, row := range rows {
			row.Bytes = sums[row]
			r.Bytes = append(r.Bytes, row)
		}
		r.Series = append(r.Series,
			report.Series{
				Way: way, Direction: report.Down, Bytes: down,
			}, report.Series{Way: way, Direction: report.Up, Bytes: up})
		r.Marks = append(r.Marks, report.Mark{Way: way, Seconds: 0, Label: "start"},
			report.Mark{Way: way, Seconds: churnAt, Label: "churn"})
	}
	traffic(report.WayReference, 1, 0)
	traffic(report.WayStock, float64(nodes)*2.1, 0)
	traffic(report.WayWeir, 1.006, 3.5)
	r.Marks = append(r.Marks, report.Mark{Way: report.WayWeir, Seconds: 45, Label: "leader killed", Fault: true})

	resources := []string{"endpointslices.v1.discovery.k8s.io", "endpoints.v1."}
	for i, res := range resources {
		r.Readiness = append(r.Readiness, report.Readiness{
			Way: report.WayWeir, Resource: res, Synced: true, Seconds: 1.61 + 0.264*float64(i),
		})
		for n := range nodes {
			node := fmt.Sprintf("edge-%d", n+1)
			r.Readiness = append(r.Readiness,
				report.Readiness{
					Way: report.WayWeir, Node: node, Resource: res, Synced: true, Seconds: 1.7 + 0.25*float64(i) + rnd.Float64()/2,
				},
				report.Readiness{Way: report.WayStock, Node: node, Resource: res, Synced: true, Seconds: 6.2 + 4*rnd.Float64()})
		}
	}
	for _, way := range []string{report.WayStock, report.WayWeir} {
		for n := range nodes {
			for _, c := range []struct{ name, resource string }{
				{"kube-proxy", resources[0]}, {"coredns", resources[0]}, {"endpoints informer", resources[1]},
				{"json", resources[0]}, {"kubectl", resources[0]},
			} {
				updates := int64(200)
				if c.name == "kubectl" {
					updates -= int64(n % 2)
				}
				r.Clients = append(r.Clients, report.Client{
					Way: way, Node: fmt.Sprintf("edge-%d", n+1), Name: c.name, Resource: c.resource,
					Adds: 40, Updates: updates, Bookmarks: int64(1 + rnd.IntN(3)),
				})
			}
		}
	}
	for _, when := range []string{"idle", "end"} {
		r.Memory = append(r.Memory, report.Memory{Process: "coordinator", When: when, RSSAnonBytes: 24.6e6, RSSBytes: 61.2e6})
		for n := range nodes {
			r.Memory = append(r.Memory, report.Memory{
				Process: "hub", Node: fmt.Sprintf("edge-%d", n+1), When: when, RSSAnonBytes: 12.2e6 + int64(n)*2e5,
				RSSBytes: 38.9e6,
			})
		}
	}

	reference := float64(r.Bytes.Sum(report.ByteRow{Way: report.WayReference}))
	weir := report.ByteRow{Way: report.WayWeir}
	r.Metrics["pool_bytes_ratio"] = float64(r.Bytes.Sum(report.ByteRow{Way: report.WayWeir, Class: "pool"})) / reference
	r.Metrics["total_bytes_ratio"] = float64(r.Bytes.Sum(weir)) / reference
	r.Metrics["stock_bytes_ratio"] = float64(r.Bytes.Sum(report.ByteRow{Way: report.WayStock})) / reference
	r.Metrics["cloud_bytes_down"] = float64(r.Bytes.Sum(report.ByteRow{Way: report.WayWeir, Direction: report.Down}))
	r.Metrics["cloud_bytes_up"] = float64(r.Bytes.Sum(report.ByteRow{Way: report.WayWeir, Direction: report.Up}))
	for _, e := range []struct {
		metric string
		limit  float64
	}{
		{"pool_bytes_ratio", 1.02}, {"total_bytes_ratio", 1.10}, {"client_relists", 0}, {"watch_violations", 0},
		{"cache_ready_seconds", 5}, {"coordinator_rss_anon_bytes", 32e6},
	} {
		got := r.Metrics[e.metric]
		r.Expectations = append(r.Expectations, report.Expectation{
			Name: e.metric, Passed: got <= e.limit,
			Got: report.FormatMetric(e.metric, got), Want: "≤ " + report.FormatMetric(e.metric, e.limit),
		})
	}
	return r
}

// failedSample is a run in which things went wrong.
func failedSample() report.Result {
	r := sample(5)
	r.Scenario = "leader-kill"
	r.Passed = false
	r.Metrics["watch_violations"] = 3
	r.Metrics["client_relists"] = 2
	for i := range r.Clients {
		if c := &r.Clients[i]; c.Way == report.WayWeir && c.Node == "edge-4" && c.Name == "coredns" {
			c.Updates, c.Deletes, c.Violations, c.Relists = 171, 4, 3, 2
		}
	}
	for i := range r.Readiness {
		if x := &r.Readiness[i]; x.Way == report.WayWeir && x.Node == "edge-5" && x.Resource == "endpoints.v1." {
			x.Synced = false
		}
	}
	for i := range r.Expectations {
		if e := &r.Expectations[i]; e.Name == "watch_violations" {
			e.Passed, e.Got = false, "3"
		} else if e.Name == "client_relists" {
			e.Passed, e.Got = false, "2"
		}
	}
	for i := range 3 {
		r.Violations = append(r.Violations, report.Violation{
			Way: report.WayWeir, Node: "edge-4", Client: "coredns", Rule: "ordered", Seconds: 47.31 + float64(i)/50,
			Detail: fmt.Sprintf("MODIFIED pool/svc-%d at resourceVersion %d after %d", i, 4711-i, 4720),
		})
	}
	return r
}
