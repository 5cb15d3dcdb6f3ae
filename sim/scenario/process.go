package scenario

import (
	"context"
	"slices"
)

// What is done to a process. It is healed by a start, or goes on.
type (
	// Kill ends a process without a warning.
	Kill struct{ Ending }
	// Stop asks a process to end.
	Stop struct{ Ending }
	// Restart asks a process to end, and starts it when it has.
	Restart struct{ Stop }
	// Freeze lets a process stand still: its connections stay and say nothing.
	Freeze struct{ common }
)

// processes are what can be ended and started again.
func processes() []Target {
	return []Target{Leader, Follower, hubPrefix, Coordinator, APIServer, ControllerManager, Gate}
}

func (*Kill) rule() actionRule { return takes("kill", processes(), "for disk? repeat? every?") }

func (*Stop) rule() actionRule { return takes("stop", processes(), "for disk? repeat? every?") }

func (*Restart) rule() actionRule {
	return takes("restart", append(processes(), Each), "disk? repeat? every?")
}

func (*Freeze) rule() actionRule { return takes("freeze", processes(), "for repeat? every?") }

// Begin implements Kind.
func (k *Kill) Begin(_ context.Context, lab Lab, at *Aim) (Going, error) {
	return k.end(lab, at, Part.Kill)
}

// Begin implements Kind.
func (k *Stop) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return k.end(lab, at, func(p Part) error { return p.Stop(ctx) })
}

// Begin implements Kind.
func (*Freeze) Begin(_ context.Context, lab Lab, at *Aim) (Going, error) {
	p, err := lab.Part(at)
	if err != nil {
		return Going{}, err
	}
	return Going{Heal: func(context.Context) error { return p.Thaw() }}, p.Freeze()
}

// effect: the watch cache of an apiserver that goes on is what it was.
func (f *Freeze) effect(of Fault) effect {
	e := f.common.effect(of)
	e.apiserver, e.batches = false, e.batches && of.For >= longBreak
	return e
}

// Disk says what a process finds when it starts again.
type Disk string

// The fates of a disk.
const (
	KeepDisk Disk = "keep"
	LoseDisk Disk = "lose"
	TornDisk Disk = "torn" // bytes of the hub's files are others, or missing
)

// Ending is what kinds have in common that end a process.
type Ending struct {
	common

	Disk Disk
}

func (e *Ending) check(o object, f Fault, _ Pool, _ []Pool) {
	if e.Disk == LoseDisk && f.Target == APIServer {
		o.fields["disk"].contradiction("want action: restore, which says from when the backup is, or another target")
	}
}

func (e *Ending) own() []own {
	return []own{{"disk", e.Disk, func(v value, _ Pool) { e.Disk = v.disk() }}}
}

func (v value) disk() Disk {
	s, _ := v.choice([]string{string(KeepDisk), string(LoseDisk), string(TornDisk)})
	return Disk(s)
}

func (e *Ending) words() string {
	return map[Disk]string{LoseDisk: ", disk lost", TornDisk: ", disk torn"}[e.Disk]
}

// fate is what becomes of the disk.
func (e *Ending) fate() Disk { return e.Disk }

// Disk says what the process finds when it starts again, if the fault ends one; "": what it left.
func (f Fault) Disk() Disk {
	if k, ok := f.Kind.(interface{ fate() Disk }); ok {
		return k.fate()
	}
	return ""
}

// Aim implements Kind.
func (e *Ending) Aim(ctx context.Context, lab Lab, at *Aim) error {
	at.Ends = true
	return e.common.Aim(ctx, lab, at)
}

// end ends the process in one way or another, and starts it when it is healed.
func (e *Ending) end(lab Lab, at *Aim, how func(Part) error) (Going, error) {
	p, err := lab.Part(at)
	if err != nil {
		return Going{}, err
	}
	lab.Lost(at.Silent)
	return Going{Heal: func(ctx context.Context) error { return e.start(ctx, lab, at, p) }}, how(p)
}

// start starts it with the disk that it is to have.
func (e *Ending) start(ctx context.Context, lab Lab, at *Aim, p Part) error {
	if e.Disk == LoseDisk {
		if err := p.LoseDisk(); err != nil {
			return err
		}
	}
	lab.Lost(at.Silent)
	return p.Start(ctx)
}

// Tears reports whether a fault damages files.
func (s *Scenario) Tears() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Disk() == TornDisk })
}
