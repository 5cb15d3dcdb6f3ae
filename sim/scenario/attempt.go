package scenario

import (
	"context"
	"strings"
)

// Callers is a laboratory with callers of all kinds.
type Callers interface {
	// Attempt lets them all try to read at the hub of a node.
	Attempt(ctx context.Context, at *Aim) error
}

// Attempt lets all kinds of callers try to read at a hub.
type Attempt struct{ ofWeir }

func (*Attempt) rule() actionRule { return takes("attempt", []Target{kubeletPrefix}, "") }

func (*Attempt) unmeasured(metric string, s *Scenario) string {
	if strings.HasSuffix(metric, "_attempts") && !happen[*Attempt](s) {
		return metric + " is measured by attempts: want a fault of that action"
	}
	return ""
}

// Begin implements Kind.
func (*Attempt) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Callers) (Going, error) { return Going{}, of.Attempt(ctx, at) })
}
