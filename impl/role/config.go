package role

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// Config is what a machine is made of.
type Config struct {
	// Identity is "<node>_<random>"; two machines never have the same one. Required.
	Identity string
	// Former is the identity of a machine of this node that has ended for certain; "": of none. While the pool's cache is
	// known not to be ready, this one takes a Lease that is still Former's as if it were free: nobody else may, and nobody
	// is fed meanwhile.
	Former string
	// LeaseDuration is how long others leave an election Lease alone that does not change. Whole seconds, default 15 s. A
	// Lease that asks for more than maxStretch times as much is left alone for that long.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader believes in its last renewal. Shorter than LeaseDuration, default 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two reads or renewals of the election Lease. Shorter than RenewDeadline by a fifth
	// or more, default 2 s.
	RetryPeriod time.Duration
	// SyncDuration is how long the pool's cache counts as ready after leader-informer-sync changed. It outlives a change
	// of the leader. Whole seconds, longer than LeaseDuration; default twice that, at most contract.MaxLeaseDuration.
	SyncDuration time.Duration
	// Wait is how long a starting machine waits for a Ready coordinator before it goes to the cloud; if the coordinator
	// does not answer at all, at most a third of it. Default 0: no wait.
	Wait time.Duration
	// Grace is how long a hub whose pool's cache is no longer ready serves on from its own relays, if the cloud could feed
	// them; then it goes there. 0: no time. 30 s outlive a restart of the coordinator and an election, and are less than
	// the 50 s after which Kubernetes calls a silent node dead: endpoints are not older than Kubernetes makes them.
	Grace time.Duration
	// Spread is the time over which the hubs of a pool go to the cloud after Grace; they come back over a tenth of it.
	// They do not wait for each other beyond that. That a hub put it off while small answers took 2 s was tried: on a link
	// that the changes for the leader's hub fill already, no other was fed at all for as long as the coordinator was away,
	// where without it most were.
	Spread time.Duration
	// Seed of all jitter.
	Seed uint64
}

// maxStretch bounds what a Lease may ask for as its duration, as a multiple of the own one. Hubs of a pool are
// configured alike; what asks for more was written by somebody who means harm, and would be left alone for years.
const maxStretch = 4

// Validate checks a configuration; zero values mean defaults and are fine.
func (c Config) Validate() error {
	d := c.WithDefaults()
	switch {
	case c.Identity == "":
		return errors.New("role: no identity")
	case c.Former == c.Identity:
		return fmt.Errorf("role: %q is the identity of this machine and of a former one: two never have the same", c.Identity)
	case d.LeaseDuration < time.Second || d.LeaseDuration%time.Second != 0:
		return fmt.Errorf("role: lease duration %v: want whole seconds", d.LeaseDuration)
	case d.RenewDeadline <= 0 || d.RenewDeadline >= d.LeaseDuration:
		return fmt.Errorf("role: renew deadline %v: want less than the lease duration, %v", d.RenewDeadline, d.LeaseDuration)
	case d.RetryPeriod <= 0 || d.RetryPeriod*6/5 >= d.RenewDeadline:
		return fmt.Errorf("role: retry period %v: 1.2 times it must be less than the renew deadline, %v", d.RetryPeriod,
			d.RenewDeadline)
	case d.SyncDuration <= d.LeaseDuration || d.SyncDuration%time.Second != 0:
		return fmt.Errorf("role: sync duration %v: want whole seconds, more than the lease duration, %v", d.SyncDuration,
			d.LeaseDuration)
	case d.SyncDuration > contract.MaxLeaseDuration:
		return fmt.Errorf("role: sync duration %v, by default twice the lease duration: a coordinator takes at most %v",
			d.SyncDuration, contract.MaxLeaseDuration)
	case d.Wait < 0:
		return fmt.Errorf("role: wait %v is negative", d.Wait)
	case d.Grace < 0:
		return fmt.Errorf("role: grace %v is negative", d.Grace)
	case d.Spread < 0:
		return fmt.Errorf("role: spread %v is negative", d.Spread)
	}
	return nil
}

// WithDefaults fills in what is zero and has a default.
func (c Config) WithDefaults() Config {
	c.LeaseDuration = cmp.Or(c.LeaseDuration, 15*time.Second)
	c.RenewDeadline = cmp.Or(c.RenewDeadline, 10*time.Second)
	c.RetryPeriod = cmp.Or(c.RetryPeriod, 2*time.Second)
	c.SyncDuration = cmp.Or(c.SyncDuration, 2*c.LeaseDuration)
	return c
}

// syncRenew is the time between two renewals of leader-informer-sync. Seldom, because each one is a write to flash.
func (c Config) syncRenew() time.Duration { return c.SyncDuration / 6 }

// eager is the time between two reads while something is waited for at the start.
func (c Config) eager() time.Duration { return c.RetryPeriod / 4 }
