package pooldoor

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/images"
	"github.com/weir-edge/weir/impl/process"
)

// mirrorFlag is that of the port.
const mirrorFlag = "--images-port"

// MirrorOptions are those of an operator.
type MirrorOptions struct {
	BindAddress string // of this machine's loopback: who calls is not asked who it is
	Port        int    // 0: there is no mirror
	Root        string
}

// Bind declares the flags.
func (o *MirrorOptions) Bind(f *cli.Flags) {
	f.Listen(&o.BindAddress, &o.Port, mirrorFlag[2:], "127.0.0.1", 0,
		"plain HTTP port of a mirror of registries for the containerd of this node, which reads images from the pool, and "+
			"the IP address that it is on, of this machine alone, if it is another one; 0 is off")
	f.StringVar(&o.Root, "images-root", images.DefaultRoot,
		"directory of containerd's content store, which the mirror reads and never writes; what containerd calls root, and "+
			"io.containerd.content.v1.content in it")
}

// Validate reports an invalid value. Others are ports that are taken by other flags.
func (o *MirrorOptions) Validate() error {
	address := net.ParseIP(o.BindAddress)
	switch {
	case o.Port < 0 || o.Port > 65535:
		return cli.Usage(mirrorFlag, o.Port, "a TCP port, 0 to 65535")
	case o.Port == 0:
		return nil
	case address == nil || !address.IsLoopback():
		return cli.Usage(mirrorFlag, o.BindAddress, "an IP address of loopback: the mirror serves anybody who reaches it")
	case !filepath.IsAbs(o.Root):
		return cli.Usage("--images-root", o.Root, "a directory, from / on")
	}
	return nil
}

// MirrorConfig is what a Mirror is made of.
type MirrorConfig struct {
	MirrorOptions
	Node    string
	DataDir string
	Net     door.Net
	Lacks   *process.Lacks
	Door    *Door       // nil: the node is in no pool
	Ways    *Images     // likewise
	Away    func() bool // the cloud is
	// Left makes sure of it first: see images.Config.
	Left func(context.Context) bool
	// Told is what the pool is told of itself, see directory.ImageRules. It is asked at each request. nil: there is no
	// pool that was told.
	Told   func() directory.Entry
	Clock  clock.WithTickerAndDelayedExecution
	Logger *slog.Logger
}

// Mirror is that of a hub. One without a port does nothing.
type Mirror struct {
	MirrorConfig
	metrics  *images.Metrics
	mirror   *images.Mirror
	store    *images.Store
	listener net.Listener // nil: there is none
}

// NewMirror opens the port, and shows the store to the pool.
func NewMirror(c MirrorConfig) (m *Mirror, err error) {
	if c.Told == nil {
		c.Told = func() (all directory.Entry) { return all }
	}
	m = &Mirror{MirrorConfig: c, metrics: images.NewMetrics(), store: &images.Store{Root: c.Root}}
	if c.Port == 0 {
		return m, nil
	}
	m.listener, err = c.Lacks.Port(mirrorFlag, func() (net.Listener, error) {
		return door.Listen(c.Net, mirrorFlag, c.BindAddress, c.Port)
	}, "containerd pulls all images from registries")
	if m.listener == nil {
		return m, err
	}
	ic := images.Config{
		Node: c.Node, Store: m.store, Away: c.Away, Left: c.Left, File: filepath.Join(c.DataDir, "image-tags"),
		Metrics: m.metrics, Clock: c.Clock, Logger: c.Logger,
		Allowed: func(registry string) bool { return c.Told().Images.Sharing(registry) != contract.ImagesDisabled },
		Judged:  func(registry string) bool { return c.Told().Images.Sharing(registry) == contract.ImagesJudged },
		Off:     m.off,
	}
	if c.Ways != nil {
		ic.Pool = c.Ways
	}
	m.mirror = images.New(ic)
	if c.Door != nil {
		c.Door.Handle(contract.ImagesBlobsPath, &images.Shown{
			Store: m.store, Pulling: m.mirror.Pulling, Off: m.off, Caller: Caller, Clock: c.Clock,
			Bytes: m.metrics.Bytes,
		})
	}
	return m, nil
}

// off reports whether the pool shares no image.
func (m *Mirror) off() bool { return !m.Told().Images.Shares() }

// Collectors are what it counts.
func (m *Mirror) Collectors() []prometheus.Collector { return m.metrics.Collectors() }

// MirrorStatus is what the hub says of its mirror.
type MirrorStatus struct {
	Address string `json:"address"`
	Root    string `json:"root"`
	images.Standing
}

// Status is nil if there is no mirror.
func (m *Mirror) Status() *MirrorStatus {
	if m.mirror == nil {
		return nil
	}
	return &MirrorStatus{m.listener.Addr().String(), m.Root, m.mirror.Standing()}
}

// Sum is what it tells the cloud.
func (m *Mirror) Sum() digest.Images { return m.metrics.Sum() }

// Close gives back the port of one that is not run.
func (m *Mirror) Close() {
	if m != nil && m.listener != nil {
		_ = m.listener.Close()
	}
}

// Run serves until ctx ends.
func (m *Mirror) Run(ctx context.Context) error {
	if m.mirror == nil {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return door.Serve(ctx, m.listener, nil, m.mirror, nil, m.Logger) })
	g.Go(func() error { return m.mirror.Run(ctx) })
	err := g.Wait()
	if m.Ways != nil {
		m.Ways.Peers.Close()
	}
	return err
}
