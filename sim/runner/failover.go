package runner

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
)

// addFaults adds what faults cost.
func (r *run) addFaults(res *report.Result) {
	if len(r.s.Faults) == 0 {
		return
	}
	var totals, detect, elect, resume []float64
	var worst, resync int64
	var recovered, fresh time.Duration
	catchUp := 0.0
	for _, e := range r.faults {
		f := report.Fault{
			At: e.began.Sub(r.began).Seconds(), Name: e.deed.Fault.String(), Target: e.deed.name(),
			Lasted: e.healed.Sub(e.began).Seconds(),
			Leader: e.deed.Leader != "", Reached: e.reached.Seconds(), Recovered: e.recovered.Seconds(),
			Grace: e.grace.Seconds(), Fresh: e.fresh.Seconds(), CloudBytes: e.bytes, Connections: e.opened, Streams: e.waited,
		}
		if e.detect > 0 && e.elect > 0 {
			f.Detect, f.Elect, f.Resume = e.detect.Seconds(), (e.elect - e.detect).Seconds(), max(e.reached-e.elect, 0).Seconds()
			detect, elect, resume = append(detect, f.Detect), append(elect, f.Elect), append(resume, f.Resume)
		}
		if f.Leader && e.reached > 0 && e.detect+e.elect > 0 { // a leader that stayed is no leader change
			totals = append(totals, f.Reached)
		}
		res.Faults = append(res.Faults, f)
		worst, resync, recovered, fresh = max(worst, e.bytes), max(resync, e.resync), max(recovered, e.recovered),
			max(fresh, e.fresh)
		for _, p := range r.s.Topology.Pools() {
			if down := float64(p.Uplink.Down) / 8; down > 0 {
				r.metrics["link_load_share"] = max(r.metrics["link_load_share"],
					float64(e.changes)/e.ended.Sub(e.began).Seconds()/down)
			}
		}
		if price := (e.changes + r.fullList) * r.copies(); price > 0 {
			catchUp = max(catchUp, float64(e.caughtUp)/float64(price))
		}
	}
	if r.weir().ended.IsZero() {
		return
	}
	r.metrics["failover_cloud_bytes"], r.metrics["recovery_seconds_max"] = float64(worst), recovered.Seconds()
	r.metrics["fresh_seconds_max"], r.metrics["catch_up_bytes_share"] = fresh.Seconds(), catchUp
	all, pool := r.openedInFaults()
	r.metrics["new_cloud_connections"], r.metrics["new_pool_connections"], r.metrics["stale_seconds_max"] = float64(all),
		float64(pool), r.stale.max()
	r.metrics["late_markers"] = float64(r.late)
	if r.s.Changes() {
		r.metrics["applied_seconds_max"] = r.applied.Seconds()
	}
	r.addLies()
	r.addRevocations()
	r.addMovedClients()
	if r.s.BlacksOut() {
		r.offline.report(r.metrics)
	}
	if grace := shortestGrace(r.faults); grace > 0 {
		r.metrics["grace_seconds_min"] = grace.Seconds()
	}
	if len(totals) > 0 {
		r.metrics["failovers"] = float64(len(totals))
		r.metrics["failover_seconds_p50"], r.metrics["failover_seconds_p99"] = report.Percentile(totals, 50),
			report.Percentile(totals, 99)
	}
	for name, values := range map[string][]float64{"detect": detect, "elect": elect, "resume": resume} {
		if len(values) > 0 {
			r.metrics["failover_"+name+"_seconds_p99"] = report.Percentile(values, 99)
		}
	}
	r.addJitter()
	if r.s.RestartsAPIServer() && r.fullList > 0 {
		r.metrics["resync_bytes_share"] = float64(resync) / float64(r.fullList*r.copies())
	}
}

// openedInFaults counts each connection once, however many faults there were at the time: all, and those of class pool.
func (r *run) openedInFaults() (all, pool int) {
	for _, c := range r.connections() {
		for _, e := range r.faults {
			if c.Opened.After(e.began) && c.Opened.Before(e.ended) {
				all++
				if c.Class == runtime.ClassPool {
					pool++
				}
				break
			}
		}
	}
	return all, pool
}

// measureFullList reads how long one list of each pool-scope resource is, compressed as the cloud compresses it.
func measureFullList(ctx context.Context, admin *rest.Config) (int64, error) {
	return measureList(ctx, admin, "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/endpoints")
}

// measureList reads lists, as compressed as the cloud sends them.
func measureList(ctx context.Context, admin *rest.Config, paths ...string) (int64, error) {
	c := rest.CopyConfig(admin)
	c.DisableCompression = true // by the transport: bytes are counted as they come
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, path := range paths {
		body, err := client.CoreV1().RESTClient().Get().AbsPath(path).
			SetHeader("Accept", "application/vnd.kubernetes.protobuf,application/json").SetHeader("Accept-Encoding", "gzip").
			DoRaw(ctx)
		if err != nil {
			return 0, fmt.Errorf("measure a list of %s: %w", path, err)
		}
		n += int64(len(body))
	}
	return n, nil
}

// shortestGrace is the least time from a fault until somebody began to read for the pool; 0: nobody did.
func shortestGrace(faults []episode) (least time.Duration) {
	for _, e := range faults {
		if e.grace > 0 && (least == 0 || e.grace < least) {
			least = e.grace
		}
	}
	return least
}
