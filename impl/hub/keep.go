package hub

import (
	"errors"
	"path/filepath"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/offline"
	"github.com/weir-edge/weir/impl/offline/writes"
	"github.com/weir-edge/weir/impl/seal"
	"github.com/weir-edge/weir/impl/snapshot"
	"github.com/weir-edge/weir/impl/store"
)

// keep brings back what the relays held before, and keeps what they hold from now on.
func (h *Hub) keep() (err error) {
	h.tellOpenKeys()
	if h.DataDir == "" {
		return h.buildJudge("")
	}
	if err := disk.Make(h.DataDir); err != nil {
		return h.cannotKeep(err)
	}
	h.kept, err = snapshot.Open(snapshot.Config{Dir: filepath.Join(h.DataDir, "relays"), Relays: h.relays, Clock: h.clock, Logger: h.Logger})
	if err != nil {
		return h.cannotKeep(err)
	}
	h.metrics.registry.MustRegister(h.kept)
	if h.Offline {
		err = h.buildShelter()
	}
	if err == nil {
		err = h.buildJudge(filepath.Join(h.DataDir, "verdicts"))
	}
	if err != nil {
		h.kept.Close()
	}
	return err
}

// tellOpenKeys warns of keys of certificates that others than their owner can read. It is no error: in a container's
// volume, or by a group that an operator made for that, it may be meant. Unlike the key of the store they were made by
// others, who chose the mode.
func (h *Hub) tellOpenKeys() {
	for _, file := range []string{h.CloudClientKeyFile, h.TLSPrivateKeyFile, h.CoordinatorClientKeyFile, h.DelegateClientKeyFile} {
		if err := disk.Private(file); file != "" && err != nil {
			h.Logger.Warn("a key is not this process's alone", "file", file, "why", err)
		}
	}
}

// cannotKeep says what is wrong with the folder for data.
func (h *Hub) cannotKeep(err error) error {
	if inUse := (*disk.InUseError)(nil); errors.As(err, &inUse) {
		return err
	}
	return cli.Usage("--data-dir", h.DataDir, "a directory that this process may make and write, or nothing: "+err.Error())
}

// buildShelter opens the store, and puts it beside the way to the cloud.
func (h *Hub) buildShelter() error {
	c := h.storeConfig()
	c.Clock = h.clock
	var err error
	if c.Key, err = h.storeKey(); err != nil {
		return err
	}
	s, err := store.Open(c)
	if err != nil {
		return h.cannotKeep(err)
	}
	held, err := h.buildWrites(s)
	if err != nil {
		s.Close()
		return err
	}
	h.shelter = &shelter{
		Offline: offline.New(offline.Config{Store: s, Overlay: held, Clock: h.clock, Logger: h.Logger}),
		store:   s, writes: held, link: newLink(func() bool { return h.cloud.reach() != writes.Away && !held.Holding() }), cloud: h.cloud,
		shared: h.discovery.fetch, asHub: h.discovery.through(h.door(classControl, asHub)),
		gone: h.cloud.gone, clock: h.clock, logger: h.Logger,
	}
	h.cloud.follow(func() {
		held.Changed()
		h.shelter.link.look()
	})
	h.shelter.link.look() // something may wait from before
	h.front.shelter, h.front.proxy.shelter = h.shelter, h.shelter
	h.metrics.registry.MustRegister(s, h.shelter, held)
	return nil
}

// storeKey finds the key of the store.
func (h *Hub) storeKey() (*seal.Key, error) {
	if h.StorePlaintextSecrets {
		h.Logger.Warn("Secrets and tokens are kept in the clear: whoever gets --data-dir has them", "dir", h.DataDir)
		return nil, nil
	}
	key, file, err := seal.Source{File: h.StoreKeyFile, Credentials: h.Credentials, Generated: h.StoreGeneratedKeyFile, DataDir: h.DataDir}.Key()
	const want = "a file of 32 random bytes, mode 0600, outside --data-dir; or --store-plaintext-secrets"
	switch bad := (*seal.FileError)(nil); {
	case errors.As(err, &bad):
		flag := "--store-key-file"
		if file == h.StoreGeneratedKeyFile {
			flag = "--store-generated-key-file"
		}
		return nil, cli.Usage(flag, file, want+": "+bad.Err.Error())
	case err == nil && key == nil:
		return nil, cli.Usage("--store-key-file", "", want)
	}
	h.Logger.Info("what is kept of objects is encrypted", "key", file)
	return key, err
}

// buildJudge makes who tells callers apart while the cloud is away.
func (h *Hub) buildJudge(file string) (err error) {
	c := identity.Config{
		Node: h.NodeName, Cloud: h.door(classControl, asHub), Callers: h.door(classNode, asCaller), File: file, Audiences: h.APIAudiences, Allowance: h.OfflineTokenAllowance, TTL: h.OfflineAccess,
		Clock: h.clock, Logger: h.Logger,
	}
	if h.EnableCoordinator {
		c.Shared = h.discovery.sharedKeys
	}
	if h.shelter != nil {
		c.Documents, c.Pods = h.shelter.store, identity.PodsOf(h.shelter.store)
	}
	if h.judge, err = identity.New(c); err != nil {
		return err
	}
	h.front.authorizer.judge, h.front.proxy.judge, h.front.gate.prove.judge = h.judge, h.judge, h.judge
	if h.shelter != nil {
		h.shelter.judge = h.judge
	}
	return nil
}

// buildWrites makes what keeps the writes of this node for the cloud.
func (h *Hub) buildWrites(s *store.Store) (*writes.Writes, error) {
	_, seed, err := newIdentity(h.NodeName)
	if err != nil {
		return nil, err
	}
	return writes.New(writes.Config{
		Node: h.NodeName, Store: s, Cloud: h.front.proxy.viaHub, Reach: h.cloud.reach, Moved: func() { h.shelter.link.look() },
		Spread: h.ReturnSpread, Seed: seed, Clock: h.clock, Logger: h.Logger,
	})
}
