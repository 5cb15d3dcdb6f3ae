package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/sim/report"
)

const (
	maxFile        = 1 << 20
	maxNodes       = 200 // of runtime local
	maxDescription = 4000
	maxServices    = 5000
	maxEndpoints   = 1000
	maxChanges     = 100_000
	maxQuiet       = time.Hour
	maxAlone       = 3600
	maxJoinEvery   = 10 * time.Second
	maxRTT         = 10 * time.Second

	// Extension of scenario files.
	Extension = ".yaml"
)

// Parse reads one scenario. file names it in mistakes; unless it is empty, the scenario has to have its name. The
// error is of type FileErrors.
func Parse(file string, data []byte) (*Scenario, error) {
	r := &reader{file: file}
	s := &Scenario{File: file}
	if root := r.document(data); root != nil {
		r.plain(root)
		r.scenario(value{r: r, line: root.Line, node: root}, s)
	}
	if len(r.mistakes) > 0 {
		slices.SortStableFunc(r.mistakes, func(a, b Mistake) int { return a.Line - b.Line })
		return nil, FileErrors(r.mistakes)
	}
	return s, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

// document returns the root of the one document in data, or nil.
func (r *reader) document(data []byte) *yaml.Node {
	refuse := func(line int, allowed string) {
		r.mistakes = append(r.mistakes, Mistake{File: r.file, Line: line, Field: "file", Allowed: allowed})
	}
	if len(data) > maxFile {
		refuse(1, fmt.Sprintf("it is larger than %d bytes: no scenario is", maxFile))
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var document, next yaml.Node
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		refuse(1, "it is empty: want a scenario, as those in scenarios/")
		return nil
	case err != nil:
		line := 1
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			line, _ = strconv.Atoi(m[1])
		}
		refuse(line, "from about this line on it is no YAML: "+yamlLine.ReplaceAllString(err.Error(), ""))
		return nil
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		refuse(1, "want a mapping of fields")
		return nil
	}
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		refuse(max(next.Line, 1), "there is more than one document: want one scenario a file")
	}
	return document.Content[0]
}

// plain refuses YAML that reads otherwise than it looks. It does not follow aliases, so it ends.
func (r *reader) plain(n *yaml.Node) {
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		r.mistakes = append(r.mistakes, Mistake{
			File: r.file, Line: n.Line, Field: "YAML",
			Allowed: "anchors and aliases are not allowed: write the value where it is needed",
		})
	}
	for _, c := range n.Content {
		r.plain(c)
	}
}

func (r *reader) scenario(v value, s *Scenario) {
	o, ok := v.object("name", "description", "seed", "topology", "workload", "clients", "compare", "eviction", "autonomy",
		"crowd", "images", "faults", "batches", "expectations")
	if !ok {
		return
	}
	s.Name = o.name("name", validation.DNS1123LabelMaxLength)
	if base := strings.TrimSuffix(filepath.Base(r.file), Extension); r.file != "" && s.Name != "" && s.Name != base {
		o.fields["name"].contradiction(fmt.Sprintf("the file is %s: want %q here, or another name of the file",
			filepath.Base(r.file), base))
	}
	if o.has("description") {
		allowed := fmt.Sprintf("a text of at most %d bytes", maxDescription)
		text, ok := o.fields["description"].str(allowed)
		if ok && len(text) > maxDescription {
			o.fields["description"].wrong(allowed)
		}
		s.Description = strings.TrimSpace(text)
	}
	s.Seed, _ = o.fields["seed"].integer(0, math.MaxInt64)
	s.Topology.Pool.Coordinators = 1
	if t, ok := o.fields["topology"].object("pool", "pools", "beside", "zoneless", "controllers", "gate",
		"joinEvery"); ok {
		t.pools(s)
		t.withBeside(o.has("eviction"), s)
		if t.has("controllers") {
			s.Topology.Controllers = t.fields["controllers"].boolean()
		}
		if t.has("gate") {
			s.Topology.Gate = t.fields["gate"].boolean()
			if s.Topology.Gate && !s.Topology.Has(Pool.hasGate) {
				t.fields["gate"].contradiction("no pool reads there: want one with a coordinator, whose hubs do not ask for " +
					"their certificates")
			}
		}
		if t.has("joinEvery") {
			s.Topology.JoinEvery = t.fields["joinEvery"].duration(maxJoinEvery)
		}
		for _, name := range []string{"controllers", "gate", "joinEvery"} {
			if t.has(name) && o.ofAKind() {
				t.fields[name].contradiction(
					"a scenario with eviction, autonomy, crowd or images says itself what runs, and when: leave it out")
			}
		}
		if len(s.Topology.More) > 0 && o.ofAKind() {
			t.fields["pools"].contradiction("a scenario with eviction, autonomy, crowd or images names one pool: want pool")
		}
	}
	o.study(s)
	if s.Workload.Alone > 0 && o.ofAKind() {
		o.fields["workload"].contradiction(
			"alone is measured where clients list and watch, and nothing else happens: leave it out")
	}
	if o.has("faults") {
		o.fields["faults"].faults(s)
	}
	if s.Batches = s.batches(); o.has("batches") {
		word, _ := o.fields["batches"].choice([]string{batchesAllowed, batchesRefused})
		s.Batches = word == batchesAllowed
	}
	s.Expectations = o.fields["expectations"].expectations(s)
}

