package renewals

import (
	"context"
	"encoding/json"
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

const (
	// rounds is how often a Lease is written that others write at the same time.
	rounds = 3
	// onlyRenewTime are the fields of a write of the renewTime.
	onlyRenewTime = `{"f:spec":{"f:renewTime":{}}}`
)

// patch is a merge patch of a Lease: what changes.
type patch struct {
	Metadata patchMeta  `json:"metadata"`
	Spec     *patchSpec `json:"spec,omitempty"`
}

type patchMeta struct {
	ResourceVersion string                      `json:"resourceVersion,omitempty"` // on condition of which
	Annotations     map[string]*string          `json:"annotations,omitempty"`     // nil takes one away
	ManagedFields   []metav1.ManagedFieldsEntry `json:"managedFields,omitempty"`   // an empty entry takes all away
}

type patchSpec struct {
	RenewTime metav1.MicroTime `json:"renewTime"`
}

// send patches a Lease.
func (p patch) send(ctx context.Context, c client.Client, at client.ObjectKey) error {
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

// renew lets the renewTime of a node's Lease grow, from as it was last seen, and takes away the mark of a node that is
// cut off. Reads of the client are from no cache. If somebody else has written the Lease, it is looked at again: what
// was seen may be old, and then nobody has renewed it.
func (s *sight) renew(ctx context.Context, c client.Client, clock clock.PassiveClock, l *coordinationv1.Lease) error {
	for round := 1; ; round++ {
		now := clock.Now()
		s.of(lease.RenewTime(l), now)
		next := metav1.NewMicroTime(heartbeat.Onward(s.stands, now.Sub(s.since)))
		p := patch{Metadata: patchMeta{ResourceVersion: l.ResourceVersion}, Spec: &patchSpec{next}}
		if _, marked := l.Annotations[contract.DelegateHeartbeat]; marked {
			p.Metadata.Annotations = map[string]*string{contract.DelegateHeartbeat: nil}
		}
		if !Managed(l) { // the policy weir-forwarders takes the server's clock from the entry of this write
			p.Metadata.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: contract.ManagedBy, Operation: metav1.ManagedFieldsOperationUpdate,
				APIVersion: coordinationv1.SchemeGroupVersion.String(), FieldsType: "FieldsV1",
				FieldsV1: &metav1.FieldsV1{Raw: []byte(onlyRenewTime)},
			}}
		}
		at := client.ObjectKeyFromObject(l)
		err := p.send(ctx, c, at)
		if err == nil {
			s.of(next.Time, now)
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

// Managed reports whether a Lease has managedFields of its renewTime, and of nothing else.
func Managed(l *coordinationv1.Lease) bool {
	m := l.ManagedFields
	return len(m) == 1 && m[0].FieldsV1 != nil && string(m[0].FieldsV1.Raw) == onlyRenewTime
}
