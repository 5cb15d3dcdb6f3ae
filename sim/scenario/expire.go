package scenario

import "context"

// Issuers is a laboratory that issues certificates and tokens.
type Issuers interface {
	// Expire gives nodes certificates, and a pod a token, that end soon. It is healed by new certificates.
	Expire(ctx context.Context) (Going, error)
}

// Expire lets certificates of nodes and tokens of pods end soon.
type Expire struct{ ofWeir }

func (*Expire) rule() actionRule { return takes("expire", []Target{WholePool}, "for") }

// Begin implements Kind.
func (*Expire) Begin(ctx context.Context, lab Lab, _ *Aim) (Going, error) {
	return with(lab, func(of Issuers) (Going, error) { return of.Expire(ctx) })
}

// Expires reports whether a certificate may have expired: until a hub knows that the cloud is away, it is no longer
// valid.
func (s *Scenario) Expires() bool { return happen[*Expire](s) }
