package estimate

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// measured is what of a committed result counts.
type measured struct {
	Metrics   map[string]float64 `json:"metrics"`
	Replacing []struct {
		Way   string  `json:"way"`
		What  string  `json:"what"`
		Bytes float64 `json:"bytes"`
	} `json:"replacing"`
}

func committed(t *testing.T, name string) *measured {
	t.Helper()
	text, err := os.ReadFile("../../../reports/baseline/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var m measured
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return &m
}

func (m *measured) metric(t *testing.T, name string) float64 {
	t.Helper()
	v, ok := m.Metrics[name]
	if !ok {
		t.Fatalf("no metric %s", name)
	}
	return v
}

// near holds that an estimate is near what was measured.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	off := got/want - 1
	t.Logf("%s: estimated %.0f, measured %.0f: %+.1f %%", what, got, want, 100*off)
	if math.IsNaN(off) || math.Abs(off) > within {
		t.Errorf("%s: estimated %.0f, measured %.0f", what, got, want)
	}
}

// TestReports: two workloads with real kubelets are estimated as they were measured, quiet and while 100 pods are
// replaced. What kube-apiserver's metrics would have said of the changes of EndpointSlices is the bytes of CoreDNS'
// watch, of which each stock client of that workload has the like. docs/bytes.md has the third workload.
func TestReports(t *testing.T) {
	for name, n := range map[string]int{"real-node": 5, "real-node-20": 20} {
		t.Run(name, func(t *testing.T) {
			m := committed(t, name)
			size := 2200.0 // of a Node of the testbed
			in := Input{
				Sites:      []Site{{Name: "harbour", Nodes: n, Pods: 5 * n, DNS: 1}},
				Resources:  []Resource{{Name: nodes, Size: size, Changes: float64(n+1) * day / statusPeriod, Clients: 1}},
				Compresses: true,
			}
			quiet := Of(in)[0]
			near(t, "stock, quiet", quiet.Stock/day/float64(n), m.metric(t, "stock_quiet_bytes_per_node_second"))
			near(t, "Weir, quiet", quiet.Weir/day/float64(n), m.metric(t, "quiet_bytes_per_node_second"))

			for _, x := range m.Replacing {
				if x.Way == "stock" && x.What == "coredns watch endpointslices" {
					in.Resources = append(in.Resources, Resource{
						Name: endpointSlices, Size: x.Bytes, Changes: 1, Clients: 1, DNS: 1,
					})
				}
			}
			if len(in.Resources) != 2 {
				t.Fatal("no watch of endpointslices was measured")
			}
			in.PodsReplaced = 100
			busy := Of(in)[0]
			near(t, "stock, 100 pods", busy.Stock-quiet.Stock, m.metric(t, "stock_update_bytes"))
			near(t, "Weir, 100 pods", busy.Weir-quiet.Weir, m.metric(t, "update_bytes"))
			if busy.Verdict != Pays {
				t.Errorf("verdict %q: %s", busy.Verdict, busy.Why)
			}
		})
	}
}

// TestVerdicts: where Weir does not pay, the estimate says so.
func TestVerdicts(t *testing.T) {
	quiet := Input{Resources: []Resource{{Name: nodes, Size: 2200, Changes: 1000, Clients: 1}}, Compresses: true}
	churn := quiet
	churn.PodsReplaced, churn.PodSize = 100_000, 1 // each node's own, which hardly shrinks
	for what, c := range map[string]struct {
		in    Input
		nodes int
		want  Verdict
		why   string
	}{
		"a pool of one":    {quiet, 1, Not, "one node"},
		"a pool of five":   {quiet, 5, Pays, "saves"},
		"pods come and go": {churn, 2, Not, "more than what they share"},
		"within its own error": {
			Input{
				Resources: []Resource{{Name: "secrets", Size: 1000, Changes: 100_000, Clients: 1}}, Compresses: true,
			}, 3, Unsure, "less than the error",
		},
	} {
		c.in.Sites = []Site{{Name: "a", Nodes: c.nodes, Pods: 10}}
		if r := Of(c.in)[0]; r.Verdict != c.want || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: %q, %q, ratio %.2f", what, r.Verdict, r.Why, r.Ratio)
		}
	}
}

