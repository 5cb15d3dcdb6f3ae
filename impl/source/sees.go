package source

import (
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/source/hop"
)

// sees is what the plan goes by.
func (f *Feeder) sees(up *hop.Upstream) member.Feed {
	s := member.Feed{
		Now: f.cfg.Clock.Now(), Relay: f.cfg.Relay.Status(), Up: f.upstream(up), Reached: f.asked.Load(),
		Leaf: !f.cfg.Feeds(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Overruled, s.Doubtful = f.overruled, f.doubt
	return s
}

// upstream is what the plan knows of an upstream.
func (f *Feeder) upstream(up *hop.Upstream) member.Upstream {
	return member.Upstream{
		ID: up, Name: up.Name, Cloud: up.Consistent, Relay: up.Progress, Unconfirmed: up.Unconfirmed, Compresses: up.Gzip,
		Plain: f.plainAt.Load() == up,
	}
}
