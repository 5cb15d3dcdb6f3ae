package scenario

import (
	"context"
	"errors"
)

// FillDisk lets the hub of a node write no file any more.
type FillDisk struct{ ofWeir }

func (*FillDisk) rule() actionRule { return takes("fill-disk", []Target{hubPrefix}, "for") }

// Begin implements Kind.
func (*FillDisk) Begin(_ context.Context, lab Lab, at *Aim) (Going, error) {
	p, err := lab.Part(at)
	if err != nil {
		return Going{}, err
	}
	full, ok := p.(interface {
		FillDisk() error
		FreeDisk() error
	})
	if !ok {
		return Going{}, errors.New("its disk cannot be filled on this runtime")
	}
	return Going{Heal: func(context.Context) error { return full.FreeDisk() }}, full.FillDisk()
}