// ofAKind reports whether the scenario is of a kind that has no clients of the testbed's.
func (o object) ofAKind() bool {
	return slices.ContainsFunc([]string{"eviction", "autonomy", "crowd", "images"}, o.has)
}

func (Watching) read(o object, s *Scenario) {
	s.Workload = o.fields["workload"].workload()
	s.Clients = o.fields["clients"].clients()
	s.Compare = []string{report.WayReference, report.WayStock}
	if o.has("compare") {
		s.Compare = o.fields["compare"].choices([]string{report.WayReference, report.WayStock})
	}
}

// withBeside reads what a topology has only if the scenario is about eviction.
func (o object) withBeside(eviction bool, s *Scenario) {
	for _, name := range []string{"beside", "zoneless"} {
		if o.has(name) && !eviction {
			o.fields[name].contradiction("no pod runs in this scenario: want it without, or eviction:")
			return
		}
	}
	if o.has("beside") {
		s.Topology.Beside = o.fields["beside"].beside(s.Topology.Pool.Name)
	}
	if o.has("zoneless") {
		s.Topology.Zoneless = o.fields["zoneless"].boolean()
	}
}

// name reads a name that Kubernetes takes as a label.
func (o object) name(field string, limit int) string {
	v := o.fields[field]
	allowed := fmt.Sprintf("text of at most %d lower case letters, digits and dashes, as harbour", limit)
	s, ok := v.str(allowed)
	if ok && (len(s) > limit || len(validation.IsDNS1123Label(s)) > 0) {
		v.wrong(allowed)
		return ""
	}
	return s
}

// count reads a field that is a number from 1 on.
func (o object) count(field string, to int) int { return o.fields[field].count(to) }

func (v value) rate() Rate {
	s, ok := v.str(rateHelp)
	if !ok {
		return 0
	}
	rate, err := parseRate(s)
	if err != nil {
		v.mistake(err.Error())
	}
	return rate
}

// bytes reads a size of a range.
func (v value) bytes(from, to int64, example string) int64 {
	allowed := fmt.Sprintf("a size from %dB to %dB, as %s", from, to, example)
	s, ok := v.scalar(allowed, "!!str", "!!int")
	if !ok {
		return 0
	}
	n, err := parseLimit(s, report.UnitBytes)
	if err != nil || n != math.Trunc(n) || n < float64(from) || n > float64(to) {
		v.wrong(allowed)
		return 0
	}
	return int64(n)
}

func (v value) duration(to time.Duration) time.Duration { return v.between(0, to) }

func (v value) between(from, to time.Duration) time.Duration {
	allowed := fmt.Sprintf("a duration from %v to %v with its unit, as 60ms", from, to)
	s, ok := v.str(allowed)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < from || d > to {
		v.wrong(allowed)
		return 0
	}
	return d
}

func (v value) workload() (w Workload) {
	o, ok := v.object("services", "endpoints", "widgets", "quiet", "changes", "changesPerSecond", "alone")
	if !ok {
		return w
	}
	w.Services = o.count("services", maxServices)
	w.Endpoints = o.count("endpoints", maxEndpoints)
	if o.has("widgets") {
		w.Widgets = o.count("widgets", maxServices)
	}
	if o.has("quiet") {
		w.Quiet = o.fields["quiet"].duration(maxQuiet)
	}
	changes, ok := o.fields["changes"].integer(0, maxChanges)
	w.Changes = int(changes)
	pace := o.fields["changesPerSecond"]
	switch {
	case !ok && pace.absent():
	case ok && w.Changes == 0:
		if !pace.absent() {
			pace.contradiction("there are no changes: want changes, or no changesPerSecond")
		}
	default:
		w.ChangesPerSecond, _ = pace.number(0.1, 1000)
	}
	if o.has("alone") {
		w.Alone = o.count("alone", maxAlone)
	}
	return w
}

