package coordinator

import (
	"path/filepath"
	"time"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/directory"
)

// buildTold makes what knows what the pool is told about itself.
func (c *Coordinator) buildTold() {
	d := directory.Config{
		Pool: c.set.NodePoolName, File: filepath.Join(c.dir.Path(), "directory"), Trusted: c.serving.ca.held.List,
		Speakers: c.serving.ca.held.Speakers, Time: c.serving.time,
		Clock: c.set.Clock, Logger: c.set.Logger,
	}
	for _, r := range c.set.resources {
		d.Flags.Scope = append(d.Flags.Scope, directory.SharedOf(r))
	}
	c.told = directory.New(d)
}

// board is what the authority of the pool has signed.
func (c *Coordinator) board() bulletin.Board {
	return bulletin.Board{c.serving.ca.held.Document, c.serving.denied.Document, c.told.Document}
}

// allowance is for how long a certificate of the pool is valid after its end, as the pool was told.
func (c *Coordinator) allowance() time.Duration { return c.told.Now().OfflineAllowance() }
