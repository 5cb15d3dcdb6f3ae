package mutant

import (
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

//go:embed list/*.yaml
var lists embed.FS

// Mutant is a planted bug.
type Mutant struct {
	Name  string `json:"name"`
	Area  string `json:"area"` // the list's file
	File  string `json:"file"` // from the root of the repository
	In    string `json:"in"`   // Function, Type.Method, or a constant or variable of the package
	Old   string `json:"old"`  // found once in it; any white space is as good as any other
	New   string `json:"new"`
	Why   string `json:"why"` // what would go wrong for a user
	Check Check  `json:"check"`
}

// Check is what must catch it.
type Check struct {
	Package string   `json:"package"`           // folder, from the root of the repository
	Run     string   `json:"run"`               // as go test -run
	Args    []string `json:"args,omitempty"`    // of the test binary
	Target  Target   `json:"target,omitempty"`  // of make; empty: test
	Alone   bool     `json:"alone,omitempty"`   // it starts servers of fixed ports, or a control plane
	Seconds int      `json:"seconds,omitempty"` // until it counts as hung; 0: 120
}

// Target is the target of make that runs a check.
type Target string

// The targets.
const (
	Test     Target = "test"
	Race     Target = "race" // a part of test
	Simulate Target = "simulate"
)

const (
	usualSeconds = 120
	mostSeconds  = 900
)

func (c Check) String() string {
	s := c.Package + " " + c.Run
	if len(c.Args) > 0 {
		s += " " + strings.Join(c.Args, " ")
	}
	return s
}

// key tells checks apart.
func (c Check) key() string { return fmt.Sprint(c.String(), c.Target) }

// has reports whether go test -run takes a test for one of the check's.
func (c Check) has(test string) bool {
	names := strings.Split(test, "/")
	for i, pattern := range strings.Split(c.Run, "/") {
		if i < len(names) && !regexp.MustCompile(pattern).MatchString(names[i]) {
			return false
		}
	}
	return true
}

func (c Check) limit() time.Duration { return time.Duration(c.Seconds) * time.Second }

// All returns the list, by area and as it is written.
func All() ([]Mutant, error) {
	entries, err := lists.ReadDir("list")
	if err != nil {
		return nil, fmt.Errorf("read the list of mutants: %w", err)
	}
	var all []Mutant
	for _, e := range entries {
		text, err := lists.ReadFile("list/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("read the list of mutants: %w", err)
		}
		ms, err := parse(strings.TrimSuffix(e.Name(), ".yaml"), text)
		if err != nil {
			return nil, fmt.Errorf("list/%s: %w", e.Name(), err)
		}
		all = append(all, ms...)
	}
	return all, unique(all)
}

func parse(area string, text []byte) ([]Mutant, error) {
	var ms []Mutant
	if err := yaml.UnmarshalStrict(text, &ms); err != nil {
		return nil, err
	}
	for i := range ms {
		m := &ms[i]
		m.Area = area
		if m.Check.Target == "" {
			m.Check.Target = Test
		}
		if m.Check.Seconds == 0 {
			m.Check.Seconds = usualSeconds
		}
		if err := m.validate(); err != nil {
			return nil, fmt.Errorf("mutant %d, %q: %w", i+1, m.Name, err)
		}
	}
	return ms, nil
}

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (m *Mutant) validate() error {
	for field, v := range map[string]string{
		"file": m.File, "in": m.In, "old": m.Old, "why": m.Why, "check.package": m.Check.Package, "check.run": m.Check.Run,
	} {
		if strings.TrimSpace(v) == "" {
			return fmt.Errorf("%s is empty", field)
		}
	}
	switch c := m.Check; {
	case !nameForm.MatchString(m.Name):
		return fmt.Errorf("name %q: want words of small letters and digits with - between", m.Name)
	case path.Clean(m.File) != m.File || strings.HasPrefix(m.File, "..") || !strings.HasSuffix(m.File, ".go"):
		return fmt.Errorf("file %q: want a .go file, from the root of the repository", m.File)
	case !slices.Contains([]Target{Test, Race, Simulate}, c.Target):
		return fmt.Errorf("check.target %q: want %s, %s or %s", c.Target, Test, Race, Simulate)
	case c.Seconds < 1 || c.Seconds > mostSeconds:
		return fmt.Errorf("check.seconds %d: want 1 to %d", c.Seconds, mostSeconds)
	}
	if _, err := regexp.Compile(m.Check.Run); err != nil {
		return fmt.Errorf("check.run: %w", err)
	}
	return nil
}

func unique(ms []Mutant) error {
	seen := map[string]bool{}
	for _, m := range ms {
		if seen[m.Name] {
			return fmt.Errorf("two mutants are named %s", m.Name)
		}
		seen[m.Name] = true
	}
	return nil
}

// Select returns the mutants with one of some names and of one of some areas; no name, or no area, means any.
func Select(ms []Mutant, names, areas []string) ([]Mutant, error) {
	knows := func(what string, words []string, of func(Mutant) string) error {
		for _, w := range words {
			if !slices.ContainsFunc(ms, func(m Mutant) bool { return of(m) == w }) {
				return fmt.Errorf("there is no %s %q", what, w)
			}
		}
		return nil
	}
	name, area := func(m Mutant) string { return m.Name }, func(m Mutant) string { return m.Area }
	if err := knows("mutant", names, name); err != nil {
		return nil, err
	}
	if err := knows("area", areas, area); err != nil {
		return nil, err
	}
	var chosen []Mutant
	for _, m := range ms {
		if (len(names) == 0 || slices.Contains(names, m.Name)) && (len(areas) == 0 || slices.Contains(areas, m.Area)) {
			chosen = append(chosen, m)
		}
	}
	return chosen, nil
}
