package lifecycle

import (
	"context"
	"crypto/x509"
	"slices"

	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/heartbeat"
)

// desks is the desk of a pool as a hub reaches it. It implements beat.Desk and beat.Desks.
type desks struct{ n *node }

func (d desks) desk() (at *exchange.RollCall) {
	d.n.w.locked(func() {
		if d.n.toPool() {
			at = d.n.pool.desk
		}
	})
	return at
}

// HandIn implements beat.Desk.
func (d desks) HandIn(_ context.Context, e heartbeat.Entry) (heartbeat.Notice, error) {
	if at := d.desk(); at != nil {
		return at.HandIn(e)
	}
	return heartbeat.Notice{}, errLost
}

// Exchange implements beat.Desks.
func (d desks) Exchange(_ context.Context, n heartbeat.Notice) []heartbeat.Entry {
	at := d.desk()
	if at == nil {
		return nil
	}
	all, err := at.Exchange(n)
	if err != nil {
		panic(err)
	}
	d.n.w.locked(func() { all = d.n.pool.lie(all) })
	return all
}

// hoards is of how many entries a liar makes its own.
const hoards = 60

// lie is what a leader makes of what it has collected. One that lies repeats what was said before, by whomever, says it
// of others, and leaves things out. The lock is held.
func (p *pool) lie(all []heartbeat.Entry) []heartbeat.Entry {
	p.hoard = append(p.hoard, all...)
	p.hoard = p.hoard[max(0, len(p.hoard)-hoards):]
	if p.lies == 0 {
		return all
	}
	var said []heartbeat.Entry
	for _, e := range p.hoard {
		switch p.w.rng.IntN(8) {
		case 0:
			e.Node = p.nodes[p.w.rng.IntN(len(p.nodes))].name
		case 1:
			e.Period++
		case 2, 3, 4:
			continue
		}
		said = append(said, e)
	}
	p.w.rng.Shuffle(len(said), func(i, j int) { said[i], said[j] = said[j], said[i] })
	return slices.Clip(said)
}

// trusted are those whose receipts count in a pool.
func (p *pool) trusted() []*x509.Certificate { return []*x509.Certificate{p.key.Cert()} }
