package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Thieves is a laboratory that deletes Nodes and gives away what was on their disks.
type Thieves interface {
	// DeleteNode takes what the node has, and deletes its Node. With a time, the pool is without the cloud for so long,
	// from before the deletion on. It is healed by a Node of the same name, and a start of its hub.
	DeleteNode(ctx context.Context, at *Aim, off time.Duration) (Going, error)
}

// DeleteNode deletes a Node whose hub runs on.
type DeleteNode struct {
	common

	Off time.Duration // until the pool has the cloud again; 0: it has it
}

func (*DeleteNode) rule() actionRule { return takes("delete-node", nodes(), "for off?") }

func (k *DeleteNode) check(o object, f Fault, p Pool, _ []Pool) {
	if k.Off >= f.For {
		o.fields["off"].contradiction(fmt.Sprintf("the Node is there again after %v: want less, so that the pool hears of it",
			f.For))
	}
	o.enrols(p)
}

func (k *DeleteNode) own() []own {
	return []own{{"off", k.Off, func(v value, _ Pool) { k.Off = v.duration(maxFaultAt) }}}
}

func (k *DeleteNode) effect(f Fault) effect {
	e := k.common.effect(f)
	e.batches = k.Off >= longBreak
	return e
}

func (*DeleteNode) unmeasured(metric string, s *Scenario) string {
	switch {
	case slices.Contains([]string{
		"revoked_seconds_max", "revoked_probes", "revoked_beside_relists", "returned_seconds_max",
	}, metric) && !s.Deletes():
		return metric + " is measured when a Node is deleted: want a fault of that action"
	case metric == "revoked_again" && (!s.Deletes() || !s.RestoresCloud()):
		return metric + " is measured when the cloud forgets a deletion: want faults of actions delete-node and restore"
	}
	return ""
}

// Aim implements Kind.
func (k *DeleteNode) Aim(ctx context.Context, lab Lab, at *Aim) error {
	err := k.common.Aim(ctx, lab, at)
	if k.Off > 0 {
		at.Nodes, at.CutOff, at.Fault.Link = []string{""}, true, CloudLink
	}
	return err
}

// Begin implements Kind.
func (k *DeleteNode) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Thieves) (Going, error) { return of.DeleteNode(ctx, at, k.Off) })
}

// Deletes reports whether a fault deletes a Node.
func (s *Scenario) Deletes() bool { return happen[*DeleteNode](s) }
