package scenario

import "context"

// Liars is a laboratory that gives away the keys of nodes.
type Liars interface {
	// Lie lets somebody with the key of the leader's node lead in its place, and forge.
	Lie(ctx context.Context, at *Aim) (Going, error)
}

// Lie lets somebody with the key of the leader's node lead in its place, and show an EndpointSlice that the cloud never
// had. Its clients are served on.
type Lie struct{ served }

func (*Lie) rule() actionRule { return takes("lie", []Target{Leader}, "for") }

// Begin implements Kind.
func (*Lie) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Liars) (Going, error) { return of.Lie(ctx, at) })
}
