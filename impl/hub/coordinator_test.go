package hub

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

func testCoordinator(t *testing.T) (*fakeCoordinator, *coordinator) {
	t.Helper()
	ca := newAuthority(t, "pool")
	fake := newFakeCoordinator(t, ca)
	dir := t.TempDir()
	cert, key := ca.issue("system:node:edge-1", "weir:pool:pool-a")
	write(t, dir, map[string][]byte{"ca.crt": ca.pem, "pool.crt": cert, "pool.key": key})
	roots, err := loadBundle("--coordinator-ca-file", filepath.Join(dir, "ca.crt"))
	check(t, err)
	p, err := loadPair("--c", filepath.Join(dir, "pool.crt"), "--k", filepath.Join(dir, "pool.key"))
	check(t, err)
	u, err := url.Parse(fake.server.URL)
	check(t, err)
	c := newCoordinator(coordinatorConfig{
		net: systemNet{}, servers: []*url.URL{u}, node: "edge-1", roots: roots, cert: p, onBytes: func(int) {}, clock: clock.RealClock{}, logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(c.close)
	return fake, c
}

// TestLeases: the writes of the role machine, with their preconditions.
func TestLeases(t *testing.T) {
	fake, c := testCoordinator(t)
	ctx := t.Context()
	check(t, c.healthz(ctx))

	none, err := c.readLease(ctx, contract.ElectionLease)
	if err != nil || none.Exists {
		t.Fatalf("a Lease that does not exist: got %+v, %v", none, err)
	}
	want := role.Record{Holder: "edge-1_a", Duration: 15 * time.Second}
	first, conflict, err := c.writeLease(ctx, contract.ElectionLease, want, true)
	if err != nil || conflict || !first.Exists || first.Holder != want.Holder || first.Duration != want.Duration || first.Version == "" ||
		first.UID == "" || first.AcquireTime.IsZero() || !first.AcquireTime.Equal(first.RenewTime) {
		t.Fatalf("acquire: got %+v, %t, %v", first, conflict, err)
	}
	if _, conflict, err := c.writeLease(ctx, contract.ElectionLease, want, true); !conflict || err == nil {
		t.Errorf("create what exists: conflict %t, %v", conflict, err)
	}
	second, conflict, err := c.writeLease(ctx, contract.ElectionLease, first, false)
	if err != nil || conflict || second.Version == first.Version || second.UID != first.UID || !second.AcquireTime.Equal(first.AcquireTime) {
		t.Errorf("renew: got %+v, %t, %v", second, conflict, err)
	}
	if _, conflict, err := c.writeLease(ctx, contract.ElectionLease, first, false); !conflict || err == nil {
		t.Errorf("renew an old version: conflict %t, %v", conflict, err)
	}
	if read, err := c.readLease(ctx, contract.ElectionLease); err != nil || read != second {
		t.Errorf("read: got %+v, %v; want %+v", read, err, second)
	}

	fake.wipe()
	if _, conflict, err := c.writeLease(ctx, contract.ElectionLease, second, false); !conflict || err == nil {
		t.Errorf("renew after the disk was lost: conflict %t, %v", conflict, err)
	}
	// Another hub takes the Lease, and versions come again: only the UID tells the two lives apart.
	other, _, err := c.writeLease(ctx, contract.ElectionLease, role.Record{Holder: "edge-2_b", Duration: 15 * time.Second}, true)
	if err != nil || other.Version != first.Version {
		t.Fatalf("acquire in the new life: got %+v, %v", other, err)
	}
	if _, conflict, err := c.writeLease(ctx, contract.ElectionLease, first, false); !conflict || err == nil {
		t.Errorf("renew a Lease of another life: conflict %t, %v", conflict, err)
	}
	fake.set(func() { fake.down = true })
	if _, conflict, err := c.writeLease(ctx, contract.ElectionLease, other, false); conflict || err == nil {
		t.Errorf("coordinator down: conflict %t, %v", conflict, err)
	}
	if c.healthz(ctx) == nil {
		t.Error("a coordinator that answers 503 is healthy")
	}
}
