package skew

import (
	"context"
	"errors"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	wanted = "WEIR_SKEW"          // runs the tests: they take minutes
	other  = "WEIR_SKEW_REVISION" // instead of Former
	nodes  = 4
	// of the bytes that a pool of one version reads from the cloud: what heartbeats and probes differ by.
	most = 1.15
	life = 12 * time.Minute // of a test
)

// version is one of the two.
type version int

const (
	today version = iota
	former
)

func (v version) String() string { return [...]string{"today", "former"}[v] }

// other is the version that an upgrade, or its undoing, brings.
func (v version) other() version { return 1 - v }

// mixture says which version each part has at first.
type mixture struct {
	name                 string
	hubs                 [nodes]version
	coordinator, manager version
}

var (
	plain    = mixture{name: "nothing former"}
	mixtures = []mixture{
		{"former hubs", [nodes]version{former, former, former, former}, today, today},
		{"hubs of today", [nodes]version{}, former, former},
		{"hubs of both", [nodes]version{former, today, former, today}, today, former},
	}
)

// TestSkew: hubs, coordinator and weir-manager of two versions are one pool, in each mixture that an upgrade passes
// through.
func TestSkew(t *testing.T) {
	if os.Getenv(wanted) == "" {
		t.Skipf("builds another revision and takes minutes: make skew, which sets %s", wanted)
	}
	builds := programs(t)
	reference := play(t, plain, builds, 0)
	for _, m := range mixtures {
		t.Run(m.name, func(t *testing.T) { play(t, m, builds, reference) })
	}
}

// programs are Weir's commands of both versions.
func programs(t *testing.T) map[version]parts.Binaries {
	s, err := proc.New()
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	revision := Former
	if v := os.Getenv(other); v != "" {
		revision = v
	}
	say := func(m string) { t.Log(m) }
	before, err := Build(t.Context(), s, revision, say)
	if errors.Is(err, ErrNoHistory) {
		t.Skip(err)
	}
	check(t, err)
	now, err := parts.Find(t.Context(), s, nil, say, parts.HubCommand, parts.CoordinatorCommand, parts.ManagerCommand)
	check(t, err)
	return map[version]parts.Binaries{today: now, former: before}
}

// play is what an upgrade of a pool may meet, with one mixture. It returns the bytes that crossed for the pool's relays
// while changes came.
func play(t *testing.T, m mixture, builds map[version]parts.Binaries, reference int64) int64 {
	ctx, cancel := context.WithTimeout(t.Context(), life)
	defer cancel()
	p := newPool(ctx, t, m, builds)
	p.start()
	p.ready()
	p.watchAll()

	crossed := p.share()
	t.Logf("%s: %d bytes crossed for the relays", m.name, crossed)
	if reference > 0 && float64(crossed) > most*float64(reference) {
		t.Errorf("%d bytes crossed for the relays, want %.2f of %d at most, as with one version", crossed, most, reference)
	}
	if p.described {
		p.delegates()
	}
	p.losesLeader()
	if m.name == plain.name {
		return crossed
	}
	p.losesPower(version.other) // the upgrade goes on while the cloud is away,
	p.losesPower(version.other) // and is restored
	return crossed
}

// all are the versions of a mixture by part.
func (m mixture) all(p *pool) map[runtime.PartID]version {
	of := map[runtime.PartID]version{runtime.CoordinatorOf(poolName): m.coordinator, runtime.Manager: m.manager}
	for i, name := range p.nodes {
		of[runtime.HubOf(name)] = m.hubs[i]
	}
	return maps.Clone(of)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
