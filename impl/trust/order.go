package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/pki"
)

// maxOrder bounds the text of an Order.
const maxOrder = 4 << 10

// Order asks weir-manager to replace the authority of a pool. It is the value of contract.RotateAnnotation.
type Order struct {
	ID      string `json:"id"` // whoever asks tells by it that it is his
	Settle  string `json:"settle"`
	Overlap string `json:"overlap"`
	LostKey bool   `json:"lostKey,omitempty"`
	// StolenKey: nothing that the authority of now signed counts any more, and nobody vouches for the next one.
	StolenKey bool `json:"stolenKey,omitempty"`
}

// ParseOrder reads an Order and what it plans.
func ParseOrder(text string) (o Order, p pki.Plan, err error) {
	fail := func(err error) (Order, pki.Plan, error) { return o, p, fmt.Errorf("order of a rotation: %w", err) }
	if len(text) > maxOrder {
		return fail(fmt.Errorf("%d bytes, want %d at most", len(text), maxOrder))
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fail(err)
	}
	if o.LostKey && o.StolenKey {
		return fail(errors.New("lostKey and stolenKey are true, want one of them at most"))
	}
	if p.Settle, err = time.ParseDuration(o.Settle); err != nil {
		return fail(fmt.Errorf("settle: %w", err))
	}
	if p.Overlap, err = time.ParseDuration(o.Overlap); err != nil {
		return fail(fmt.Errorf("overlap: %w", err))
	}
	if err := p.Check(); err != nil {
		return fail(err)
	}
	return o, p, nil
}

// Steps of a rotation.
const (
	Steady   = "steady"   // one authority
	Prepared = "prepared" // the next one is trusted, and does not sign yet
	Switched = "switched" // it signs; those before are trusted still
	Replaced = "replaced" // the key was lost; the new one does not sign yet
)

// Progress is how far a rotation is. It is the value of contract.RotationAnnotation.
type Progress struct {
	Step    string    `json:"step"`
	Due     time.Time `json:"due,omitzero"`     // when the next step is taken
	Signer  string    `json:"signer"`           // see Name
	Next    string    `json:"next,omitempty"`   // the same
	Trusted int       `json:"trusted"`          // how many authorities are
	Ends    time.Time `json:"ends"`             // when the signer does
	Order   string    `json:"order,omitempty"`  // ID of the last one
	Refused string    `json:"refused,omitzero"` // why it was not carried out
}

// ProgressOf is how far a succession is.
func ProgressOf(s *pki.Succession, now time.Time) Progress {
	p := Progress{
		Step: Steady, Signer: Name(s.Signer.Cert()), Trusted: len(s.Trusted()), Ends: s.Signer.Cert().NotAfter.UTC(),
	}
	switch {
	case s.Next != nil:
		p.Step, p.Due, p.Next = Prepared, s.SignsAt.UTC(), Name(s.Next.Cert())
	case s.MaySign(now) != nil:
		p.Step, p.Due = Replaced, s.SignsAt.UTC()
	case len(s.Before) > 0:
		p.Step, p.Due = Switched, s.RetireAt.UTC()
	}
	return p
}
