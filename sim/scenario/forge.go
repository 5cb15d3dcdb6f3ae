package scenario

import (
	"context"
	"strings"
)

// Forgers is a laboratory that gives away the credentials of nodes.
type Forgers interface {
	// Forge asks for certificates with the credentials of a node.
	Forge(ctx context.Context, at *Aim) error
}

// Forge asks, with the credentials of the node, for certificates that are not its own. Its clients are served on.
type Forge struct{ served }

func (*Forge) rule() actionRule { return takes("forge", nodes(), "") }

func (*Forge) check(o object, _ Fault, p Pool, _ []Pool) { o.enrols(p) }

func (*Forge) unmeasured(metric string, s *Scenario) string {
	if strings.HasPrefix(metric, "forged_") && !s.Forges() {
		return metric + " is measured when somebody asks for certificates: want a fault of action forge"
	}
	return ""
}

// Begin implements Kind.
func (*Forge) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Forgers) (Going, error) { return Going{}, of.Forge(ctx, at) })
}

// enrols refuses what is about certificates where weir-manager signs none.
func (o object) enrols(p Pool) {
	if !p.Enrols {
		o.fields["action"].contradiction(
			"nobody signs certificates there, nor takes them back: want topology.pool.enrols: true")
	}
}

// Forges reports whether a fault asks for certificates.
func (s *Scenario) Forges() bool { return happen[*Forge](s) }
