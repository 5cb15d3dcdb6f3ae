package membership

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/process"
)

const (
	leaves  = time.Second     // until who leads goes: the coordinator hears of a move at once, if it hears of it
	follows = 2 * time.Second // until others go
	spread  = time.Second     // and up to as much more
	knows   = time.Minute     // for which the coordinator of before is known still
)

// CourseConfig is what a Course is made of. All fields are required.
type CourseConfig struct {
	Directory *directory.Directory
	Leads     func() bool // whether this hub leads now
	Clock     clock.Clock
	Logger    *slog.Logger
}

// Course is where a hub is, and goes.
type Course struct {
	CourseConfig
	mu     sync.Mutex
	now    directory.Entry // that the hub went by
	before []*url.URL      // coordinators of before
	left   time.Time       // when the hub left them
}

// NewCourse begins where the directory says now.
func NewCourse(c CourseConfig) *Course { return &Course{CourseConfig: c, now: c.Directory.Now()} }

// Coordinators are those that may be met at this hub: where the hub is, and for a while those of before, and those that
// it is about to go to.
func (c *Course) Coordinators() []*url.URL {
	next := c.Directory.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Concat(c.now.URLs(), next.URLs())
	if c.Clock.Since(c.left) < knows {
		all = append(all, c.before...)
	}
	return all
}

// Run goes where the directory says, until ctx ends. follow takes the hub to where an entry says.
func (c *Course) Run(ctx context.Context, follow func(directory.Entry)) error {
	for ctx.Err() == nil {
		changed := c.Directory.Changed()
		if next := c.Directory.Now(); !same(next, c.now) {
			wait := leaves
			if !c.Leads() {
				wait = follows + rand.N(spread)
			}
			process.Pause(ctx, c.Clock, wait)
			if ctx.Err() == nil {
				c.turn(c.Directory.Now(), follow) // it may have been told something else meanwhile
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// turn goes to where an entry says.
func (c *Course) turn(next directory.Entry, follow func(directory.Entry)) {
	c.mu.Lock()
	was := c.now
	if same(next, was) {
		c.mu.Unlock()
		return
	}
	c.before, c.left, c.now = was.URLs(), c.Clock.Now(), next
	c.mu.Unlock()
	c.Logger.Info("the pool is somewhere else", "version", next.Version, "mode", next.Mode,
		"coordinators", next.Coordinators, "leaders", len(next.Leaders),
		"before", was.Coordinators)
	follow(next)
}

// same reports whether two entries say the same of where the pool is asked.
func same(a, b directory.Entry) bool {
	return a.Mode == b.Mode && slices.Equal(a.Coordinators, b.Coordinators) &&
		(a.Mode != contract.ModeLeaderHubs || reflect.DeepEqual(a.Leaders, b.Leaders))
}
