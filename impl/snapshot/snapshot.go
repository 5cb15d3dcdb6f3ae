package snapshot

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/relay"
)

// Snapshots keeps relays on a disk. See the package comment.
type Snapshots struct {
	cfg  Config
	lock *disk.Lock

	mu      sync.Mutex
	keepers []*keeper
	running context.Context // of Run; nil: it does not run
	all     sync.WaitGroup  // keepers that run
}

// Open takes the folder and gives each relay what it held before: none of them may have been fed yet. A file that
// cannot be used is no error. The caller runs the snapshots, or closes them.
func Open(c Config) (*Snapshots, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	lock, err := disk.Take(c.Dir)
	if err != nil {
		return nil, err
	}
	s := &Snapshots{cfg: c, lock: lock}
	for _, r := range c.Relays {
		s.Add(r)
	}
	return s, nil
}

// Kept reports whether something is kept of a resource in a folder, whatever its worth.
func Kept(dir string, r relay.Resource) bool {
	_, err := os.Lstat(filepath.Join(dir, fileOf(r)))
	return err == nil
}

// Add keeps one more relay, which has not been fed yet, and gives it what it held before.
func (s *Snapshots) Add(r *relay.Relay) {
	k := newKeeper(s.cfg, r, disk.Folder(s.cfg.Dir))
	k.restore()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepers = append(s.keepers, k)
	if s.running != nil {
		s.start(k)
	}
}

// start runs a keeper; s.mu is held.
func (s *Snapshots) start(k *keeper) {
	var ctx context.Context
	ctx, k.end = context.WithCancel(s.running)
	k.ended = make(chan struct{})
	s.all.Go(func() {
		defer close(k.ended)
		k.run(ctx)
	})
}

// Remove keeps a relay no more, and nothing of it.
func (s *Snapshots) Remove(r *relay.Relay) {
	s.mu.Lock()
	i := slices.IndexFunc(s.keepers, func(k *keeper) bool { return k.relay == r })
	if i < 0 {
		s.mu.Unlock()
		return
	}
	k := s.keepers[i]
	s.keepers = slices.Delete(s.keepers, i, i+1)
	s.mu.Unlock()
	if k.end != nil {
		k.end()
		<-k.ended
	}
	k.close()
	k.forget()
}

// Run writes what changes until ctx ends. Then it writes what is left, and closes. End the feeders first.
func (s *Snapshots) Run(ctx context.Context) error {
	defer s.Close()
	s.mu.Lock()
	s.running = ctx
	for _, k := range s.keepers {
		s.start(k)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.running = nil
	s.mu.Unlock()
	s.all.Wait()
	return nil
}

// Close gives the folder back. What was not written is not.
func (s *Snapshots) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keepers {
		k.close()
	}
	_ = s.lock.Release()
}

// Status tells what was done for each relay, by resource.
func (s *Snapshots) Status() map[string]Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Status, len(s.keepers))
	for _, k := range s.keepers {
		all[k.relay.Resource().String()] = k.did.read()
	}
	return all
}