// TestShared: what a pool shares is once, what nobody may share is not, and what nobody reads costs nothing.
func TestShared(t *testing.T) {
	of := func(name string, clients float64, compresses bool) Row {
		in := Input{Sites: []Site{{Nodes: 10}}, Compresses: compresses}
		base := Of(in)[0]
		in.Resources = []Resource{{Name: name, Size: 1000, Changes: 1000, Clients: clients}}
		r := Of(in)[0]
		return Row{Stock: r.Stock - base.Stock, Weir: r.Weir - base.Weir}
	}
	for _, c := range []struct {
		name        string
		clients     float64
		compresses  bool
		stock, weir float64
	}{
		{endpointSlices, 1, true, 10e6, compressed * 1e6},
		{endpointSlices, 2, true, 20e6, compressed * 1e6},
		{endpointSlices, 2, false, 20e6, 1e6},
		{endpointSlices, 0, true, 0, 0},
		{"secrets", 1, true, 10e6, 10e6},
	} {
		if r := of(c.name, c.clients, c.compresses); math.Abs(r.Stock-c.stock) > 1 || math.Abs(r.Weir-c.weir) > 1 {
			t.Errorf("%s of %.0f clients: %.0f and %.0f, want %.0f and %.0f", c.name, c.clients, r.Stock, r.Weir, c.stock,
				c.weir)
		}
	}
}

const auditLog = `{"stage":"ResponseComplete","verb":"patch","stageTimestamp":"2026-01-01T00:00:00Z",` +
	`"objectRef":{"resource":"nodes","name":"a","subresource":"status"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"create","stageTimestamp":"2026-01-01T00:30:00Z","objectRef":{"resource":"pods",` +
	`"namespace":"x"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"create","stageTimestamp":"2026-01-01T00:30:00Z","objectRef":{"resource":"pods",` +
	`"namespace":"x","name":"p","subresource":"binding"},"responseStatus":{"code":201}}
{"stage":"ResponseStarted","verb":"watch","stageTimestamp":"2026-01-01T00:30:00Z","sourceIPs":["10.0.0.1"],` +
	`"userAgent":"kubelet","objectRef":{"resource":"services"}}
{"stage":"ResponseComplete","verb":"watch","stageTimestamp":"2026-01-01T00:35:00Z","sourceIPs":["10.0.0.1"],` +
	`"userAgent":"kubelet","objectRef":{"resource":"services"},"responseStatus":{"code":200}}
{"stage":"ResponseStarted","verb":"watch","stageTimestamp":"2026-01-01T00:30:00Z","sourceIPs":["10.0.0.1"],` +
	`"userAgent":"kube-proxy","objectRef":{"resource":"services"}}
{"stage":"ResponseStarted","verb":"watch","stageTimestamp":"2026-01-01T00:30:00Z","sourceIPs":["10.9.9.9"],` +
	`"userAgent":"controller","objectRef":{"resource":"secrets"}}
{"stage":"ResponseStarted","verb":"watch","stageTimestamp":"2026-01-01T00:30:00Z","sourceIPs":["10.0.0.1"],` +
	`"userAgent":"kubelet","objectRef":{"resource":"nodes","name":"a"}}
{"stage":"ResponseComplete","verb":"update","stageTimestamp":"2026-01-01T01:00:00Z","objectRef":{` +
	`"resource":"endpointslices","apiGroup":"discovery.k8s.io","name":"x"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"update","stageTimestamp":"2026-01-01T01:00:00Z","objectRef":{` +
	`"resource":"endpointslices","apiGroup":"discovery.k8s.io","name":"x"},"responseStatus":{"code":409}}
{"stage":"ResponseComplete","verb":"update","stageTimestamp":"2026-01-01T01:00:00Z","requestURI":"/x?dryRun=All",` +
	`"objectRef":{"resource":"endpointslices","apiGroup":"discovery.k8s.io","name":"x"},"responseStatus":{"code":200}}
`

