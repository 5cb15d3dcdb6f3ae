package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Report is what was measured, in one run or, with Suite.Resume, in several.
type Report struct {
	Revision string     `json:"revision"` // of the source; "-dirty" behind it: with changes
	Began    time.Time  `json:"began"`
	Machine  string     `json:"machine"`
	Repeat   string     `json:"repeat,omitempty"` // the command line that measures the same again
	Parts    []Measured `json:"parts"`
	// Peer is the other hub of a report with one.
	Peer *PeerReport `json:"peer,omitempty"`
}

// PeerReport tells which hub was measured beside Weir's.
type PeerReport struct {
	Name    string `json:"name"`
	About   string `json:"about,omitempty"`
	Profile string `json:"profile"`
}

// Measured is one part of a report.
type Measured struct {
	Name    string     `json:"name"`
	Config  string     `json:"config"` // that it was measured with
	Seconds float64    `json:"seconds"`
	Load    [2]float64 `json:"load"` // of the machine, over a minute, when it began and when it ended
	Figures []Figure   `json:"figures"`
}

const (
	resultFile  = "result.json"
	summaryFile = "summary.md"
	statFile    = "bench.txt" // benchstat reads it
	maxResult   = 8 << 20     // bytes that are read; 30 kB are usual
)

func newReport(ctx context.Context) Report {
	return Report{
		Revision: revision(ctx), Began: time.Now().UTC().Truncate(time.Second),
		Machine: fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()),
	}
}

// revision of the source tree that the command runs in, "" outside of one. Reports are no source.
func revision(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return ""
	}
	name := strings.TrimSpace(string(head))
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no", "--", ":(top)",
		":(top,exclude)reports").Output()
	if err != nil || len(changed) > 0 {
		name += "-dirty"
	}
	return name
}

// Load reads the report in a folder, or its result.json.
func Load(path string) (Report, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, resultFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxResult+1))
	if err != nil {
		return Report{}, err
	}
	wrong := func(what any) (Report, error) {
		return Report{}, fmt.Errorf("%s: %v: want a %s that weir bench wrote", path, what, resultFile)
	}
	if len(data) > maxResult {
		return wrong(fmt.Sprintf("it has more than %d bytes", maxResult))
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return wrong(err)
	}
	if len(r.Parts) == 0 {
		return wrong("it has no parts")
	}
	for _, p := range r.Parts {
		if p.Name == "" || slices.ContainsFunc(p.Figures, func(f Figure) bool { return f.Name == "" }) {
			return wrong("a part or a figure has no name")
		}
	}
	return r, nil
}

// has returns a part as it was measured with a configuration.
func (r *Report) has(name, config string) (Measured, bool) {
	for _, m := range r.Parts {
		if m.Name == name && m.Config == config {
			return m, true
		}
	}
	return Measured{}, false
}

// Judge returns a *MissedError if a figure misses its limit.
func (r *Report) Judge() error {
	var m MissedError
	for _, p := range r.Parts {
		for _, f := range p.Figures {
			if f.Limit != nil {
				m.Judged++
			}
			if !f.Met() {
				m.Figures = append(m.Figures, f)
			}
		}
	}
	if len(m.Figures) == 0 {
		return nil
	}
	return &m
}

// Write puts result.json, bench.txt and summary.md into a folder, made if need be.
func (r *Report) Write(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	stat, err := r.stat()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		resultFile: append(data, '\n'), summaryFile: []byte(r.Markdown()), statFile: stat,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// earlier is the report in a folder if it is of the same source on the same machine, else an empty one.
func (r *Report) earlier(dir string) (Report, error) {
	old, err := Load(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Report{}, nil
	case err != nil:
		return Report{}, err
	case old.Revision != r.Revision || old.Machine != r.Machine || strings.HasSuffix(r.Revision, "-dirty"):
		return Report{}, nil
	}
	return old, nil
}

// load is how many processes wanted to run in the last minute, 0 if the system does not tell.
func load() (v float64) {
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(b), &v)
	}
	return v
}
