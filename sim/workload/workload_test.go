package workload_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/sim/workload"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leaping is a clock on which nobody waits: a timer leaps to its end.
type leaping struct{ *clocktesting.FakeClock }

func newClock() leaping {
	return leaping{clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))}
}

func (c leaping) NewTimer(d time.Duration) clock.Timer {
	t := c.FakeClock.NewTimer(d)
	c.Step(d)
	return t
}

func config(seed int64) workload.Config {
	return workload.Config{
		Seed: seed, Services: 7, Endpoints: 130, Nodes: []string{"harbour-1", "harbour-2", "quay-east-1"}, Clock: newClock(),
	}
}

// run fills and churns, and returns what was written in each and the changes that were told.
func run(t *testing.T, c workload.Config, changes int) (filled, churned []string, told []workload.Change, r *recorder) {
	t.Helper()
	r = &recorder{}
	client := r.client(t)
	w := workload.New(c)
	if err := w.Fill(t.Context(), client, nil); err != nil {
		t.Fatal(err)
	}
	filled = r.lines(t)
	slices.Sort(filled) // eight writers
	n := len(r.writes)
	if err := w.Churn(t.Context(), client, changes, 10, nil, func(c workload.Change) { told = append(told, c) }); err !=
		nil {
		t.Fatal(err)
	}
	return filled, r.lines(t)[n:], told, r
}

func TestOneSeedOneWorkload(t *testing.T) {
	filled, churned, _, _ := run(t, config(3), 100)
	filledAgain, churnedAgain, _, _ := run(t, config(3), 100)
	if diff := cmp.Diff(filled, filledAgain); diff != "" {
		t.Errorf("fill differs:\n%s", diff)
	}
	if diff := cmp.Diff(churned, churnedAgain); diff != "" {
		t.Errorf("churn differs:\n%s", diff)
	}
	filledOther, churnedOther, _, _ := run(t, config(4), 100)
	if slices.Equal(filled, filledOther) || slices.Equal(churned, churnedOther) {
		t.Error("another seed writes the same")
	}
}

