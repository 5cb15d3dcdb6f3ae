package runner

import (
	"fmt"
	"math"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// maxViolations is how many violations a report lists; the metric counts all.
const maxViolations = 100

// report makes the result of what was measured, also of a run that failed half-way.
func (r *run) report(started time.Time, err error) report.Result {
	res := report.Result{
		Outcome:     report.Outcome{Scenario: r.s.Name, Seed: r.s.Seed, Metrics: r.metrics},
		Description: r.s.Description,
		Repeat:      r.Repeat,
		Runtime:     r.Runtime.Name(),
		Started:     started,
		Seconds:     time.Since(started).Seconds(),
		Revision:    r.Revision,
		Versions:    versions(r.version),
		Machine:     Machine(),
		Marks:       r.marks,

		UplinkBitsPerSecond: r.uplink(),
	}
	if err != nil {
		res.Error = err.Error()
	}
	res.Topology = r.facts()
	if r.site != nil && !r.began.IsZero() {
		r.addTraffic(&res)
		r.addClients(&res)
		res.Readiness, res.Memory = r.ready.list(), r.peaks.list()
		r.addMemory(res.Memory)
		r.addFaults(&res)
	}
	res.Passed = err == nil
	var unjudged map[string]string
	if limited, ok := r.Runtime.(runtime.Limited); ok {
		unjudged = limited.Unjudged()
	}
	for _, e := range r.expectations() {
		x := e.Report(r.metrics)
		if why := unjudged[e.Metric]; why != "" {
			x.Passed, x.Want = true, x.Want+" (not judged on "+res.Runtime+": "+why+")"
		}
		res.Expectations = append(res.Expectations, x)
		res.Passed = res.Passed && x.Passed
	}
	return res
}

// expectations are those of the scenario, and one of every scenario with faults: who can be served is served.
func (r *run) expectations() []scenario.Expectation {
	if len(r.s.Faults) == 0 {
		return r.s.Expectations
	}
	return append(slices.Clone(r.s.Expectations), scenario.Expectation{Metric: "late_markers", Op: "=="})
}

func (r *run) addTraffic(res *report.Result) {
	for _, w := range r.ways {
		res.Bytes = append(res.Bytes, w.bytes...)
		for _, l := range r.linksOf(w) {
			res.Series = append(res.Series, Series(w.name, l, r.began)...)
		}
	}
	sum := func(way, class, direction string) float64 {
		return float64(res.Bytes.Sum(report.ByteRow{Way: way, Class: class, Direction: direction}))
	}
	phase := func(way string) float64 {
		return float64(res.Bytes.Sum(report.ByteRow{Way: way, Class: "pool", Phase: phaseChurn}))
	}
	if r.weir().ended.IsZero() {
		return
	}
	r.metrics["cloud_bytes_down"] = sum(report.WayWeir, "", report.Down)
	r.metrics["cloud_bytes_up"] = sum(report.WayWeir, "", report.Up)
	if r.s.Workload.Changes > 0 && r.versions > 0 {
		r.metrics["bytes_per_change"] = perVersion(res.Bytes, phaseChurn, r.versions, r.copies())
	}
	r.addGateConnections()
	if ref := sum(report.WayReference, "pool", ""); ref > 0 {
		r.metrics["pool_bytes_ratio"] = sum(report.WayWeir, "pool", "") / ref
		if churn := phase(report.WayReference); churn > 0 {
			r.metrics["churn_bytes_ratio"] = phase(report.WayWeir) / churn
		}
		r.metrics["total_bytes_ratio"] = sum(report.WayWeir, "", "") / sum(report.WayReference, "", "")
		if stock := sum(report.WayStock, "", ""); stock > 0 {
			r.metrics["stock_bytes_ratio"] = stock / sum(report.WayReference, "", "")
		}
	}
}

func (r *run) addClients(res *report.Result) {
	var relists, violations, merged, most float64
	fewest := math.Inf(1)
	for _, w := range r.ways {
		for _, s := range w.streams {
			v := s.verdict
			res.Clients = append(res.Clients, report.Client{
				Way: w.name, Node: s.node, Name: s.Spec.Client, Resource: s.Spec.Resource,
				Adds: int64(v.Adds), Updates: int64(v.Updates), Deletes: int64(v.Deletes), Bookmarks: int64(v.Bookmarks),
				Relists: int64(v.Relists), Violations: int64(len(v.Violations)),
			})
			if w.name == report.WayWeir {
				relists += float64(v.Relists)
				fewest, most = min(fewest, float64(v.Relists)), max(most, float64(v.Relists))
				violations += float64(len(v.Violations))
				merged += float64(v.Merged)
			}
			for _, x := range v.Violations {
				if len(res.Violations) < maxViolations {
					res.Violations = append(res.Violations, report.Violation{
						Way: w.name, Node: s.node, Client: s.Spec.Client, Rule: x.Rule, Detail: x.Detail,
						Seconds: x.At.Sub(r.began).Seconds(),
					})
				}
			}
		}
	}
	if !r.weir().ended.IsZero() {
		r.metrics["client_relists"], r.metrics["watch_violations"] = relists, violations
		r.metrics["merged_changes"] = merged
		if r.s.RestoresCloud() {
			r.metrics["client_relists_min"], r.metrics["client_relists_max"] = fewest, most
		}
	}
}

func (r *run) addMemory(readings []report.Memory) {
	raise := func(name string, v int64) { r.metrics[name] = max(r.metrics[name], float64(v)) }
	for _, m := range readings {
		switch m.Process {
		case "coordinator":
			raise("coordinator_rss_anon_bytes", m.RSSAnonBytes)
			raise("coordinator_rss_bytes", m.RSSBytes)
		case "hub":
			raise("hub_rss_anon_bytes_max", m.RSSAnonBytes)
			raise("hub_rss_bytes_max", m.RSSBytes)
		}
	}
}

// cloudVersion is what a site's kube-apiserver says that it is.
func cloudVersion(site runtime.Site) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(site.Admin())
	if err != nil {
		return "", fmt.Errorf("ask kube-apiserver for its version: %w", err)
	}
	v, err := client.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("ask kube-apiserver for its version: %w", err)
	}
	return v.GitVersion, nil
}

// versions of what a run consists of; without a cloud's there is no more than the toolchain's.
func versions(cloud string) map[string]string {
	v := map[string]string{"Go": goruntime.Version()}
	if cloud != "" {
		v["kube-apiserver"] = cloud
	}
	return v
}

// Machine is what this process runs on.
func Machine() report.Machine {
	m := report.Machine{OS: goruntime.GOOS + "/" + goruntime.GOARCH, CPUs: goruntime.NumCPU()}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	return m
}