// TestAudit: writes that changed something count, and clients on nodes of sites, each once. A line that is no event is
// told, however long it is.
func TestAudit(t *testing.T) {
	log := auditLog + "no event\n" + strings.Repeat("x", maxLine+1) + "\n\n" + `{"stage":"Resp`
	r, err := ReadAudit(strings.NewReader(log), map[string]bool{"10.0.0.1": true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Took != time.Hour || r.Changes[nodes] != 1 || r.Changes[endpointSlices] != 1 || r.Pods != 1 ||
		r.Clients[services] != 2 || len(r.Clients) != 1 {
		t.Errorf("%+v", r)
	}
	if len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "3 lines of the audit log are no events") {
		t.Errorf("notes %q", r.Notes)
	}
	if got := r.perDay(r.Changes[nodes]); got != 24 {
		t.Errorf("%f changes a day", got)
	}
	for _, bad := range []string{"", "\n\n", "x", "{}\n{}\n", strings.SplitAfter(auditLog, "\n")[0]} {
		if r, err := ReadAudit(strings.NewReader(bad), nil); err == nil {
			t.Errorf("%.40q is read: %+v", bad, r)
		}
	}
}

func FuzzAudit(f *testing.F) {
	f.Add([]byte(auditLog))
	f.Add([]byte(`{"verb":"watch","stageTimestamp":"0001-01-01T00:00:00Z","objectRef":{}}` + "\n" + `{"verb":"x"`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ReadAudit(strings.NewReader(string(b)), map[string]bool{"10.0.0.1": true})
		if err != nil {
			return
		}
		if r.Took <= 0 || len(r.Changes) > maxResources || math.IsNaN(r.perDay(r.Pods)) {
			t.Errorf("%+v", r)
		}
	})
}

const metricsText = `# TYPE apiserver_request_total counter
apiserver_request_total{code="200",group="discovery.k8s.io",resource="endpointslices",verb="PUT"} 10
apiserver_request_total{code="409",group="discovery.k8s.io",resource="endpointslices",verb="PUT"} 7
apiserver_request_total{code="200",group="",resource="pods",verb="GET"} 900
apiserver_request_total{code="201",group="",resource="pods",verb="POST"} 3
apiserver_longrunning_requests{group="",resource="services",scope="cluster",verb="WATCH"} 43
apiserver_longrunning_requests{group="",resource="configmaps",verb="WATCH"} 500
apiserver_longrunning_requests{group="",resource="nodes",scope="cluster",verb="WATCH"} 19
apiserver_watch_events_sizes_bucket{group="discovery.k8s.io",resource="endpointslices",le="+Inf"} 20
apiserver_watch_events_sizes_sum{group="discovery.k8s.io",resource="endpointslices"} 20000
apiserver_watch_events_sizes_count{group="discovery.k8s.io",resource="endpointslices"} 20
process_start_time_seconds 1.7e+09
`

// TestMetrics: changes are the difference of two reads of one kube-apiserver, by what it saw, else by what it answered.
func TestMetrics(t *testing.T) {
	was, err := readMetrics(strings.NewReader(metricsText))
	if err != nil {
		t.Fatal(err)
	}
	later := strings.NewReplacer(`verb="PUT"} 10`, `verb="PUT"} 30`,
		`verb="POST"} 3`, `verb="POST"} 5`, "} 20000", "} 24000", `slices"} 20`+"\n", `slices"} 22`+"\n")
	is, err := readMetrics(strings.NewReader(later.Replace(metricsText)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := between(was, is, time.Minute, 20)
	if err != nil {
		t.Fatal(err)
	}
	if r.Changes[endpointSlices] != 20 || r.Sizes[endpointSlices] != 2000 || r.Pods != 2 || r.Clients[services] != 2 ||
		r.Clients[nodes] != 0 || r.perDay(20) != 20*24*60 {
		t.Errorf("%+v", r)
	}
	const saw = `apiserver_watch_cache_events_received_total{group="discovery.k8s.io",resource="endpointslices"} `
	if was, err = readMetrics(strings.NewReader(metricsText + saw + "100\n")); err != nil {
		t.Fatal(err)
	}
	if is, err = readMetrics(strings.NewReader(later.Replace(metricsText) + saw + "150")); err != nil {
		t.Fatal(err)
	}
	if r, err = between(was, is, time.Minute, 3); err != nil || r.Changes[endpointSlices] != 50 || r.Clients != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = between(was, is, time.Minute, 50); err != nil || r.Clients != nil || len(r.Notes) != 1 {
		t.Errorf("watches of some nodes are taken for those of all: %+v, %v", r, err)
	}
	is.started++
	if _, err := between(was, is, time.Minute, 3); err == nil || !strings.Contains(err.Error(), "--server") {
		t.Errorf("another kube-apiserver: %v", err)
	}
	for _, bad := range []string{"", "x 1\n", started + " 1\n", requests + "{\n", started + "{\x00"} {
		if _, err := readMetrics(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func FuzzMetrics(f *testing.F) {
	f.Add([]byte(metricsText))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readMetrics(strings.NewReader(string(b)))
		if err != nil {
			return
		}
		r, err := between(m, m, time.Minute, 20)
		if err != nil || math.IsNaN(r.perDay(r.Pods)) || r.Pods != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
