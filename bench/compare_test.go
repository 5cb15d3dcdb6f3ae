package bench

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompare: a row for each figure, marked where the medians are more than a tenth apart.
func TestCompare(t *testing.T) {
	one := func(part string, figures ...Figure) Report {
		return Report{
			Revision: "abc", Machine: "a | machine", Parts: []Measured{
				{Name: part, Config: "rounds " + figures[0].Unit, Figures: figures},
			},
		}
	}
	limit := AtMost(10, "somebody")
	a := one("hub", Figure{Name: "same", Unit: "ms", Samples: []float64{9, 10, 30}, Limit: limit},
		Figure{Name: "tenth", Unit: "ms", Samples: []float64{10}},
		Figure{Name: "gone", Unit: "s", Samples: []float64{3}}, Figure{Name: "none", Unit: "lists", Samples: []float64{0}},
		Figure{Name: "from none", Unit: "lists", Samples: []float64{0}}, Figure{Name: "not measured", Unit: "s"},
		Figure{Name: "half", Unit: "MB", Samples: []float64{2, 4, 6}})
	b := one("hub", Figure{Name: "same", Unit: "MB", Samples: []float64{10.5}, Limit: limit},
		Figure{Name: "tenth", Unit: "ms", Samples: []float64{11.01}},
		Figure{
			Name: "none", Unit: "lists", Samples: []float64{0},
		}, Figure{Name: "from none", Unit: "lists", Samples: []float64{2}},
		Figure{
			Name: "not measured", Unit: "s", Samples: []float64{1},
		}, Figure{Name: "half", Unit: "MB", Samples: []float64{2}})
	b.Parts = append(b.Parts, Measured{
		Name: "store", Figures: []Figure{{Name: "new | one", Unit: "MB", Samples: []float64{1}}},
	})
	got := Compare(a, b)
	for _, want := range []string{
		"| same | MB | 10 | 10.5 | 1.050 | ≤ 10, **missed** |", "| tenth | ms | 10 | 11 | (!) 1.101 | – |",
		"| gone | s | 3 | – | – | – |", "| none | lists | 0 | 0 | 1.000 | – |",
		"| from none | lists | 0 | 2 | (!) – | – |", "| not measured | s | – | 1 | – | – |",
		"| half | MB | 4 | 2 | (!) 0.500 | – |",
		"## store", `| new \| one | MB | – | 1 | – | – |`, `a \| machine`, "other flags: A rounds ms; B rounds MB.",
	} {
		if !strings.Contains(got, want+"\n") && !strings.Contains(got, want+"\n\n") {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "(!) "); n != 3 {
		t.Errorf("%d marks, want 3", n)
	}
}

// TestLoad reads committed reports, and says of what is none that it is none.
func TestLoad(t *testing.T) {
	for _, path := range []string{"../reports/bench", "../reports/bench/result.json", "../reports/peer"} {
		if r, err := Load(path); err != nil || r.Revision == "" || strings.Count(Compare(r, r), "1.000") < 20 {
			t.Errorf("%s: %v, beside itself:\n%s", path, err, Compare(r, r))
		}
	}
	if _, err := Load("/no/such"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for text, says := range map[string]string{
		"": "unexpected end", "[]": "cannot unmarshal", "{}": "no parts", `{"parts":[{}]}`: "no name",
		`{"parts":[{"name":"hub","figures":[{}]}]}`: "no name",
		strings.Repeat(" ", maxResult+1):            "more than 8388608 bytes",
	} {
		path := filepath.Join(t.TempDir(), resultFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "weir bench") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %q", text, err, says)
		}
	}
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a file without an end: %v", err)
	}
}
