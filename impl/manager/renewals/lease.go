package renewals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/lease"
)

// rounds is how often a Lease is written that others write at the same time.
const rounds = 3

// send patches a Lease.
func send(ctx context.Context, c client.Client, at client.ObjectKey, p *lease.Patch) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
	if err := c.Patch(ctx, l, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("patch Lease %s: %w", at, err)
	}
	return nil
}

// sight is when a renewTime was seen first to stand.
type sight struct {
	stands time.Time
	since  time.Time
}

// of notes what stands now.
func (s *sight) of(stands, now time.Time) {
	if !stands.Equal(s.stands) {
		s.stands, s.since = stands, now
	}
}

// errCutOff is why a Lease is not renewed that has the mark of a node that is cut off: the leader's forwards write it.
var errCutOff = errors.New("the Lease has the mark of a node that is cut off")

// renew lets the renewTime of a node's Lease grow, from as it was last seen. Reads of the client are from no cache. If
// somebody else has written the Lease, it is looked at again: what was seen may be old, and then nobody has renewed it.
func (s *sight) renew(ctx context.Context, c client.Client, clock clock.PassiveClock, l *coordinationv1.Lease) error {
	for round := 1; ; round++ {
		if _, marked := l.Annotations[contract.DelegateHeartbeat]; marked {
			return errCutOff
		}
		now := clock.Now()
		s.of(lease.RenewTime(l), now)
		next := heartbeat.Onward(s.stands, now.Sub(s.since))
		p := lease.Renewal(l.ResourceVersion, next)
		if !lease.Managed(l) { // the policy weir-forwarders takes the server's clock from the entry of this write
			p.Manage(contract.ManagedBy)
		}
		at := client.ObjectKeyFromObject(l)
		err := send(ctx, c, at, p)
		if err == nil {
			s.of(next, now)
			return nil
		}
		if !apierrors.IsConflict(err) || round == rounds {
			return err
		}
		l = &coordinationv1.Lease{}
		if err := c.Get(ctx, at, l); err != nil {
			return fmt.Errorf("get Lease %s: %w", at, err)
		}
	}
}
