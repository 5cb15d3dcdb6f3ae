package scenario

import (
	"context"
	"errors"
)

// Unready lets the apiserver say that it is not ready, since its key service is down. It serves everything.
type Unready struct{ served }

func (*Unready) rule() actionRule { return takes("unready", []Target{APIServer}, "for") }

// Begin implements Kind.
func (*Unready) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	p, err := lab.Part(at)
	if err != nil {
		return Going{}, err
	}
	u, ok := p.(interface {
		SetReady(ctx context.Context, ready bool) error
	})
	if !ok {
		return Going{}, errors.New("this apiserver cannot be made to say that it is not ready")
	}
	return Going{Heal: func(ctx context.Context) error { return u.SetReady(ctx, true) }}, u.SetReady(ctx, false)
}

// Unready reports whether a fault lets the apiserver say that it is not ready.
func (s *Scenario) Unready() bool { return happen[*Unready](s) }
