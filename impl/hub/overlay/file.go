package overlay

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/moved"
)

const (
	fileName = "moved"
	maxFile  = 16 << 20 // bytes: what clients may have of all slices of a cluster
)

// file is what is kept for the next process.
type file struct {
	path string
	log  *limit.Quiet
	kept kept
}

type kept struct {
	Boot  string                       `json:"boot,omitempty"` // of this machine
	Next  uint64                       `json:"next,omitempty"` // numbers of statements below it may have been given
	Nodes []string                     `json:"nodes,omitempty"`
	Owed  map[string]map[string]uint64 `json:"owed,omitempty"` // by resource
	// Stored is the same of what the store has.
	Stored map[string]map[string]uint64 `json:"stored,omitempty"`
}

// open reads one. What cannot be read is as if it was not there.
func open(path string, log *limit.Quiet) file {
	f := file{path: path, log: log}
	text, err := disk.ReadFile(path, maxFile)
	if err == nil {
		err = json.Unmarshal(text, &f.kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Say(slog.LevelError, "read", "what was kept of moved pods cannot be read", "file", path, "err", err)
		f.kept = kept{}
	}
	f.kept.Nodes = f.kept.Nodes[:min(len(f.kept.Nodes), moved.MaxNodes-1)]
	if f.kept.Owed == nil {
		f.kept.Owed = map[string]map[string]uint64{}
	}
	if f.kept.Stored == nil {
		f.kept.Stored = map[string]map[string]uint64{}
	}
	return f
}

// write keeps it. A disk that takes nothing does not keep clients from being shown what is true.
func (f *file) write() {
	text, err := json.Marshal(f.kept)
	if err == nil {
		err = disk.WriteFile(f.path, text)
	}
	if err != nil {
		f.log.Say(slog.LevelError, "write", "what clients see of moved pods cannot be kept over a restart", "file", f.path,
			"err", err)
	}
}
