package parts

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestShift: the package time that this testbed is built with can be shifted. One that tells the time in another way is
// refused, and not left as it is.
func TestShift(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(runtime.GOROOT(), "src", "time", "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	shifted, err := shift(source)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(shifted), "clockAhead"); n != 2 {
		t.Errorf("clockAhead is there %d times, want where it is set and in Now", n)
	}
	for _, bad := range []string{
		"", string(source) + nowOfGo,
		strings.Replace(string(source), "sec, nsec, mono := runtimeNow()", "sec, nsec, mono := now()", 1),
	} {
		if _, err := shift([]byte(bad)); err == nil {
			t.Error("a package that tells the time in another way is taken")
		}
	}
}
