package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBootID: the first file that says something counts, within a bound.
func TestBootID(t *testing.T) {
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	none, empty := filepath.Join(t.TempDir(), "none"), file("empty", " \n")
	long := file("long", strings.Repeat("x", 1000))
	for _, c := range []struct {
		files []string
		want  string
	}{
		{nil, ""},
		{[]string{none, empty, t.TempDir()}, ""},
		{[]string{none, file("a", "a1\n"), file("b", "b1\n")}, "a1"},
		{[]string{long}, strings.Repeat("x", maxBootID)},
	} {
		if got := BootID(c.files...); got != c.want {
			t.Errorf("%q: %q, want %q", c.files, got, c.want)
		}
	}
}
