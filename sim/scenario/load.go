package scenario

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Load reads a scenario file, or all of a folder in the order of their names. Its errors are wrong usage, all
// mistakes of all files at once.
func Load(path string) ([]*Scenario, error) {
	files, err := list(path)
	if err != nil {
		return nil, err
	}
	var scenarios []*Scenario
	var mistakes FileErrors
	for _, file := range files {
		s, err := loadFile(file)
		var found FileErrors
		switch {
		case errors.As(err, &found):
			mistakes = append(mistakes, found...)
		case err != nil:
			return nil, err
		default:
			scenarios = append(scenarios, s)
		}
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return scenarios, nil
}

// list returns the scenario files that path means.
func list(path string) ([]string, error) {
	const want = "want a scenario file, or a folder of them"
	wrong := func(why string) error { return FileErrors{{Field: "scenario", Value: path, Allowed: why}} }
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, wrong("there is no such file: " + want)
	case err != nil:
		return nil, wrong(err.Error() + ": " + want)
	case info.Mode().IsRegular():
		if filepath.Ext(path) != Extension {
			return nil, wrong("its name does not end in " + Extension + ": " + want)
		}
		return []string{path}, nil
	case !info.IsDir():
		return nil, wrong("it is neither: " + want)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, wrong(err.Error() + ": " + want)
	}
	var files []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		switch {
		case e.IsDir() || strings.HasPrefix(e.Name(), "."):
		case filepath.Ext(name) == Extension:
			files = append(files, name)
		case filepath.Ext(name) == ".yml":
			return nil, wrong("it holds " + e.Name() + ": scenario files end in " + Extension)
		}
	}
	if len(files) == 0 {
		return nil, wrong("no file in it ends in " + Extension + ": " + want)
	}
	return files, nil
}

func loadFile(file string) (_ *Scenario, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, FileErrors{{Field: "scenario", Value: file, Allowed: err.Error()}}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	return Parse(file, data)
}
