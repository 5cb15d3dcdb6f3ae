package hub

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/role"
)

// clientOf is the client of the hub of a node.
func clientOf(t *testing.T, ca *authority, fake *fakeCoordinator, node string) *coordinator.Client {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"ca.crt": ca.pem, "pool.pem": ca.pair("system:node:"+node, "weir:pool:pool-a")})
	roots, err := new(uplink.Reloader).Bundle("authorities", filepath.Join(dir, "ca.crt"))
	check(t, err)
	p, err := new(uplink.Reloader).Pair("pair", filepath.Join(dir, "pool.pem"))
	check(t, err)
	u, err := url.Parse(fake.server.URL)
	check(t, err)
	c := coordinator.New(coordinator.Config{
		Leads: func() bool { return false }, Moved: func() {},
		Net: door.System{}, Servers: coordinator.At(u), Node: node, Roots: roots, Cert: p, OnBytes: func(int) {},
		Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(c.Close)
	return c
}

// TestLeases: the writes of the role machine, with their preconditions.
func TestLeases(t *testing.T) {
	ca := newAuthority(t, "pool")
	fake := newFakeCoordinator(t, ca)
	c, other := clientOf(t, ca, fake, "edge-1"), clientOf(t, ca, fake, "edge-2")
	ctx := t.Context()
	check(t, c.Healthz(ctx))

	none, err := c.ReadLease(ctx, contract.ElectionLease)
	if err != nil || none.Exists {
		t.Fatalf("a Lease that does not exist: got %+v, %v", none, err)
	}
	want := role.Record{Holder: "edge-1_a", Duration: 15 * time.Second}
	first, conflict, err := c.WriteLease(ctx, contract.ElectionLease, want, true)
	if err != nil || conflict || !first.Exists || first.Holder != want.Holder || first.Duration != want.Duration ||
		first.Version == "" ||
		first.UID == "" || first.AcquireTime.IsZero() || !first.AcquireTime.Equal(first.RenewTime) {
		t.Fatalf("acquire: got %+v, %t, %v", first, conflict, err)
	}
	if _, conflict, err := c.WriteLease(ctx, contract.ElectionLease, want, true); !conflict || err == nil {
		t.Errorf("create what exists: conflict %t, %v", conflict, err)
	}
	second, conflict, err := c.WriteLease(ctx, contract.ElectionLease, first, false)
	if err != nil || conflict || second.Version == first.Version || second.UID != first.UID ||
		!second.AcquireTime.Equal(first.AcquireTime) {
		t.Errorf("renew: got %+v, %t, %v", second, conflict, err)
	}
	if _, conflict, err := c.WriteLease(ctx, contract.ElectionLease, first, false); !conflict || err == nil {
		t.Errorf("renew an old version: conflict %t, %v", conflict, err)
	}
	seized := second
	seized.Holder = "edge-2_b"
	if _, conflict, err := other.WriteLease(ctx, contract.ElectionLease, seized, true); !conflict || err == nil {
		t.Errorf("take the Lease of who lives: conflict %t, %v", conflict, err)
	}
	if _, conflict, err := c.WriteLease(ctx, contract.ElectionLease, seized, true); conflict || err == nil {
		t.Errorf("write in the name of another: conflict %t, %v", conflict, err)
	}
	if read, err := c.ReadLease(ctx, contract.ElectionLease); err != nil || read != second {
		t.Errorf("read: got %+v, %v; want %+v", read, err, second)
	}

	fake.wipe()
	if _, conflict, err := c.WriteLease(ctx, contract.ElectionLease, second, false); !conflict || err == nil {
		t.Errorf("renew after the disk was lost: conflict %t, %v", conflict, err)
	}
	// Another hub takes the Lease, and versions come again: only the UID tells the two lives apart.
	taken, _, err := other.WriteLease(ctx, contract.ElectionLease,
		role.Record{Holder: "edge-2_b", Duration: 15 * time.Second}, true)
	if err != nil || taken.Version != first.Version {
		t.Fatalf("acquire in the new life: got %+v, %v", taken, err)
	}
	if _, conflict, err := c.WriteLease(ctx, contract.ElectionLease, first, false); !conflict || err == nil {
		t.Errorf("renew a Lease of another life: conflict %t, %v", conflict, err)
	}
	fake.set(func() { fake.down = true })
	if _, conflict, err := c.WriteLease(ctx, contract.ElectionLease, taken, false); conflict || err == nil {
		t.Errorf("coordinator down: conflict %t, %v", conflict, err)
	}
	if c.Healthz(ctx) == nil {
		t.Error("a coordinator that answers 503 is healthy")
	}
}
