package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/disk"
)

const (
	placementFile = "placement"
	maxPlacement  = 1 << 10
)

// Placement names one stay of a replica on a node; "": weir-manager did not place it.
type Placement string

// Settle removes from a data directory what is of another placement: the pool went on without it, and what it held is
// no longer valid. The directory is to be locked.
func (p Placement) Settle(dir string, logger *slog.Logger) error {
	if p == "" {
		return nil
	}
	file := filepath.Join(dir, placementFile)
	was, err := disk.ReadFile(file, maxPlacement)
	switch {
	case err == nil && string(was) == string(p):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read whose data is in %s: %w", dir, err)
	}
	for _, name := range []string{"etcd", "relays", "directory", "mesh"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove what is of placement %.80q: %w", was, err)
		}
	}
	logger.Info("a new placement: what was in the data directory is removed", "placement", p, "before", string(was))
	return disk.WriteFile(file, []byte(p))
}

// LeftOut reports whether the pool was told of others in the place of this coordinator.
func (p Placement) LeftOut(told directory.Entry) bool {
	if p == "" || len(told.Replicas) == 0 {
		return false
	}
	for _, r := range told.Replicas {
		if r.Placement == string(p) {
			return false
		}
	}
	return true
}

// Members are the replicas that the pool is told of; none: nothing is told of this one, and what it knows stays.
func (p Placement) Members(told directory.Entry) (all []Replica) {
	if p == "" || p.LeftOut(told) {
		return nil
	}
	for _, r := range told.Replicas {
		all = append(all, Replica{r.Name(), r.URL(contract.PeerPort), r.URL(contract.CoordinatorPort)})
	}
	return all
}
