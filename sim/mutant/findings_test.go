package mutant

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	named   = regexp.MustCompile("`((?:impl|sim)/[a-z/]+)`|\\b(Test[A-Z]\\w*)|\\battacks? ([0-9][0-9a-z, ]*[0-9a-z])")
	number  = regexp.MustCompile(`\b[0-9]+[a-z]?\b`)
	finding = regexp.MustCompile(`^\| (\w+(?:-\w+)?) \|`)
)

// TestFindings: each test and each attack that docs/findings.md or reports/TRACK-RECORD.md names is there, and a
// finding without one says that it is answered.
func TestFindings(t *testing.T) {
	dir := root(t)
	var text []byte
	for _, file := range []string{"docs/findings.md", "reports/TRACK-RECORD.md"} {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, b...)
	}
	attacks := ""
	files, err := filepath.Glob(filepath.Join(dir, "sim", "attack", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		attacks += string(b)
	}
	tests, rows := map[string][]string{}, 0
	for line := range strings.Lines(string(text)) {
		row := finding.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		rows++
		cells := strings.Split(line, " | ")
		shown, in := 0, ""
		for _, m := range named.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			switch {
			case m[1] != "":
				in = m[1]
				if tests[in] == nil {
					tests[in] = testsOf(t, filepath.Join(dir, in))
				}
			case m[2] != "":
				shown++
				if !slices.Contains(tests[in], m[2]) {
					t.Errorf("%s: there is no %s in %s", row[1], m[2], in)
				}
			default:
				for _, n := range number.FindAllString(m[3], -1) {
					shown++
					if !strings.Contains(attacks, `"`+n+`"`) {
						t.Errorf("%s: there is no attack %s", row[1], n)
					}
				}
			}
		}
		if shown == 0 && !strings.Contains(line, "nswered*") && !strings.Contains(line, "as C-") {
			t.Errorf("%s: nothing shows it, and no answer says why", row[1])
		}
	}
	if rows < 55 {
		t.Errorf("%d findings are listed", rows)
	}
}
