package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSpecs(t *testing.T) {
	all := Specs()
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	if n := len(slices.Compact(sorted)); n != len(all) || n < 150 {
		t.Errorf("%d specs, %d different ones: want at least 150 and none twice", len(all), n)
	}
	again := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !Again(s) })
	if len(again) < 9 {
		t.Errorf("%d specs run again and again: %q", len(again), again)
	}
	for spec := range Deviations {
		if !slices.Contains(all, spec) {
			t.Errorf("the deviation %q is not one of the specs", spec)
		}
	}
	if _, err := Select(all, "there is none such"); err == nil {
		t.Error("an expression that matches nothing is taken")
	}
}

// ginkgo makes a report as ginkgo writes it.
func ginkgo(t *testing.T, states map[string]string) []byte {
	t.Helper()
	var all []outcome
	for name, state := range states {
		container, leaf, _ := strings.Cut(name, " ")
		o := outcome{ContainerHierarchyTexts: []string{container}, LeafNodeType: "It", LeafNodeText: leaf, State: state}
		o.Failure.Message = "expected\n  something"
		all = append(all, o)
	}
	data, err := json.Marshal([]map[string]any{{"SpecReports": all}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestVerdicts: each way in which a hub can be worse than kube-apiserver fails the run.
func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		straight, leader, follower []string // states, run after run
		want                       Verdict
	}{
		"fine":                      {[]string{"passed"}, []string{"passed", "passed"}, []string{"passed"}, Passed},
		"failed at a follower":      {[]string{"passed"}, []string{"passed"}, []string{"failed"}, Failed},
		"failed once of many":       {[]string{"passed"}, []string{"passed", "passed", "failed"}, []string{"passed"}, Failed},
		"panicked":                  {[]string{"passed"}, []string{"panicked"}, []string{"passed"}, Failed},
		"ran out of time":           {[]string{"passed"}, []string{"timedout"}, []string{"passed"}, Failed},
		"skipped only at a hub":     {[]string{"passed"}, []string{"skipped"}, []string{"passed"}, Failed},
		"fails straight, as well":   {[]string{"failed"}, []string{"failed"}, []string{"passed"}, Unjudged},
		"ended before the follower": {[]string{"passed"}, []string{"passed"}, nil, NotRun},
		"ended before the hubs":     {[]string{"passed"}, nil, nil, NotRun},
		"skipped everywhere":        {[]string{"skipped"}, []string{"skipped"}, []string{"skipped"}, Skipped},
	} {
		t.Run(name, func(t *testing.T) {
			const spec = "[sig-test] does something"
			r := Result{Specs: map[string]*Row{}}
			for way, states := range map[Way][]string{Straight: c.straight, Leader: c.leader, Follower: c.follower} {
				for _, state := range states {
					got, err := outcomes(ginkgo(t, map[string]string{spec: state, "[sig-test] does something else": "passed"}),
						[]string{spec})
					if err != nil || len(got) != 1 {
						t.Fatalf("%v, %d outcomes", err, len(got))
					}
					r.add(column(way, 0), got[0])
				}
			}
			if got := r.Verdict(spec); got != c.want {
				t.Errorf("the verdict is %q, want %q", got, c.want)
			}
			if counts := r.Judge(); r.Passed != (c.want == Passed) {
				t.Errorf("passed is %v with %v", r.Passed, counts)
			}
			dir := t.TempDir()
			if err := r.Write(dir, "again"); err != nil {
				t.Fatal(err)
			}
			summary, err := os.ReadFile(filepath.Join(dir, "summary.md"))
			if err != nil || !strings.Contains(string(summary), "| "+spec+" | "+string(c.want)+" |") {
				t.Errorf("%v: the summary does not tell the verdict:\n%s", err, summary)
			}
		})
	}
}

// TestMissingSpec: a spec that ginkgo did not find is an error, not a spec less.
func TestMissingSpec(t *testing.T) {
	if _, err := outcomes(ginkgo(t, map[string]string{"[sig-test] does something": "passed"}),
		[]string{"[sig-test] does something", "[sig-test] is gone"}); err == nil {
		t.Error("a report without one of the specs is taken")
	}
}

// mortal is a part that ends as soon as it was started; the second start fails, the third is the last.
type mortal struct {
	started int
	done    chan struct{}
	last    func()
}

func (m *mortal) Name() string          { return "mortal" }
func (m *mortal) Done() <-chan struct{} { return m.done }

func (m *mortal) Start(context.Context) error {
	switch m.started++; m.started {
	case 2:
		return errors.New("not now")
	case 3:
		m.last()
	}
	return nil
}

// TestKeep: a controller that ends is started again, each time, also after a start that failed.
func TestKeep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &mortal{done: make(chan struct{}), last: cancel}
	close(m.done)
	var said []string
	keep(ctx, m, func(s string) { said = append(said, s) })
	if m.started != 3 || len(said) != 4 {
		t.Errorf("started %d times, said %q", m.started, said)
	}
}

// TestJudgedDown: only what passes straight is worth another look.
func TestJudgedDown(t *testing.T) {
	passed, failed := &Count{Passed: 1}, &Count{Failed: 1}
	r := &Result{Specs: map[string]*Row{
		"fine": {
			Columns: map[string]*Count{string(Straight): passed, string(Leader): passed, string(Follower): passed},
		},
		"worse": {
			Columns: map[string]*Count{string(Straight): passed, string(Leader): passed, string(Follower): failed},
		},
		"bad by itself": {
			Columns: map[string]*Count{string(Straight): failed, string(Leader): failed, string(Follower): failed},
		},
	}}
	for spec, want := range map[string]bool{"fine": false, "worse": true, "bad by itself": false, "never run": false} {
		if got := r.judgedDown(spec); got != want {
			t.Errorf("%s: %v", spec, got)
		}
	}
}
