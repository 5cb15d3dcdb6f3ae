package alerts

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const (
	rulesFile = "../weir/monitoring/rules.yaml"
	step      = time.Minute // between two evaluations
)

// ofCluster are the alerts about the cloud as a whole. Each other one says where to look: a pool or a node.
var ofCluster = []string{
	"WeirManagerDown", "WeirPoliciesMissing", "WeirPolicyWritesFail", "WeirDeaf", "WeirGateDown", "WeirGateBehind",
	"WeirWayInFull",
}

var grammar = parser.NewParser(parser.Options{})

func load(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.LegacyValidation, grammar, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return groups
}

// each calls f with every rule.
func each(groups *rulefmt.RuleGroups, f func(rulefmt.Rule)) {
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			f(r)
		}
	}
}

// alerting are the rules that alert, as a Prometheus would run them.
func alerting(t *testing.T) (out []*rules.AlertingRule) {
	t.Helper()
	each(load(t), func(r rulefmt.Rule) {
		if r.Alert == "" {
			return
		}
		expr, err := grammar.ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), time.Duration(r.KeepFiringFor),
			labels.FromMap(r.Labels), labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true,
			slog.New(slog.DiscardHandler)))
	})
	return out
}

// script is a file of testdata: what is loaded, and what fires at some times.
type script struct {
	load string
	at   []moment
}

type moment struct {
	line  int
	after time.Duration
	fires []string
}

var atLine = regexp.MustCompile(`^at (\S+):(.*)$`)

func readScript(t *testing.T, path string) (s script) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		m := atLine.FindStringSubmatch(line)
		if m == nil {
			s.load += line + "\n"
			continue
		}
		after, err := time.ParseDuration(m[1])
		if err != nil || after%step != 0 {
			t.Fatalf("%s:%d: %q: want a number of minutes", path, i+1, m[1])
		}
		fires := strings.Fields(m[2])
		slices.Sort(fires)
		s.at = append(s.at, moment{i + 1, after, fires})
	}
	slices.SortStableFunc(s.at, func(a, b moment) int { return cmp.Compare(a.after, b.after) })
	return s
}

// TestAlerts: at each time of each script exactly those alerts fire that it says, and every alert is in some script.
func TestAlerts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.alerts")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	fired := map[string]bool{}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".alerts"), func(t *testing.T) {
			s, all := readScript(t, path), alerting(t)
			storage := promqltest.LoadedStorage(t, s.load)
			t.Cleanup(func() { _ = storage.Close() })
			query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 0, 10_000), storage)
			next := time.Duration(0)
			for _, m := range s.at {
				var got []string
				for ; next <= m.after; next += step {
					got = evaluate(t, all, query, time.Unix(0, 0).Add(next))
				}
				if !slices.Equal(got, m.fires) {
					t.Errorf("%s:%d: at %s %v fire, want %v", path, m.line, m.after, got, m.fires)
				}
				for _, a := range got {
					name, labels, _ := strings.Cut(a, "{")
					fired[name] = true
					where := strings.Contains(labels, "pool=") || strings.Contains(labels, "node=")
					if where == slices.Contains(ofCluster, name) {
						t.Errorf("%s:%d: %s: it says where: %t", path, m.line, a, where)
					}
				}
			}
		})
	}
	for _, r := range alerting(t) {
		if !fired[r.Name()] {
			t.Errorf("no script has %s fire", r.Name())
		}
	}
}

// evaluate is a step of Prometheus, and what fires after it: an alert with its labels, but for the severity.
func evaluate(t *testing.T, all []*rules.AlertingRule, query rules.QueryFunc, now time.Time) (fires []string) {
	t.Helper()
	for _, r := range all {
		if _, err := r.Eval(t.Context(), 0, now, query, nil, 0); err != nil {
			t.Fatal(err)
		}
		for _, a := range r.ActiveAlerts() {
			if a.State != rules.StateFiring {
				continue
			}
			for _, text := range []string{"summary", "description"} {
				if s := a.Annotations.Get(text); s == "" || strings.Contains(s, "<no value>") ||
					strings.Contains(s, "error expanding") {
					t.Errorf("%s: its %s is %q", r.Name(), text, s)
				}
			}
			var of []string
			a.Labels.Range(func(l labels.Label) {
				if l.Name != "alertname" && l.Name != "severity" {
					of = append(of, l.Name+"="+l.Value)
				}
			})
			name := r.Name()
			if len(of) > 0 {
				name += "{" + strings.Join(of, ",") + "}"
			}
			fires = append(fires, name)
		}
	}
	slices.Sort(fires)
	return fires
}

// TestRecordings computes what is recorded.
func TestRecordings(t *testing.T) {
	data, err := os.ReadFile("testdata/recordings.promql")
	if err != nil {
		t.Fatal(err)
	}
	text, missing := string(data), 0
	each(load(t), func(r rulefmt.Rule) {
		if r.Record == "" {
			return
		}
		if !strings.Contains(text, "<"+r.Record+">") {
			t.Errorf("%s is not computed", r.Record)
			missing++
		}
		text = strings.ReplaceAll(text, "<"+r.Record+">", r.Expr)
	})
	if missing == 0 {
		promqltest.RunTest(t, text, promqltest.NewTestEngine(t, false, 0, 10_000))
	}
}

// TestRunbooks: each alert says how bad it is, and leads to a place in the docs that is there.
func TestRunbooks(t *testing.T) {
	doc := metricsDoc(t)
	each(load(t), func(r rulefmt.Rule) {
		if r.Alert == "" {
			return
		}
		want := "https://github.com/weir-edge/weir/blob/main/docs/metrics.md#" + strings.ToLower(r.Alert)
		if r.Annotations["runbook_url"] != want || !strings.Contains(doc, "\n### "+r.Alert+"\n") {
			t.Errorf("%s leads to %q, want %s, a heading of docs/metrics.md", r.Alert, r.Annotations["runbook_url"], want)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s has severity %q", r.Alert, r.Labels["severity"])
		}
	})
}

func metricsDoc(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestMetricsAreThere: rules and dashboard ask for metrics that the docs have a row for.
func TestMetricsAreThere(t *testing.T) {
	doc := metricsDoc(t)
	recorded := map[string]bool{}
	each(load(t), func(r rulefmt.Rule) { recorded[r.Record] = true })
	asked := 0
	check := func(where, expr string) {
		parsed, err := grammar.ParseExpr(expr)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			return
		}
		parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
			v, ok := n.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			asked++
			if !recorded[v.Name] && !strings.Contains(doc, fmt.Sprintf("| `%s` |", v.Name)) {
				t.Errorf("%s asks for %s, which docs/metrics.md does not have", where, v.Name)
			}
			return nil
		})
	}
	each(load(t), func(r rulefmt.Rule) { check(cmp.Or(r.Alert, r.Record), r.Expr) })
	for _, p := range dashboard(t).Panels {
		for _, target := range p.Targets {
			check("panel "+p.Title, strings.NewReplacer("$__rate_interval", "5m", `"$instance"`, `".+"`).Replace(target.Expr))
		}
	}
	if asked < 25 {
		t.Errorf("%d metrics are asked for", asked)
	}
}
