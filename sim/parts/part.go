package parts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-edge/weir/sim/proc"
)

const (
	startPatience = time.Minute
	stopGrace     = 15 * time.Second
	poll          = 20 * time.Millisecond
)

// Launch says how to run a part.
type Launch struct {
	Spawner *proc.Spawner
	Name    string // what people call it: "hub of edge-1"
	Path    string // of the command
	Dir     string // for its config file
	LogFile string
	Data    string // folder of what it keeps; empty: it keeps nothing
	// its machine has no battery clock: whenever it starts again it is 1970. The command is one of FindTimeless.
	NoClock bool
}

// Part is a process that answers at an address: a hub, a coordinator, a controller. It can be started again after it
// ended, with the same configuration.
type Part struct {
	*Probe
	launch Launch
	args   []string
	former []string // of a hub of before; nil: it has the same

	starting sync.Mutex // held by one start at a time
	ahead    time.Duration
	mu       sync.Mutex
	process  *proc.Process
}

// NewHub writes the configuration of a hub. Start runs it.
func NewHub(l Launch, c HubConfig) (*Part, error) {
	path, err := c.Write(l.Dir)
	if err != nil {
		return nil, err
	}
	return &Part{
		Probe: HubProbe(l.Name, c), launch: l, args: []string{"--config=" + path},
		former: []string{"--config=" + filepath.Join(l.Dir, formerFile)},
	}, nil
}

// NewCoordinator writes the configuration of a coordinator. Start runs it. The transport carries a credential that may
// read its health, metrics and status.
func NewCoordinator(l Launch, c CoordinatorConfig, transport http.RoundTripper) (*Part, error) {
	path, err := c.Write(l.Dir)
	if err != nil {
		return nil, err
	}
	return &Part{Probe: CoordinatorProbe(l.Name, c, transport), launch: l, args: []string{"--config=" + path}}, nil
}

// NewCommand is a part that has flags instead of a configuration file. It answers below base: /healthz, and what else
// it has.
func NewCommand(l Launch, args []string, base string, transport http.RoundTripper) *Part {
	return &Part{Probe: newProbe(l.Name, base, transport), launch: l, args: args}
}

// Name is what people call the part.
func (p *Part) Name() string { return p.launch.Name }

// Data is the folder of what it keeps, "" if it keeps nothing.
func (p *Part) Data() string { return p.launch.Data }

// LogFile is where it logs.
func (p *Part) LogFile() string { return p.launch.LogFile }

// Ahead sets the part's clock ahead, from its next start on, as if so much time had passed since. Its command is one of
// FindTimeless.
func (p *Part) Ahead(by time.Duration) {
	p.starting.Lock()
	defer p.starting.Unlock()
	p.ahead = by
}

// Start starts the part and waits until it answers that it is healthy.
func (p *Part) Start(ctx context.Context) error {
	p.starting.Lock()
	defer p.starting.Unlock()
	if p.Running() {
		return fmt.Errorf("start %s: it is running", p.launch.Name)
	}
	spec := proc.Spec{Name: p.launch.Name, Path: p.launch.Path, Args: p.args, LogFile: p.launch.LogFile}
	if p.former != nil && isFormer(ctx, p.launch.Path) {
		spec.Args = p.former
	}
	switch {
	case p.launch.NoClock && p.process != nil: // only Start sets it
		spec.Env = append(spec.Env, clockIn1970(time.Now()))
	case p.ahead != 0:
		spec.Env = append(spec.Env, clockAhead(p.ahead))
	}
	x, err := p.launch.Spawner.Start(spec)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.process = x
	p.mu.Unlock()
	if err := p.waitHealthy(ctx, x); err != nil {
		x.Kill()
		return err
	}
	return nil
}

func (p *Part) waitHealthy(ctx context.Context, x *proc.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := p.Healthy(ctx)
		if err == nil && x.Running() {
			return nil
		}
		select { // whether it still runs comes first: somebody else may answer at its address
		case <-x.Done():
			return fmt.Errorf("%s ended before it was healthy: %w", p.launch.Name, orExit(x.Err()))
		default:
		}
		select {
		case <-tick.C:
		case <-x.Done():
		case <-ctx.Done():
			return fmt.Errorf("%s is not healthy: %w: %w\n  %s", p.launch.Name, ctx.Err(), err, x.Tail(2048))
		}
	}
}

func orExit(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// Stop asks the part to end (SIGTERM) and waits. A part that does not run is an error: a scenario that stops it twice
// has lost track.
func (p *Part) Stop(ctx context.Context) error {
	x, err := p.running("stop")
	if err != nil {
		return err
	}
	return x.Stop(ctx, stopGrace)
}

// Kill ends the part by SIGKILL.
func (p *Part) Kill() error {
	x, err := p.running("kill")
	if err != nil {
		return err
	}
	x.Kill()
	return nil
}

// Freeze stops the part's clock (SIGSTOP): its connections stay and say nothing.
func (p *Part) Freeze() error {
	x, err := p.running("freeze")
	if err != nil {
		return err
	}
	return x.Freeze()
}

// Thaw lets a frozen part go on.
func (p *Part) Thaw() error {
	x, err := p.running("thaw")
	if err != nil {
		return err
	}
	return x.Thaw()
}

// LoseDisk removes all that the part kept. It must not run.
func (p *Part) LoseDisk() error {
	if p.Running() {
		return fmt.Errorf("take the disk of %s: it is running", p.launch.Name)
	}
	if p.launch.Data == "" {
		return nil
	}
	entries, err := os.ReadDir(p.launch.Data)
	if err != nil {
		return fmt.Errorf("take the disk of %s: %w", p.launch.Name, err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(p.launch.Data, e.Name())); err != nil {
			return fmt.Errorf("take the disk of %s: %w", p.launch.Name, err)
		}
	}
	return nil
}

// FillDisk lets the part write no file any more, as on a full disk, until FreeDisk or its next start.
func (p *Part) FillDisk() error { return p.limitFiles(0) }

// FreeDisk undoes FillDisk.
func (p *Part) FreeDisk() error { return p.limitFiles(unix.RLIM_INFINITY) }

func (p *Part) limitFiles(to uint64) error {
	x, err := p.running("limit the files of")
	if err != nil {
		return err
	}
	if err := unix.Prlimit(x.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: to, Max: unix.RLIM_INFINITY}, nil); err != nil {
		return fmt.Errorf("limit the files of %s: %w", p.launch.Name, err)
	}
	return nil
}

// Usage is the memory and CPU that it uses now.
func (p *Part) Usage() (proc.Usage, error) {
	x, err := p.running("measure")
	if err != nil {
		return proc.Usage{}, err
	}
	return x.Usage()
}

// Running reports whether it runs.
func (p *Part) Running() bool {
	_, err := p.running("")
	return err == nil
}

// Done is closed when the process that runs now, or ran last, has ended; nil before the first start.
func (p *Part) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return nil
	}
	return p.process.Done()
}

// Err tells how the last process ended, with the end of its log; nil while it runs.
func (p *Part) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return nil
	}
	return p.process.Err()
}

func (p *Part) running(verb string) (*proc.Process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil || !p.process.Running() {
		return nil, fmt.Errorf("%s %s: it is not running", verb, p.launch.Name)
	}
	return p.process, nil
}
