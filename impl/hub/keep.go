package hub

import (
	"errors"
	"iter"
	"math/rand/v2"
	"path/filepath"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/shelter"
	"github.com/weir-edge/weir/impl/hub/standin"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/snapshot"
	"github.com/weir-edge/weir/impl/store"
)

// keep brings back what the relays held before, and keeps what they hold from now on.
func (h *Hub) keep() (err error) {
	disk.TellOpen(h.Logger, h.CloudClientCertFile, h.etc(servingPair))
	if err := disk.Make(h.DataDir); err != nil {
		return h.cannotKeep(err)
	}
	h.kept, err = snapshot.Open(snapshot.Config{
		Dir: h.keptIn(), Relays: h.sources.Relays(), Clock: h.clock, Logger: h.Logger,
	})
	if err != nil {
		return h.cannotKeep(err)
	}
	h.metrics.registry.MustRegister(h.kept)
	if err := h.openStore(); err != nil {
		return err
	}
	return h.buildJudge()
}

// cannotKeep says what is wrong with the folder for data.
func (h *Hub) cannotKeep(err error) error {
	if inUse := (*disk.InUseError)(nil); errors.As(err, &inUse) {
		return err
	}
	return cli.Usage("--data-dir", h.DataDir, "a directory that this process may make and write: "+err.Error())
}

// place finds where data is kept, and by which key. What stands in for that is small.
func (h *Hub) place() error {
	in, key, err := h.lacks.Place(h.DataDir, h.storeKey)
	if wrong := (*cli.UsageError)(nil); err != nil && !errors.As(err, &wrong) {
		return h.cannotKeep(err)
	} else if err != nil {
		return err
	}
	h.reload.Worked = standin.Worked(h.DataDir)
	if in != h.DataDir {
		h.DataDir, h.StoreMaxBytes = in, min(h.StoreMaxBytes, standin.MaxStore)
	}
	h.key = key
	return nil
}

// openStore opens what is kept for the time without the cloud.
func (h *Hub) openStore() error {
	c := h.Storage.config(h.DataDir)
	c.Clock, c.Key, c.Logger = h.clock, h.key, h.Logger
	var err error
	if h.store, err = store.Open(c); err != nil {
		return h.cannotKeep(err)
	}
	return nil
}

// buildShelter puts the store beside the way to the cloud.
func (h *Hub) buildShelter() (err error) {
	h.shelter, err = shelter.New(shelter.Config{
		Node: h.NodeName, Store: h.store, Judge: h.judge, Cloud: h.cloud, AsNode: h.asNode,
		Control: h.discovery.Through(h.cloud.Way(uplink.ClassControl, uplink.AsHub)),
		Shared:  h.discovery.Fetch, NodeCounts: h.nodeCounts, NodeStatusPeriod: h.NodeStatusPeriod,
		Overlay: func() shelter.Overlay { return h.overlay }, Spread: h.ReturnSpread, Seed: rand.Uint64(), Clock: h.clock,
		Logger: h.Logger,
	})
	return err
}

// storeKey finds the key of the store.
func (h *Hub) storeKey() (*disk.Key, error) {
	if h.StoreKeyFile == NoKey {
		h.Logger.Warn("Secrets and tokens are kept in the clear: a thief of --data-dir has them", "dir", h.DataDir)
		return nil, nil
	}
	key, file, err := disk.KeySource{
		File: h.StoreKeyFile, Credentials: h.Credentials, Generated: h.etc(storeKey), DataDir: h.DataDir,
	}.Key()
	const want = "a file of 32 random bytes, mode 0600, outside --data-dir; or " + NoKey + ", which encrypts nothing"
	switch bad := (*disk.KeyFileError)(nil); {
	case standin.Failed(err):
		return nil, err
	case errors.As(err, &bad):
		flag := "--store-key-file"
		if file == h.etc(storeKey) {
			flag = inEtc(storeKey)
		}
		return nil, cli.Usage(flag, file, want+": "+bad.Err.Error())
	case err == nil && key == nil:
		return nil, cli.Usage("--store-key-file", "", want)
	}
	h.Logger.Info("what is kept of objects is encrypted", "key", file)
	return key, err
}

// buildJudge makes who tells callers apart while the cloud is away.
func (h *Hub) buildJudge() (err error) {
	review := access.Reviewer{AsCaller: h.cloud.Prove(), AsNode: h.cloud.Way(uplink.ClassNode, uplink.AsNode)}
	c := identity.Config{
		Node: h.NodeName, Cloud: h.cloud.Way(uplink.ClassControl, uplink.AsHub),
		Callers: h.cloud.Way(uplink.ClassNode, uplink.AsCaller), File: filepath.Join(h.DataDir, "verdicts"),
		Allowance: h.OfflineTokenAllowance, TTL: h.OfflineAccess,
		Away: func() bool { away, _ := h.cloud.IsAway(); return away }, Unbroken: h.cloud.Unbroken, Ask: review.Ask,
		Documents: h.store, Now: h.time.Now, Pods: identity.PodsOf(h.store), Clock: h.clock, Logger: h.Logger,
	}
	if h.EnableCoordinator {
		c.Shared = h.discovery.SharedKeys
	}
	h.judge, err = identity.New(c)
	return err
}

// buildFilters makes what stands between answers and those clients that see something else.
func (h *Hub) buildFilters() error {
	if len(h.Filters) == 0 {
		return nil
	}
	c := h.filterConfig()
	c.Cloud, c.Clock, c.File = h.cloud.Way(uplink.ClassControl, uplink.AsHub), h.clock,
		filepath.Join(h.DataDir, "topology")
	c.Slices = func() (uint64, iter.Seq[*wire.Object]) {
		if f := h.sources.Named(contract.EndpointSlices + ".v1." + contract.DiscoveryGroup); f != nil {
			return f.Relay.Status().Version, h.overlay.Shown(f.Relay)
		}
		return 0, func(func(*wire.Object) bool) {}
	}
	var err error
	h.filters, err = filter.New(c)
	return err
}
