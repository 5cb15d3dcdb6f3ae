package hub

import (
	"path/filepath"
	"time"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/trust"
)

// told is what the pool is told about itself, signed by its authority. All are nil without a pool.
type told struct {
	trusted   *trust.Held         // authorities of the pool
	denied    *trust.HeldDenylist // certificates of the pool that are no longer valid
	directory *directory.Directory
}

// openTold reads what the pool was told: flags, the file that was given, and what cloud and pool have said since.
func openTold(m *machine) (t told, err error) {
	if !m.EnableCoordinator {
		return t, nil
	}
	c := trust.Config{
		Pool: m.NodePoolName, Dir: filepath.Join(m.DataDir, "pki"), Beside: m.EnrolCoordinatorDir, Time: m.time,
		Logger: m.Logger,
	}
	if m.given(poolCA) {
		file, err := m.reload.Bundle(inEtc(poolCA), m.etc(poolCA))
		if err != nil {
			return t, err
		}
		c.First = file.List
	}
	t.trusted = trust.New(c)
	t.denied = trust.NewDenylist(trust.DenylistConfig{
		Pool: m.NodePoolName, Trusted: t.trusted.List, Speakers: t.trusted.Speakers, Time: m.time,
		File: filepath.Join(m.DataDir, "denylist"), Logger: m.Logger,
	})
	d := directory.Config{
		Pool: m.NodePoolName, File: filepath.Join(m.DataDir, "directory"), Trusted: t.trusted.List,
		Speakers: t.trusted.Speakers, Time: m.time, Clock: m.clock, Logger: m.Logger,
	}
	for _, u := range m.coordinators {
		d.Flags.Coordinators = append(d.Flags.Coordinators, u.String())
	}
	d.Flags.Scope = directory.SharedAll(m.resources)
	if d.Flags.Leaders = m.leaders; len(m.leaders) > 0 {
		d.Flags.Mode, d.Flags.Connected = contract.ModeLeaderHubs, true
	}
	t.directory = directory.New(d)
	m.metrics.registry.MustRegister(t.trusted, t.denied, t.directory)
	return t, nil
}

// board is what the authority of the pool has signed; none: there is no pool.
func (t told) board() bulletin.Board {
	if t.directory == nil {
		return nil
	}
	return bulletin.Board{t.trusted.Document, t.denied.Document, t.directory.Document}
}

// allowance is for how long a certificate of the pool is valid after its end.
func (t told) allowance() time.Duration { return t.directory.Now().OfflineAllowance() }
