package nodelocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/disk"
)

// DefaultPodsWait is for kubelets with the syncFrequency that they have by default: they look after each pod in 90 s.
const DefaultPodsWait = 2 * time.Minute

const (
	again    = time.Second     // between two tries to listen
	mostFile = 256             // bytes
	look     = 2 * time.Second // between two looks whether the machine has the address
)

// PodsConfig is what Pods is made of. All of it is needed, but for Address and Machine.
type PodsConfig struct {
	// Address is where pods reach this machine; "": they are not led.
	Address string
	// File keeps where they were led.
	File string
	// Known says that the hub showed its authority before it was started.
	Known bool
	// Wait is how long the kubelet has to read through the hub before pods are led; 0: DefaultPodsWait.
	Wait time.Duration
	// Listen opens a port at an address. Beside is where the hub listens already: it takes the same port.
	Listen func(address string, port int) (net.Listener, error)
	// Machine has the address; nil: nobody looks after it.
	Machine Machine
	Beside  func() net.Addr
	Clock   clock.WithTicker
	Logger  *slog.Logger
}

// Pods leads the pods of this node. See the package comment. nil is that of a hub whose authority they cannot trust: it
// leads none.
type Pods struct {
	PodsConfig
	before string // what the file had at first
	kept   string // what it has: Run's alone
	told   string // what leads was told: Run's alone
	leads  func(address string)
	reads  chan struct{} // closed when the kubelet has read through this hub

	mu       sync.Mutex
	read     bool
	listener net.Listener
	led      string
	shown    bool // the kubelet has read since
	lost     bool // the machine does not have the address any more
	losses   int
}

// PodsStatus is where pods are led.
type PodsStatus struct {
	Address string `json:"address"`            // at which the hub serves them; "": it cannot
	Led     bool   `json:"led"`                // the kubelet has read it: containers that start now are told it
	Waits   string `json:"waitsFor,omitempty"` // why they are not
}

// String is for a person.
func (s *PodsStatus) String() string {
	if s.Led {
		return "that start now are told to call the hub at " + s.Address
	}
	return "call the cloud: " + s.Waits
}

// CheckPods reports the invalid flag of a hub that listens at an address.
func CheckPods(address, bind string, wait time.Duration) error {
	if wait < 0 {
		return cli.Usage("--pods-wait", wait, "more than 0")
	}
	switch ip := net.ParseIP(address); {
	case address == "":
	case ip == nil || ip.IsUnspecified() || ip.IsMulticast():
		return cli.Usage("--pods-address", address, "an IP address of this machine")
	case net.ParseIP(bind).IsUnspecified() || ip.Equal(net.ParseIP(bind)):
		return cli.Usage("--pods-address", address, "an address at which --bind-address, "+bind+", does not listen already")
	}
	return nil
}

// Follow has f told where containers are led from now on, at an address and a port; "": those of the cloud. It must be
// called before Open.
func (p *Pods) Follow(f func(address string)) { p.leads = f }

// NewPods reads what was kept.
func NewPods(c PodsConfig) *Pods {
	c.Wait = cmp.Or(c.Wait, DefaultPodsWait)
	p := &Pods{PodsConfig: c, reads: make(chan struct{}), leads: func(string) {}}
	text, err := disk.ReadFile(c.File, mostFile)
	if err == nil {
		var at netip.AddrPort
		if at, err = netip.ParseAddrPort(strings.TrimSpace(string(text))); err == nil {
			p.before, p.kept, p.told = at.String(), at.String(), at.String()
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Logger.Error("it is not known whether pods were led to this hub: they are when --pods-wait is over", "file", c.File,
			"err", err)
	}
	return p
}

// Before is where the process before led pods; "": to the cloud.
func (p *Pods) Before() string { return p.before }

// Reads is told that the kubelet reads Services through this hub.
func (p *Pods) Reads() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	if !p.read {
		p.read = true
		close(p.reads)
	}
}

// Shown is told where the kubelet is told to lead pods. A watch of Services that is open is told of a new address
// without another read.
func (p *Pods) Shown(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = p.shown || address == p.led
}

// Open listens, if that is possible now. Run tries again.
func (p *Pods) Open() error {
	if p == nil || p.Address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(p.Beside().String())
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	l, err := p.Listen(p.Address, n)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = l
	return nil
}

// Close gives back the port of a hub that is not run.
func (p *Pods) Close() {
	if p == nil {
		return
	}
	if l := p.port(); l != nil {
		_ = l.Close()
	}
}

func (p *Pods) port() net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener
}

