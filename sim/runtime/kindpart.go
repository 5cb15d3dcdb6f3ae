package runtime

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/docker"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
)

const (
	bootPatience = 90 * time.Second // from the start of a machine until its part is healthy
	kindPoll     = 100 * time.Millisecond
	faultTime    = 30 * time.Second // for the engine to do what is done to a machine
	tailBytes    = 2048
)

// machine is a container that is a machine of the site.
type machine struct {
	docker.Container
	node    string // its name in the cluster
	pool    Pool
	network *docker.Network
	address string
	link    string // the near end of the link for what has no class of its own
	hub     *hub   // nil: its node has none

	mu    sync.Mutex
	id    string
	fixed bool // the address is its own for good
}

// locate learns the machine's address.
func (m *machine) locate(ctx context.Context) error {
	all, err := m.Addresses(ctx)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("it has the addresses %v: want one", all)
	}
	if err != nil {
		return err
	}
	m.address = all[0]
	return nil
}

// crash is a power cut. The machine keeps its address through it, as real ones do.
func (m *machine) crash(ctx context.Context) error {
	on, err := m.Running(ctx)
	if err != nil || !on {
		return err
	}
	if err := m.Kill(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fixed {
		return nil
	}
	if err := m.network.Fix(ctx, m.Container, m.address); err != nil {
		return err
	}
	m.fixed = true
	return nil
}

// process finds the process of a command in the machine.
func (m *machine) process(ctx context.Context, command string) (*proc.Stranger, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.id == "" {
		id, err := m.ID(ctx)
		if err != nil {
			return nil, err
		}
		m.id = id
	}
	return proc.InContainer(m.id, command)
}

// life is how a part begins and ends in its machine.
type life interface {
	begin(ctx context.Context) error // of the process, and of the machine if that is off; it need not be healthy then
	end(ctx context.Context) error   // the process is asked to end, and has ended
	wipe(ctx context.Context) error  // takes what the part keeps; it does not run
	crash(ctx context.Context) error // the process ends without a warning; it may have ended already
}

// prober asks a part how it is.
type prober interface {
	Healthy(ctx context.Context) error
	Status(ctx context.Context, v any) error
	Metrics(ctx context.Context) (parts.Metrics, error)
}

// kindPart is a hub, a coordinator, a kubelet or a machine.
type kindPart struct {
	prober
	life    life
	machine *machine
	name    string
	command string
	log     string

	starting sync.Mutex // held by one start at a time
	mu       sync.Mutex
	process  *proc.Stranger // nil before the first start
}

var _ Part = (*kindPart)(nil)

func (p *kindPart) Name() string    { return p.name }
func (p *kindPart) LogFile() string { return p.log }

func (p *kindPart) Start(ctx context.Context) error {
	p.starting.Lock()
	defer p.starting.Unlock()
	if p.Running() {
		return fmt.Errorf("start %s: it is running", p.name)
	}
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	if err := p.life.begin(ctx); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	tick := time.NewTicker(kindPoll)
	defer tick.Stop()
	for {
		err := p.Healthy(ctx)
		if err == nil {
			process, err := p.machine.process(ctx, p.command)
			if err != nil {
				return fmt.Errorf("start %s: %w", p.name, err)
			}
			p.forget()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.process = process
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is not healthy: %w: %w\n  %s", p.name, ctx.Err(), err, tail(p.log))
		}
	}
}

func (p *kindPart) Stop(ctx context.Context) error {
	return p.do(ctx, "stop", func(ctx context.Context, x *proc.Stranger) error {
		if err := p.life.end(ctx); err != nil {
			return err
		}
		return awaitEnd(ctx, x)
	})
}

func (p *kindPart) Kill() error {
	return p.do(context.Background(), "kill", func(ctx context.Context, x *proc.Stranger) error {
		if err := p.life.crash(ctx); err != nil {
			return err
		}
		return awaitEnd(ctx, x)
	})
}

func (p *kindPart) Freeze() error {
	return p.do(context.Background(), "freeze", func(ctx context.Context, _ *proc.Stranger) error {
		return p.machine.Pause(ctx)
	})
}

func (p *kindPart) Thaw() error {
	return p.do(context.Background(), "thaw", func(ctx context.Context, _ *proc.Stranger) error {
		return p.machine.Unpause(ctx)
	})
}

func (p *kindPart) LoseDisk() error {
	if p.Running() {
		return fmt.Errorf("take the disk of %s: it is running", p.name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultTime)
	defer cancel()
	if err := p.life.wipe(ctx); err != nil {
		return fmt.Errorf("take the disk of %s: %w", p.name, err)
	}
	return nil
}

func (p *kindPart) do(ctx context.Context, verb string, do func(context.Context, *proc.Stranger) error) error {
	x := p.stranger()
	if x == nil || !x.Running() {
		return fmt.Errorf("%s %s: it is not running", verb, p.name)
	}
	ctx, cancel := context.WithTimeout(ctx, faultTime)
	defer cancel()
	if err := do(ctx, x); err != nil {
		return fmt.Errorf("%s %s: %w", verb, p.name, err)
	}
	return nil
}

func awaitEnd(ctx context.Context, x *proc.Stranger) error {
	select {
	case <-x.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *kindPart) stranger() *proc.Stranger {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// forget ends the watch over its process, which nobody asks for any more.
func (p *kindPart) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		p.process.Forget()
		p.process = nil
	}
}

func (p *kindPart) Running() bool {
	x := p.stranger()
	return x != nil && x.Running()
}

func (p *kindPart) Done() <-chan struct{} {
	if x := p.stranger(); x != nil {
		return x.Done()
	}
	return nil
}

func (p *kindPart) Err() error {
	if x := p.stranger(); x == nil || x.Running() {
		return nil
	}
	return fmt.Errorf("%s has ended\n  %s", p.name, tail(p.log))
}

func (p *kindPart) Usage() (proc.Usage, error) {
	x := p.stranger()
	if x == nil {
		return proc.Usage{}, fmt.Errorf("measure %s: it is not running", p.name)
	}
	return x.Usage()
}

// tail is the end of a log.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-tailBytes), io.SeekStart)
	}
	data, _ := io.ReadAll(f)
	return string(data)
}
