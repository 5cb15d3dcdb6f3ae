package structure

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// What is wanted of impl. CONTRIBUTING.md says so to the one that adds to it.
const (
	MaxBackShare     = 0.05
	MaxLines         = 2350 // of code in a package, which end at 120 columns
	MaxFields        = 20   // of a struct that is no configuration
	MaxConfiguration = 40   // fields of one that is, its parts counted as one each
)

// Print writes the figures of the repository at root, and what is beyond what is wanted. The binaries are those in its
// bin/.
func Print(ctx context.Context, w io.Writer, root string) error {
	ps, err := Load(ctx, root, "./impl/...")
	if err != nil {
		return err
	}
	slices.SortFunc(ps, func(a, b Package) int { return b.Lines - a.Lines })
	fmt.Fprintf(w, "%-32s %6s %6s %7s %5s %5s\n", "package", "files", "lines", "arrows", "back", "")
	total, arrows, back := 0, 0, 0
	for _, p := range ps {
		fmt.Fprintf(w, "%-32s %6d %6d %7d %5d %4.0f%%%s\n", p.Path, p.Files, p.Lines, p.Arrows, len(p.Back),
			100*p.BackShare(), p.beyond())
		total, arrows, back = total+p.Lines, arrows+p.Arrows, back+len(p.Back)
	}
	fmt.Fprintf(w, "%-32s %6s %6d %7d %5d %4.0f%%\n\nstructs of more than %d fields:\n", "impl", "", total, arrows, back,
		100*float64(back)/float64(max(arrows, 1)), MaxFields)
	for _, p := range ps {
		for _, s := range p.Structs {
			if s.Fields > MaxFields {
				fmt.Fprintf(w, "  %s.%s %d%s\n", p.Path, s.Name, s.Fields,
					map[bool]string{true: " (configuration)"}[s.Configuration()])
			}
		}
	}
	for _, binary := range []string{"weir-hub", "weir-coordinator", "weir-manager", "weir-gate"} {
		n, err := flags(ctx, filepath.Join(root, "bin", binary))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "flags of %-17s %6d\n", binary, n)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return err
	}
	product, tests, err := lines(ctx, root)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%-26s %6d\n", "lines of README.md", bytes.Count(readme, []byte("\n")))
	fmt.Fprintf(w, "%-26s %6d and %d of tests\n", "lines of Go", product, tests)
	return nil
}

// beyond says what of a package is more than is wanted.
func (p Package) beyond() string {
	var out []string
	if p.BackShare() > MaxBackShare {
		out = append(out, fmt.Sprintf("more than %.0f %% of its arrows run back", 100*MaxBackShare))
	}
	if p.Lines > MaxLines {
		out = append(out, fmt.Sprintf("more than %d lines of code", MaxLines))
	}
	for _, s := range p.Structs {
		if s.Fields > MaxFields && !s.Configuration() || s.Fields > MaxConfiguration {
			out = append(out, "fields of "+s.Name)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "  " + strings.Join(out, ", ")
}

// flags counts the flags of a binary by its help.
func flags(ctx context.Context, binary string) (n int, err error) {
	help, err := exec.CommandContext(ctx, binary, "--help").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s --help: %w (make build makes it)", binary, err)
	}
	for line := range strings.Lines(string(help)) {
		line = strings.TrimSpace(line)
		if _, long, ok := strings.Cut(line, ", --"); strings.HasPrefix(line, "--") ||
			ok && strings.HasPrefix(line, "-") && long != "" {
			n++
		}
	}
	return n, nil
}

// lines counts those of the files that are committed or about to be, but generated ones.
func lines(ctx context.Context, root string) (product, tests int, err error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "*.go")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.FieldsSeq(string(names)) {
		if strings.HasPrefix(filepath.Base(name), "zz_generated") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		switch {
		case os.IsNotExist(err): // about to be removed
		case err != nil:
			return 0, 0, err
		case strings.HasSuffix(name, "_test.go"):
			tests += bytes.Count(text, []byte("\n"))
		default:
			product += bytes.Count(text, []byte("\n"))
		}
	}
	return product, tests, nil
}
