package check

import (
	"errors"
	"strings"
	"testing"
)

// TestReport: only what is known to be well is a success, in each form.
func TestReport(t *testing.T) {
	for _, test := range []struct {
		err     error
		success bool
		short   string
	}{
		{nil, true, ""},
		{warn("it is %s", "old"), true, "‼ pool a: it is\n    it is old\n    see " + Hints + "x\n"},
		{errors.New("a\n b"), false, "× pool a: it is\n    a; b\n    see " + Hints + "x\nStatus check results are ×\n"},
		{
			skip{errors.New("forbidden")}, false, "- pool a: it is\n    forbidden\n    see " + Hints +
				"x\nStatus check results are ×\n",
		},
	} {
		r := Report{Success: true}
		one := result("x", "it is", test.err)
		one.Pool = "a"
		r.add("pools", one)
		var b strings.Builder
		if err := r.Write(&b, "short"); err != nil || r.Success != test.success || b.String() != test.short {
			t.Errorf("%v: success %v, prints\n%s", test.err, r.Success, &b)
		}
	}
}