func TestChanges(t *testing.T) {
	const changes = 200
	_, churned, told, r := run(t, config(1), changes)
	kinds, writes := map[workload.Kind]int{}, 0
	for _, c := range told {
		kinds[c.Kind]++
		writes += len(c.Writes)
		want := []string{"update endpointslices", "update endpoints"}
		switch c.Kind {
		case workload.Created:
			want = []string{"create endpointslices"}
		case workload.Hidden, workload.Shown:
			want = []string{"update endpointslices"}
		case workload.Deleted:
			want = []string{"delete endpointslices"}
		}
		var got []string
		for _, w := range c.Writes {
			got = append(got, w.Verb+" "+w.Resource)
			if (w.ResourceVersion == "") != (w.Verb == "delete") || w.Namespace != c.Namespace {
				t.Errorf("change %+v: write %+v", c, w)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: wrote %v, want %v", c.Kind, got, want)
		}
	}
	if got := kinds[workload.Flipped] + kinds[workload.Replaced]; got != changes {
		t.Errorf("%d endpoint changes, want %d", got, changes)
	}
	for _, k := range []workload.Kind{
		workload.Flipped, workload.Replaced, workload.Created, workload.Hidden, workload.Shown, workload.Deleted,
	} {
		if kinds[k] < 3 {
			t.Errorf("%d changes of kind %s, want some", kinds[k], k)
		}
	}
	if writes != len(churned) {
		t.Errorf("told of %d writes of %d", writes, len(churned))
	}
	if last := told[len(told)-1]; last.Number != changes {
		t.Errorf("the last change is number %d, want %d", last.Number, changes)
	}
	checkAgreement(t, r, 7, 130)
}

// checkAgreement: the slices of a Service, extra ones aside, and its Endpoints say the same.
func checkAgreement(t *testing.T, r *recorder, services, size int) {
	t.Helper()
	sliceObjects, endpointsObjects := r.state()
	bySlice := map[string]map[string]bool{}
	for _, sl := range sliceObjects {
		key := sl.Namespace + "/" + sl.Labels[discoveryv1.LabelServiceName]
		if bySlice[key] == nil {
			bySlice[key] = map[string]bool{}
		}
		if len(sl.Endpoints) <= 5 { // extra
			continue
		}
		for _, e := range sl.Endpoints {
			bySlice[key][e.Addresses[0]+" "+string(e.TargetRef.UID)] = *e.Conditions.Ready
		}
	}
	if len(endpointsObjects) != services {
		t.Errorf("%d Endpoints, want %d", len(endpointsObjects), services)
	}
	for key, e := range endpointsObjects {
		got := map[string]bool{}
		for _, a := range e.Subsets[0].Addresses {
			got[a.IP+" "+string(a.TargetRef.UID)] = true
		}
		for _, a := range e.Subsets[0].NotReadyAddresses {
			got[a.IP+" "+string(a.TargetRef.UID)] = false
		}
		if len(got) != size {
			t.Errorf("%s has %d endpoints, want %d", key, len(got), size)
		}
		if diff := cmp.Diff(bySlice[key], got); diff != "" {
			t.Errorf("%s (-slices +Endpoints):\n%s", key, diff)
		}
	}
}

// TestObjects compares one Service and what the controllers make of it with a golden file, for a reviewer who knows
// how real ones look.
func TestObjects(t *testing.T) {
	r := &recorder{}
	c := config(1)
	c.Services, c.Endpoints = 1, 2
	if err := workload.New(c).Fill(t.Context(), r.client(t), nil); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, w := range r.writes {
		data, err := json.MarshalIndent(w.object, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(w.what + "\n" + string(data) + "\n")
	}
	const golden = "testdata/objects.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestPace(t *testing.T) {
	for _, test := range []struct {
		changes   int
		perSecond float64
		want      time.Duration
	}{{21, 10, 2 * time.Second}, {2, 0.5, 2 * time.Second}, {50, 0, 0}, {0, 10, 0}} {
		c := config(1)
		clk := newClock()
		c.Clock = clk
		w := workload.New(c)
		client := (&recorder{}).client(t)
		var filled, churned []int
		if err := w.Fill(t.Context(), client, func(done, total int) { filled = append(filled, done, total) }); err != nil {
			t.Fatal(err)
		}
		if n := len(filled); n != 2*w.Objects() || filled[n-2] != filled[n-1] {
			t.Errorf("progress of fill was told %d times and ended with %v, want %d objects", n/2, filled[n-2:], w.Objects())
		}
		before := clk.Now()
		if err := w.Churn(t.Context(), client, test.changes, test.perSecond,
			func(done, _ int) { churned = append(churned, done) }, nil); err != nil {
			t.Fatal(err)
		}
		if got := clk.Since(before); got != test.want || len(churned) != test.changes {
			t.Errorf("%d changes at %v per second took %v with %d calls, want %v", test.changes, test.perSecond, got,
				len(churned), test.want)
		}
	}
}

func TestErrors(t *testing.T) {
	r := &recorder{}
	client := r.client(t)
	for _, c := range []workload.Config{
		{}, {Services: 1, Endpoints: 1}, {Services: 1, Endpoints: 1001, Nodes: []string{"a"}},
		{Services: 10_001, Endpoints: 1, Nodes: []string{"a"}},
	} {
		w := workload.New(c)
		if w.Fill(t.Context(), client, nil) == nil || w.Churn(t.Context(), client, 1, 0, nil, nil) == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	w := workload.New(config(1))
	if err := w.Churn(t.Context(), client, 1, 0, nil, nil); err == nil || !strings.Contains(err.Error(), "Fill") {
		t.Errorf("churn of an empty cloud: %v", err)
	}
	if err := w.Fill(t.Context(), client, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := w.Churn(ctx, client, 10, 10, nil, func(c workload.Change) {
		if c.Number == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled after change 3: %v", err)
	}
	r.broken = true
	if err := w.Churn(t.Context(), client, 1, 0, nil, nil); err == nil ||
		!strings.Contains(err.Error(), "update endpointslices") {
		t.Errorf("a server that is broken: %v", err)
	}
	if err := workload.New(config(1)).Fill(t.Context(), client, nil); err == nil ||
		!strings.Contains(err.Error(), "create namespace") {
		t.Errorf("a server that is broken: %v", err)
	}
}

// TestApart: each change is of one object, in its turn.
func TestApart(t *testing.T) {
	c, r := config(1), &recorder{}
	clk := newClock()
	c.Clock = clk
	client, w := r.client(t), workload.New(c)
	if err := w.Apart(t.Context(), client, 2, time.Second, nil); err == nil || !strings.Contains(err.Error(), "Fill") {
		t.Errorf("changes in an empty cloud: %v", err)
	}
	if err := w.Fill(t.Context(), client, nil); err != nil {
		t.Fatal(err)
	}
	before, n := clk.Now(), len(r.writes)
	var told []string
	if err := w.Apart(t.Context(), client, 4, time.Second, func(c workload.Change) {
		for _, w := range c.Writes {
			told = append(told, w.Verb+" "+w.Resource)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if got := clk.Since(before); got != 3*time.Second || len(r.writes)-n != 4 {
		t.Errorf("four changes took %v and %d writes, want 3s and 4", got, len(r.writes)-n)
	}
	want := []string{"update endpointslices", "update endpoints", "update endpointslices", "update endpoints"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	checkAgreement(t, r, 7, 130)
	r.broken = true
	if err := w.Apart(t.Context(), client, 1, 0, nil); err == nil || !strings.Contains(err.Error(), "change 1 of 1") {
		t.Errorf("a server that is broken: %v", err)
	}
}