// Status tells where pods are led.
func (p *Pods) Status() *PodsStatus {
	if p == nil {
		return nil
	}
	s := &PodsStatus{}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		s.Address = p.listener.Addr().String()
	}
	switch s.Led = p.led != "" && p.shown; {
	case s.Led:
	case p.Address == "":
		s.Waits = "--pods-address is not given"
	case p.lost:
		s.Waits = fmt.Sprintf(
			"this machine has lost %s, and the hub may not put it back: ip address replace %[1]s dev lo scope host", p.Address)
	case p.listener == nil:
		s.Waits = fmt.Sprintf("%s is not an address of this machine, or its port is taken", p.Address)
	case !p.read:
		s.Waits = "the kubelet has not read Services through this hub"
	case p.led != "":
		s.Waits = "the kubelet has not read Services again, which says this address now"
	default:
		s.Waits = fmt.Sprintf("pods trust the hub %v after the kubelet has first read through it", p.Wait)
	}
	return s
}

// Run leads pods until ctx ends. serve serves at a port until then.
func (p *Pods) Run(ctx context.Context, serve func(net.Listener) error) error {
	switch {
	case p == nil:
		return nil
	case p.Address == "":
		p.lead("")
		return nil
	}
	switch {
	case p.before == "":
	case !p.Known: // pods trust another authority
		p.lead("")
	case p.port() == nil: // there is nobody at the address
		p.tell("")
	}
	if !p.listen(ctx) {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	l := p.port()
	g.Go(func() error { return serve(l) })
	g.Go(func() error {
		if p.trusted(ctx) {
			p.lead(l.Addr().String())
			p.keep(ctx, l.Addr().String())
		}
		return nil
	})
	return g.Wait()
}

// listen tries until it does; false: ctx has ended.
func (p *Pods) listen(ctx context.Context) bool {
	if p.port() != nil {
		return true
	}
	tick := p.Clock.NewTicker(again)
	defer tick.Stop()
	for told := ""; ; {
		err := p.Open()
		if err == nil {
			return true
		}
		if text := err.Error(); text != told {
			told = text
			p.Logger.Warn("pods are not led to this hub, since it cannot listen for them", "flag", "--pods-address",
				"address", p.Address, "err", err)
		}
		select {
		case <-tick.C():
		case <-ctx.Done():
			return false
		}
	}
}

// trusted waits until pods trust the hub; false: ctx has ended.
func (p *Pods) trusted(ctx context.Context) bool {
	if p.kept != "" {
		return true
	}
	select {
	case <-p.reads:
	case <-ctx.Done():
		return false
	}
	t := p.Clock.NewTimer(p.Wait)
	defer t.Stop()
	select {
	case <-t.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// keep looks after the address of this machine until ctx ends. When something has taken it away it puts it back; if it
// may not, pods are led to the cloud until it is there again. Those that run with it fail as long as it is gone.
func (p *Pods) keep(ctx context.Context, to string) {
	at, err := netip.ParseAddr(p.Address)
	if err != nil || p.Machine == nil {
		return
	}
	at = at.Unmap()
	if has, err := p.Machine.Has(at); err != nil || !has { // its ports are not of this machine
		return
	}
	tick := p.Clock.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C():
		case <-ctx.Done():
			return
		}
		has, err := p.Machine.Has(at)
		if err != nil {
			continue // it is not known
		}
		if !has {
			p.count()
			err = p.Machine.Give(at)
			has = err == nil
			if has {
				p.Logger.Warn("something took away the address at which pods call this hub: it is put back", "address", at)
			}
		}
		switch {
		case !has && p.setLost(true):
			p.Logger.Error("something took away the address at which pods call this hub, and it cannot be put back: "+
				"containers that start now are told to call the cloud, and those that run with it fail",
				"address", at, "err", err, "command", fmt.Sprintf("ip address replace %s dev lo scope host", at))
			p.tell("")
		case has && p.setLost(false):
			p.Logger.Info("the address at which pods call this hub is there again", "address", at)
			p.tell(to)
		}
	}
}

// count counts that the address was not there when it was last.
func (p *Pods) count() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.lost {
		p.losses++
	}
}

// setLost notes whether the address is lost, and reports whether that changed.
func (p *Pods) setLost(lost bool) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed = p.lost != lost
	p.lost = lost
	return changed
}

// Losses is how often the machine has lost the address since the start.
func (p *Pods) Losses() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.losses
}

// tell has the kubelet read another address, unless it has read that already.
func (p *Pods) tell(to string) {
	p.mu.Lock()
	p.led, p.shown = to, to == p.told
	p.mu.Unlock()
	p.told = to
	p.leads(to)
}

// lead leads containers that start from now on.
func (p *Pods) lead(to string) {
	var err error
	switch to {
	case p.kept:
	case "":
		err = os.Remove(p.File)
	default:
		err = disk.WriteFile(p.File, []byte(to+"\n"))
	}
	p.kept = to
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Logger.Warn("cannot keep where pods are led; after a restart they are led again when --pods-wait is over",
			"file", p.File, "err", err)
	}
	p.tell(to)
	if to != "" {
		p.Logger.Info("containers that start from now on are told to call this hub", "address", to)
	}
}
