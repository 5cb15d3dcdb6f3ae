package attack

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// open are attacks that succeed today, and what is missing. A change that mends one takes it out.
func open() map[string]string {
	return map[string]string{}
}

// TestAttacks plays the quick attacks: each has to be refused, beside a control that goes well.
func TestAttacks(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a control plane and some forty processes")
	}
	attacks, err := Select(All(), nil, true)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Run(t.Context(), attacks, Options{LogDir: t.TempDir(), Progress: func(m string) { t.Log(m) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(attacks) {
		t.Fatalf("%d rows of %d attacks", len(rows), len(attacks))
	}
	for _, r := range rows {
		if why := open()[r.Number]; why != "" {
			t.Logf("attack %s: %s; it is known that %s", r.Number, r.Verdict, why)
			continue
		}
		if r.Verdict != Refused {
			t.Errorf(
				"attack %s (%s), %s: %s\n  expected: %s\n  seen: %s\n  control: %s", r.Number, r.Position, r.Goal,
				r.Verdict, r.Expected, r.Seen, r.Control,
			)
		}
	}
}

// TestTable: the table is complete, and every attack says what a reader has to know.
func TestTable(t *testing.T) {
	attacks := All()
	numbers := map[string]bool{}
	for _, a := range attacks {
		if a.Goal == "" || a.Sent == "" || a.Expected == "" || a.Control == "" || a.Position == "" || a.place == nil {
			t.Errorf("attack %s: a field is empty", a.Number)
		}
		if numbers[a.Number] {
			t.Errorf("attack %s is there twice", a.Number)
		}
		numbers[a.Number] = true
		if len(a.asks) == 0 && a.play == nil {
			t.Errorf("attack %s tries nothing", a.Number)
		}
	}
	for n := 1; n <= 71; n++ {
		if !slices.ContainsFunc(attacks, func(a Attack) bool { return compareNumbers(a.Number, strconv.Itoa(n)) == 0 }) {
			t.Errorf("attack %d of the review is missing", n)
		}
	}
	if !slices.IsSortedFunc(attacks, func(a, b Attack) int { return compareNumbers(a.Number, b.Number) }) {
		t.Error("the table is not in order")
	}
}

func TestSelect(t *testing.T) {
	all := []Attack{{Number: "9"}, {Number: "9b", Slow: true}, {Number: "10"}}
	for _, c := range []struct {
		only  []string
		quick bool
		want  string
	}{
		{nil, false, "9 9b 10"}, {nil, true, "9 10"}, {[]string{"9"}, true, "9 9b"},
		{[]string{"9b", "10"}, false, "9b 10"},
	} {
		got, err := Select(all, c.only, c.quick)
		var numbers []string
		for _, a := range got {
			numbers = append(numbers, a.Number)
		}
		if s := strings.Join(numbers, " "); s != c.want || err != nil {
			t.Errorf("%v, quick %t: %q, %v, want %q", c.only, c.quick, s, err, c.want)
		}
	}
	if _, err := Select(all, []string{"11"}, false); err == nil || !strings.Contains(err.Error(), "11") {
		t.Errorf("a number that is not there: %v", err)
	}
}

var errLost = errors.New("lost")

// TestVerdict: nothing passes that was not tried, or beside a control that failed.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		play func(*scene)
		want Verdict
	}{
		"refused": {func(x *scene) { x.judge(true, "a"); x.control(true, "b") }, Refused},
		"one of two succeeds": {
			func(x *scene) { x.judge(true, "a"); x.judge(false, "a"); x.control(true, "b") }, Succeeded,
		},
		"the control fails": {func(x *scene) { x.judge(true, "a"); x.control(false, "b") }, NoControl},
		"no control":        {func(x *scene) { x.judge(true, "a") }, NoControl},
		"nothing was tried": {func(x *scene) { x.control(true, "b") }, NotAttempted},
		"an error": {
			func(x *scene) { x.judge(true, "a"); x.control(true, "b"); x.fail(errLost) }, NotAttempted,
		},
		"a success and an error": {func(x *scene) { x.judge(false, "a"); x.fail(errLost) }, Succeeded},
	} {
		x := &scene{}
		c.play(x)
		if got := x.verdict(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
