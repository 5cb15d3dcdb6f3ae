package lease

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Policy says who may write which Leases, and what is kept of them. The zero value lets everybody write everything, and
// keeps all of it.
type Policy struct {
	// May says why a user may not use the Lease of a name, "" for a list of them; nil: everybody may.
	May func(user, name string) error
	// Write says why a user may not write a Lease in place of the old one, nil for none; nil: everybody may.
	Write func(ctx context.Context, user string, lease, old *coordinationv1.Lease) error
	// Applied is called after each write and before its writer is answered; nil: nobody is told.
	Applied func(*coordinationv1.Lease)
	Keep    func(*coordinationv1.Lease) *coordinationv1.Lease // what is kept of a Lease; nil: all
	Max     int                                               // Leases that are kept; 0: any number
	Forget  time.Duration                                     // after which one goes that nobody writes; 0: none goes
}
