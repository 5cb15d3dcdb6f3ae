package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/manager/verdict"
)

const (
	// memoryKey is where a ConfigMap holds what a successor has to know. No node has a name with an underscore.
	memoryKey = "_weir"
	// reread is how often the ConfigMaps are compared with what should stand in them, if they may not be watched.
	reread = 30 * time.Second
)

// memory is the Record as it is stored beside the names of kept nodes; those are keys of their own, for the policies.
type memory struct {
	Pools map[string]poolMemory `json:"pools,omitempty"`
	Dead  []string              `json:"dead,omitempty"`
	Owed  []string              `json:"owed,omitempty"`
}

type poolMemory struct {
	Since   time.Time `json:"silentSince"`
	GivenUp bool      `json:"givenUp,omitempty"`
}

// keeper writes the names of kept and bound nodes for the admission policies, and has nodes released that are kept no
// longer. It runs while the manager leads, and begins with what the leader before it left.
type keeper struct {
	client   client.Client
	reader   client.Reader    // not from the cache
	watched  manifests.Getter // of the ConfigMaps
	clock    clock.WithTicker
	board    *board
	heardAll func() bool // whether the board knows what was there at the start
	release  *releaser
	metrics  *metrics
	log      *slog.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (k *keeper) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (k *keeper) Start(ctx context.Context) error {
	defer func() { _ = k.release.group.Wait() }() // none of them fails
	retry := k.clock.NewTicker(k.board.tick)
	defer retry.Stop()
	for !k.heardAll() || !k.lead(ctx) {
		select {
		case <-retry.C():
		case <-ctx.Done():
			return nil
		}
	}
	var last verdict.Record
	var written time.Time
	for {
		d, next := k.board.read()
		now := k.clock.Now()
		if !equal(d.Record, last) || !k.stands(ctx, d, now.Sub(written) < reread) {
			if err := k.write(ctx, d); err != nil {
				k.metrics.keepFailures.Inc()
				k.log.Error("cannot tell the admission policies which nodes are kept", "err", err)
			} else {
				last, written = d.Record, now
			}
		}
		if equal(d.Record, last) {
			k.release.consider(ctx, d)
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil
		}
	}
}

// lead reads what the predecessor left. Without it nothing is decided: what stands in the ConfigMaps goes on to have
// effect.
func (k *keeper) lead(ctx context.Context) bool {
	record, err := k.read(ctx)
	if err != nil {
		if ctx.Err() == nil {
			k.metrics.keepFailures.Inc()
			k.log.Error("cannot read which nodes are kept; trying again", "err", err)
		}
		return false
	}
	k.board.tell(func(now time.Time, m *verdict.Machine) { m.Lead(now, record) })
	k.board.decide()
	k.log.Info("leading", "kept", len(record.Kept), "dead", len(record.Dead), "owed", len(record.Owed),
		"silentPools", len(record.Pools))
	return true
}

func (k *keeper) read(ctx context.Context) (verdict.Record, error) {
	kept, err := k.get(ctx, contract.KeptNodes)
	if err != nil {
		return verdict.Record{}, err
	}
	bound, err := k.get(ctx, contract.BoundNodes)
	if err != nil {
		return verdict.Record{}, err
	}
	var m memory
	if text := kept.Data[memoryKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			k.log.Error("what the last leader left cannot be read; pools begin to be silent now",
				"configMap", contract.KeptNodes, "err", err)
			m = memory{}
		}
	}
	r := verdict.Record{Dead: m.Dead, Owed: m.Owed, Pools: map[string]verdict.PoolRecord{}}
	for name, p := range m.Pools {
		r.Pools[name] = verdict.PoolRecord(p)
	}
	for name := range kept.Data {
		if name != memoryKey {
			r.Kept = append(r.Kept, name)
		}
	}
	r.Bound = slices.Collect(maps.Keys(bound.Data))
	return r, nil
}

func (k *keeper) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	var c corev1.ConfigMap
	if err := k.reader.Get(ctx, keyOf(name), &c); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s (it comes with weir-manager --print-manifests): %w",
			contract.ManagerNamespace, name, err)
	}
	return &c, nil
}

// stands reports whether the ConfigMaps still say what was decided. Where their watches do not know, it is as usual.
func (k *keeper) stands(ctx context.Context, d verdict.Decision, usual bool) bool {
	kept, bound, err := texts(d)
	if err != nil {
		return false
	}
	for name, want := range map[string]map[string]string{contract.KeptNodes: kept, contract.BoundNodes: bound} {
		var is corev1.ConfigMap
		if err := k.watched.Get(ctx, keyOf(name), &is); err != nil {
			return usual
		}
		if !maps.Equal(is.Data, want) {
			return false
		}
	}
	return true
}

// write makes the ConfigMaps say what was decided.
func (k *keeper) write(ctx context.Context, d verdict.Decision) error {
	kept, bound, err := texts(d)
	if err != nil {
		return err
	}
	return errors.Join(k.set(ctx, contract.KeptNodes, kept), k.set(ctx, contract.BoundNodes, bound))
}

// texts are what the ConfigMaps say of a decision.
func texts(d verdict.Decision) (kept, bound map[string]string, err error) {
	kept = make(map[string]string, len(d.Record.Kept)+1)
	for _, name := range d.Record.Kept {
		kept[name] = d.Nodes[name].Pool
	}
	m := memory{Dead: d.Record.Dead, Owed: d.Record.Owed, Pools: make(map[string]poolMemory, len(d.Record.Pools))}
	for name, p := range d.Record.Pools {
		m.Pools[name] = poolMemory{Since: p.Since.UTC().Truncate(time.Second), GivenUp: p.GivenUp}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, nil, err
	}
	if string(text) != "{}" {
		kept[memoryKey] = string(text)
	}
	bound = make(map[string]string, len(d.Record.Bound))
	for _, name := range d.Record.Bound {
		bound[name] = d.Nodes[name].Pool
	}
	return kept, bound, nil
}

func keyOf(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: contract.ManagerNamespace, Name: name}
}

func (k *keeper) set(ctx context.Context, name string, data map[string]string) error {
	c, err := k.get(ctx, name)
	if err != nil {
		return err
	}
	if maps.Equal(c.Data, data) {
		return nil
	}
	c.Data = data
	if err := k.client.Update(ctx, c); err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", contract.ManagerNamespace, name, err)
	}
	k.metrics.keepWrites.Inc()
	return nil
}

func equal(a, b verdict.Record) bool {
	return slices.Equal(a.Kept, b.Kept) && slices.Equal(a.Bound, b.Bound) && slices.Equal(a.Dead, b.Dead) &&
		slices.Equal(a.Owed, b.Owed) &&
		maps.EqualFunc(a.Pools, b.Pools, func(p, q verdict.PoolRecord) bool {
			return p.GivenUp == q.GivenUp && p.Since.Equal(q.Since)
		})
}