func (v value) clients() []ClientKind {
	names := make([]string, 0, len(clientKinds))
	for _, k := range clientKinds {
		names = append(names, string(k))
	}
	allowed := "a list of " + strings.Join(names, ", ")
	if !v.absent() && v.node.Kind == yaml.SequenceNode && len(v.node.Content) == 0 {
		v.wrong(allowed + ": without a client nothing would be judged")
	}
	var kinds []ClientKind
	for _, item := range v.list(allowed) {
		one := "one of " + strings.Join(names, ", ")
		s, ok := item.str(one)
		switch {
		case !ok:
		case !slices.Contains(names, s):
			item.wrong(one + didYouMean(s, names))
		case slices.Contains(kinds, ClientKind(s)):
			item.mistake("it is there twice: every node runs one of each kind")
		default:
			kinds = append(kinds, ClientKind(s))
		}
	}
	return kinds
}

func (v value) expectations(s *Scenario) []Expectation {
	const allowed = "a list of expectations, each " + expectationHelp
	if !v.absent() && v.node.Kind == yaml.SequenceNode && len(v.node.Content) == 0 {
		v.wrong(allowed + ": a scenario that expects nothing cannot fail")
	}
	var list []Expectation
	lines := map[string]int{}
	proof, why := s.Study.proof()
	proven := proof == ""
	for _, item := range v.list(allowed) {
		text, ok := item.str(expectationHelp)
		if !ok {
			continue
		}
		e, err := ParseExpectation(text)
		if err != nil {
			item.mistake(err.Error())
			continue
		}
		if first, twice := lines[e.Metric+e.Op]; twice {
			item.contradiction(fmt.Sprintf("line %d states what %s is: want one expectation with %s of a metric", first,
				e.Metric, e.Op))
			continue
		}
		lines[e.Metric+e.Op] = item.line
		proven = proven || e.Metric == proof
		if why := s.unmeasuredBy(e.Metric); why != "" {
			item.contradiction(why)
			continue
		}
		list = append(list, e)
	}
	if !proven {
		v.contradiction(why)
	}
	return list
}

func (Watching) unmeasured(metric string, s *Scenario) string {
	for _, k := range kinds() {
		if why := k.unmeasured(metric, s); why != "" {
			return why
		}
	}
	lives := s.Topology.Has(func(p Pool) bool { return p.Lives != nil })
	failover := strings.HasPrefix(metric, "failover") && metric != "failover_cloud_bytes"
	switch {
	case len(s.Faults) == 0 && (strings.HasPrefix(metric, "failover") || slices.Contains(faultMetrics(), metric)):
		return metric + " is measured when a fault happens, and there is none"
	case failover && !s.any(func(e effect) bool { return e.leader }):
		return metric + " is measured when something happens to the leader: want a fault of target leader"
	case metric == "resync_bytes_share" && !s.RestartsAPIServer():
		return metric + " is measured when the apiserver ends: want a fault of target apiserver"
	case slices.Contains([]string{"late_certificates", "late_leaders"}, metric) && !lives:
		return metric + " is measured where hubs ask for their certificates: want topology.pool.lives"
	case slices.Contains([]string{"rotated_certificates", "dropped_streams"}, metric) && !lives && !s.Rotates():
		return metric + " is measured where certificates are renewed: want topology.pool.lives, or a fault rotate-authority"
	case metric == "bytes_per_change" && s.Workload.Changes == 0:
		return metric + " is measured when objects change: want workload.changes"
	case metric == "bytes_per_change_alone" && s.Workload.Alone == 0:
		return metric + " is measured when one object changes in a second: want workload.alone"
	case metric == "gate_connections" && !s.Topology.Gate:
		return metric + " is measured where pools read at a gate: want topology.gate"
	case strings.HasPrefix(metric, "stock_") && !slices.Contains(s.Compare, report.WayStock):
		return metric + " needs the stock way, and compare leaves it out"
	case strings.HasSuffix(metric, "_bytes_ratio") && !slices.Contains(s.Compare, report.WayReference):
		return metric + " needs the reference, and compare leaves it out"
	case !s.Topology.Has(func(p Pool) bool { return p.Coordinators > 0 }) &&
		(strings.HasPrefix(metric, "coordinator_") || metric == "cache_ready_seconds"):
		return metric + " is measured at the coordinator, and topology.pool.coordinators is 0"
	}
	return ""
}

// faultMetrics are measured only when faults happen.
func faultMetrics() []string {
	return []string{
		"new_cloud_connections", "new_pool_connections", "late_markers", "recovery_seconds_max", "resync_bytes_share",
		"fresh_seconds_max", "catch_up_bytes_share", "link_load_share", "grace_seconds_min",
	}
}
