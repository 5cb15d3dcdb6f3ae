package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weir-edge/weir/impl/disk"
)

// The files of a report.
const (
	summaryFile = "summary.md"
	pageFile    = "report.html"
	bytesFile   = "bytes.svg"
	resultFile  = "result.json"
	indexFile   = "index.html"
)

// Write writes the report of r into dir, which it creates. result.json comes last: where it is, all is.
func Write(dir string, r Result) error {
	r = r.clean()
	page, err := Page(r)
	if err != nil {
		return fmt.Errorf("report on %s: %w", r.Scenario, err)
	}
	plot, err := Plot(r)
	if err != nil {
		return fmt.Errorf("report on %s: %w", r.Scenario, err)
	}
	result, err := marshal(r)
	if err != nil {
		return fmt.Errorf("report on %s: %w", r.Scenario, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder of report: %w", err)
	}
	files := []struct {
		name string
		data []byte
	}{{summaryFile, []byte(Summary(r))}, {pageFile, page}, {bytesFile, plot}, {resultFile, result}}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if f.data == nil {
			// What an earlier run left must not pass for this one's.
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("remove old %s: %w", f.name, err)
			}
			continue
		}
		if err := writeFile(path, f.data); err != nil {
			return err
		}
	}
	return nil
}

// WriteIndex writes index.html and summary.md above the reports of entries into dir.
func WriteIndex(dir string, entries []Entry) error {
	page, err := Index(entries)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder of index: %w", err)
	}
	if err := writeFile(filepath.Join(dir, summaryFile), []byte(IndexSummary(entries))); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, indexFile), page)
}

// WriteOutcome writes the one object of `--output json`.
func WriteOutcome(w io.Writer, r Result) error {
	data, err := marshal(r.clean().Outcome)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// ErrNoScenario is of a file that is no result of a scenario.
var ErrNoScenario = errors.New("it names no scenario")

// maxResult bounds what Load reads.
const maxResult = 256 << 20

// Load reads the result of the report in dir, or the result file at that path.
func Load(path string) (Result, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, resultFile)
	}
	data, err := disk.ReadFile(path, maxResult)
	if err != nil {
		return Result{}, fmt.Errorf("load report: %w: run the scenario first", err)
	}
	var of struct{ Scenario string }
	if err := json.Unmarshal(data, &of); err != nil {
		return Result{}, fmt.Errorf("load report %s: %w", path, err)
	}
	if of.Scenario == "" { // others write a file of that name, too, whose fields are of other types
		return Result{}, fmt.Errorf("load report %s: %w: want a %s that weir wrote", path, ErrNoScenario, resultFile)
	}
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return Result{}, fmt.Errorf("load report %s: %w", path, err)
	}
	return r.clean(), nil
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// writeFile replaces the file at path as a whole: a reader sees the old one or the new one.
func writeFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write report: %w", errors.Join(err, os.Remove(f.Name())))
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
