package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/weir-edge/weir/impl/disk"
)

// State is how far a node is.
type State string

// States. The zero value is a node of which Weir knows nothing.
const (
	Joining State = "joining" // begun, and not proved
	Joined  State = "joined"
	Leaving State = "leaving" // to be as it was
)

const journalVersion = 1

// journal is what has to be known to finish or to undo what was begun.
type journal struct {
	Version    int       `json:"version"`
	State      State     `json:"state"`
	Node       string    `json:"node"`
	Pool       string    `json:"pool"`
	Kubeconfig string    `json:"kubeconfig"`        // the kubelet's own
	Began      time.Time `json:"began"`             // pods that started later may call the hub
	Trial      bool      `json:"trial,omitempty"`   // the kubelet was led to the hub, maybe
	Folders    []string  `json:"folders,omitempty"` // that were not there, the outermost first
	Ports      Ports     `json:"ports"`
	Pods       string    `json:"pods,omitempty"` // the address that the machine has for its pods
	Images     *images   `json:"images,omitempty"`
}

// images is what the journal says of the mirror of registries.
type images struct {
	Refused bool   `json:"refused,omitempty"` // a person wants none
	Runtime string `json:"runtime,omitempty"` // of containers, as the Node had it
	// Hosts is the hosts.toml that Join writes, maybe; "": none. Sum is the SHA-256 of what it writes.
	Hosts string `json:"hosts,omitempty"`
	Sum   string `json:"sum,omitempty"`
}

// load reads it; nil: nothing was begun.
func (h *Host) load() (*journal, error) {
	text, err := h.read(journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	j := &journal{}
	if err == nil {
		err = json.Unmarshal(text, j)
	}
	if err == nil {
		err = j.check()
	}
	if err != nil {
		return nil, fmt.Errorf("the journal of weir node join, %s: %w", journalFile, err)
	}
	return j, nil
}

func (j *journal) check() error {
	if j.Version != journalVersion {
		return fmt.Errorf("version %d: want %d; use the weir that wrote it", j.Version, journalVersion)
	}
	switch j.State {
	case Joining, Joined, Leaving:
		return nil
	}
	return fmt.Errorf("state %q: want %s, %s or %s", j.State, Joining, Joined, Leaving)
}

// keep writes it.
func (h *Host) keep(j *journal) error {
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	if err := disk.WriteFile(h.at(journalFile), append(text, '\n')); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	h.Changed("journal: " + string(j.State))
	return nil
}

// lock keeps others away until unlock. It leaves nothing on the disk.
func (h *Host) lock() (unlock func(), err error) {
	f, err := os.Open(h.at(state))
	if err != nil {
		return nil, err
	}
	if err := disk.TryLock(f); err != nil {
		f.Close()
		if errors.Is(err, disk.ErrLocked) {
			return nil, errors.New("another weir node join or leave runs on this node: wait for its end")
		}
		return nil, err
	}
	return func() { _ = disk.Unlock(f) }, nil
}
