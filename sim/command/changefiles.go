package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/change"
)

// The files of a report of a change.
const (
	changeJSON  = "report.json"
	changeText  = "report.md"
	changePage  = "report.html"
	changeJUnit = "junit.xml"
)

// writeChange writes the files of a report, prints it, and returns its error.
func writeChange(dir string, r *change.Report, stdout io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the report: %w", err)
	}
	page, err := r.Page()
	if err != nil {
		return err
	}
	var data, junit bytes.Buffer
	if err := errors.Join(r.WriteJSON(&data), change.WriteJUnit(&junit, r.Runs)); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		changeJSON: data.Bytes(), changeText: []byte(r.Markdown()), changePage: page, changeJUnit: junit.Bytes(),
		change.PictureFile: r.Picture(),
	} {
		path := filepath.Join(dir, name)
		if content == nil {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprint(stdout, r.Markdown())
	return r.Err()
}

// dropChange removes what writeChange wrote before: an interrupted report leaves none of another revision.
func dropChange(dir string) error {
	for _, name := range []string{changeJSON, changeText, changePage, changeJUnit, change.PictureFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the report before: %w", err)
		}
	}
	return nil
}

func loadChange(path string) (*change.Report, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, changeJSON)
	}
	f, err := os.Open(path)
	const want = "a " + changeJSON + " of weir report change, or its folder"
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usage("argument", path, want)
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := change.Read(f)
	if err != nil {
		return nil, cli.Usage("argument", path, want+": "+err.Error())
	}
	return &r, nil
}

// reportJudge judges and writes a stored report again, by the bands of now.
func reportJudge(fs *pflag.FlagSet) commands.Run {
	bandsFile := fs.String("bands", defaultBands, "what figures differ by from themselves")
	out := fs.String("out", "reports/out/judged", "folder of the files")
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		bands, err := loadBands(*bandsFile)
		if err != nil {
			return err
		}
		r, err := loadChange(args[0])
		if err != nil {
			return err
		}
		r.Finish(bands)
		return writeChange(*out, r, stdout)
	}
}

// reportBands learns from reports of changes that change nothing by what share figures differ from themselves.
func reportBands(_ *pflag.FlagSet) commands.Run {
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		if len(args) == 0 {
			return cli.Usage("arguments", "", "reports whose base and head are the same")
		}
		var reports []*change.Report
		for _, path := range args {
			r, err := loadChange(path)
			if err != nil {
				return err
			}
			reports = append(reports, r)
		}
		bands := change.Learn(reports...)
		fmt.Fprintf(stdout,
			"# by what share of itself a figure differs where nothing changed, the most of %d reports: weir report bands "+
				"REPORT…\n", len(reports))
		names := make([]string, 0, len(bands))
		for name := range bands {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(stdout, "%s\t%.5f\n", name, bands[name])
		}
		return nil
	}
}

const defaultBands = "reports/baseline/bands.tsv"

// loadBands reads what reportBands prints. A file that is not there has none.
func loadBands(path string) (change.Bands, error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && path == defaultBands:
		return nil, nil
	case err != nil:
		return nil, cli.Usage("--bands", path, err.Error())
	}
	defer f.Close()
	bands := change.Bands{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, share, ok := strings.Cut(line, "\t")
		v, err := strconv.ParseFloat(share, 64)
		if !ok || err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, cli.Usage(fmt.Sprintf("--bands, line %d of %s", n, path), line,
				"the name of a figure, a tab, and a share of at least 0")
		}
		bands[name] = v
	}
	return bands, lines.Err()
}

// reportHistory adds a line for a side of a report, and draws the page.
func reportHistory(fs *pflag.FlagSet) commands.Run {
	file := fs.String("file", "reports/history.tsv", "the table")
	page := fs.String("page", "reports/out/history.html", "the page that plots it")
	side := fs.String("side", change.SideHead,
		"whose line: head; or base, for a revision of before, which the testbed of now has measured")
	limit := fs.Float64("drift", 0.03,
		"fail if a figure grew by more than this share over the last --last landed changes; what grew where a loss was "+
			"accepted does not count")
	bandsFile := fs.String("bands", defaultBands, "what figures differ by from themselves, which is no drift")
	last := fs.Int("last", 20, "landed changes over which small losses are added up, 2 or more")
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		switch {
		case len(args) > 1:
			return cli.Usage("arguments", strings.Join(args, " "), "one report at most")
		case *side != change.SideHead && *side != change.SideBase:
			return cli.Usage("--side", *side, "head or base")
		case *last < 2:
			return cli.Usage("--last", fmt.Sprint(*last), "2 or more")
		case !(*limit >= 0):
			return cli.Usage("--drift", fmt.Sprint(*limit), "0 or more")
		}
		bands, err := loadBands(*bandsFile)
		if err != nil {
			return err
		}
		var h change.History
		data, err := os.ReadFile(*file)
		switch {
		case err == nil:
			if h, err = change.ReadHistory(data); err != nil {
				return fmt.Errorf("%s: %w", *file, err)
			}
		case !errors.Is(err, os.ErrNotExist):
			return err
		}
		if len(args) == 1 {
			r, err := loadChange(args[0])
			if err != nil {
				return err
			}
			h.Add(r, *side)
			if err := os.WriteFile(*file, []byte(h.String()), 0o644); err != nil {
				return err
			}
		}
		drawn, err := h.Page()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(*page), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(*page, drawn, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%d landed changes: %s\n", len(h.Rows), *page)
		if grown := h.Drift(*last, *limit, bands); len(grown) > 0 {
			return fmt.Errorf("figures drifted over the last %d landed changes: %s", *last, strings.Join(grown, "; "))
		}
		return nil
	}
}

// machine is what figures were measured on.
func machine() string {
	s := fmt.Sprintf("%s/%s, %d processors, %s", goruntime.GOOS, goruntime.GOARCH, goruntime.NumCPU(), goruntime.Version())
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		s += ", kernel " + strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 0 {
			s += ", load " + f[0] + " when it began"
		}
	}
	return s
}
