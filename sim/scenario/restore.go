package scenario

import (
	"context"
	"time"
)

// Restorer is a laboratory whose cloud can be restored from a backup.
type Restorer interface {
	// BackUp makes the backup.
	BackUp(ctx context.Context) error
	// Restore gives the cloud, whose apiserver has ended, the history of the backup, and starts it.
	Restore(ctx context.Context, at *Aim) error
}

// Restore restores the cloud's etcd from a backup: versions are used a second time.
type Restore struct {
	unnoticed

	Lost time.Duration // what was written in this time before it is lost
}

func (*Restore) rule() actionRule { return takes("restore", []Target{APIServer}, "for lost") }

func (k *Restore) check(o object, f Fault, _ Pool, _ []Pool) {
	if k.Lost > f.At {
		o.fields["lost"].contradiction("the backup would be taken before the changes begin: want at most at:, " +
			f.At.String())
	}
}

func (*Restore) contradicts(s *Scenario) string {
	switch {
	case s.RestoresCloud():
		return "the cloud is restored twice: want one"
	case len(s.Compare) > 0:
		return "a stock client waits in silence for ever behind a restored cloud, so nothing can be compared: " +
			"want compare: []"
	}
	return ""
}

func (k *Restore) own() []own {
	return []own{{"lost", k.Lost, func(v value, _ Pool) { k.Lost = v.duration(maxFaultAt) }}}
}

// Before implements Prepared.
func (k *Restore) Before() time.Duration { return k.Lost }

// Prepare implements Prepared: the backup is made.
func (*Restore) Prepare(ctx context.Context, lab Lab) error {
	_, err := with(lab, func(of Restorer) (Going, error) { return Going{}, of.BackUp(ctx) })
	return err
}

// Begin implements Kind.
func (*Restore) Begin(_ context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Restorer) (Going, error) {
		p, err := lab.Part(at)
		if err != nil {
			return Going{}, err
		}
		return Going{Heal: func(ctx context.Context) error { return of.Restore(ctx, at) }}, p.Kill()
	})
}

// RestoresCloud reports whether a fault restores the cloud from a backup. All clients then list once.
func (s *Scenario) RestoresCloud() bool { return happen[*Restore](s) }
