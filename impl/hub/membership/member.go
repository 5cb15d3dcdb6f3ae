package membership

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
)

// Member is a hub's member of its pool: what it decided last, and what the rest of the hub has told it since then. It
// is made before anything that it acts by, so whatever is built later may read it and tell it something. Pool steps it.
// It is safe for concurrent use.
type Member struct {
	decides  *member.Member // of Pool.Run alone; nil: there is no pool
	identity string         // in the election
	clock    clock.PassiveClock
	began    time.Time
	poke     chan struct{} // something may have changed
	view     atomic.Pointer[member.View]

	designated atomic.Int32 // role.Designation

	mu           sync.Mutex
	denied       []string        // resources that a source does not give, of which the member has yet to hear
	contradicted []contradiction // by the cloud, likewise
}

// contradiction is that the cloud says otherwise than the pool.
type contradiction struct {
	resource string
	proof    error
}

// NewMember makes the member of a pool that it has not met yet.
func NewMember(c member.Config, clock clock.PassiveClock) (*Member, error) {
	m := &Member{identity: c.Role.Identity, clock: clock, began: clock.Now(), poke: make(chan struct{}, 1)}
	var err error
	if m.decides, err = member.New(c, m.began); err != nil {
		return nil, err
	}
	view := m.decides.View()
	m.view.Store(&view)
	return m, nil
}

// NoMember is that of a hub without a pool. It says why it has no role.
func NoMember() *Member {
	m := &Member{poke: make(chan struct{}, 1)}
	m.view.Store(&member.View{Snapshot: role.Snapshot{
		Role: role.Pending, Reason: "no coordinator is configured", Source: role.Cloud,
	}})
	return m
}

// Snapshot is the state of the role machine after the last step.
func (m *Member) Snapshot() role.Snapshot { return m.view.Load().Snapshot }

// Leads reports whether this hub leads its pool.
func (m *Member) Leads() bool { return m.Snapshot().Role == role.Leader }

// Follows reports whether another hub leads it.
func (m *Member) Follows() bool { return m.Snapshot().Role == role.Follower }

// Takes reports whether it takes part in the pool: it leads or follows.
func (m *Member) Takes() bool { return m.Snapshot().Role != role.Pending }

// Changed tells the member to look again. It never blocks.
func (m *Member) Changed() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// Denied takes that a source has said that it does not give a resource.
func (m *Member) Denied(resource string) {
	m.mu.Lock()
	m.denied = append(m.denied, resource)
	m.mu.Unlock()
	m.Changed()
}

// Contradict takes that the cloud contradicted while a relay was being fed from the pool; see source.Config.Doubt.
func (m *Member) Contradict(resource string, proof error) {
	m.mu.Lock()
	m.contradicted = append(m.contradicted, contradiction{resource, proof})
	m.mu.Unlock()
	m.Changed()
}

// heard is what it was told since the last call.
func (m *Member) heard() (denied []string, contradicted []contradiction) {
	m.mu.Lock()
	defer m.mu.Unlock()
	denied, contradicted = m.denied, m.contradicted
	m.denied, m.contradicted = nil, nil
	return denied, contradicted
}

// now is the machine's clock: monotonic, since the start.
func (m *Member) now() time.Duration { return m.clock.Since(m.began) }
