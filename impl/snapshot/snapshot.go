package snapshot

import (
	"context"
	"sync"

	"github.com/weir-edge/weir/impl/disk"
)

// Snapshots keeps relays on a disk. See the package comment.
type Snapshots struct {
	lock    *disk.Lock
	keepers []*keeper
}

// Open takes the folder and gives each relay what it held before: none of them may have been fed yet. A file that cannot be
// used is no error. The caller runs the snapshots, or closes them.
func Open(c Config) (*Snapshots, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	lock, err := disk.Take(c.Dir)
	if err != nil {
		return nil, err
	}
	s := &Snapshots{lock: lock}
	for _, r := range c.Relays {
		k := newKeeper(c, r, disk.Folder(c.Dir))
		k.restore()
		s.keepers = append(s.keepers, k)
	}
	return s, nil
}

// Run writes what changes until ctx ends. Then it writes what is left, and closes. End the feeders first.
func (s *Snapshots) Run(ctx context.Context) error {
	defer s.Close()
	var running sync.WaitGroup
	for _, k := range s.keepers {
		running.Go(func() { k.run(ctx) })
	}
	running.Wait()
	return nil
}

// Close gives the folder back. What was not written is not.
func (s *Snapshots) Close() {
	for _, k := range s.keepers {
		k.close()
	}
	_ = s.lock.Release()
}

// Status tells what was done for each relay, by resource.
func (s *Snapshots) Status() map[string]Status {
	all := make(map[string]Status, len(s.keepers))
	for _, k := range s.keepers {
		all[k.relay.Resource().String()] = k.did.read()
	}
	return all
}
