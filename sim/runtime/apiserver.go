package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
)

// apiserverGrace is how long an apiserver may take to end its requests.
const apiserverGrace = 90 * time.Second

// apiserverPart is the cloud's apiserver as a Part.
type apiserverPart struct {
	cloud *cloud.Cloud

	mu     sync.Mutex
	backup *cloud.Backup // nil: none that was not restored
}

var (
	_ Part       = (*apiserverPart)(nil)
	_ Restorable = (*apiserverPart)(nil)
	_ Unready    = (*apiserverPart)(nil)
	_ Part       = (*parts.Part)(nil)
)

func (a *apiserverPart) Name() string                    { return cloud.KubeAPIServer }
func (a *apiserverPart) Start(ctx context.Context) error { return a.cloud.StartAPIServer(ctx) }
func (a *apiserverPart) Freeze() error                   { return a.cloud.APIServer().Freeze() }
func (a *apiserverPart) Thaw() error                     { return a.cloud.APIServer().Thaw() }
func (a *apiserverPart) Running() bool                   { return a.cloud.APIServer().Running() }
func (a *apiserverPart) Done() <-chan struct{}           { return a.cloud.APIServer().Done() }
func (a *apiserverPart) Err() error                      { return a.cloud.APIServer().Err() }
func (a *apiserverPart) Usage() (proc.Usage, error)      { return a.cloud.APIServer().Usage() }
func (a *apiserverPart) LogFile() string                 { return a.cloud.APIServerLog() }

func (a *apiserverPart) Stop(ctx context.Context) error {
	if !a.Running() {
		return errors.New("stop kube-apiserver: it is not running")
	}
	return a.cloud.APIServer().Stop(ctx, apiserverGrace)
}

func (a *apiserverPart) Kill() error {
	if !a.Running() {
		return errors.New("kill kube-apiserver: it is not running")
	}
	a.cloud.APIServer().Kill()
	return nil
}

// Backup implements Restorable.
func (a *apiserverPart) Backup(ctx context.Context) error {
	b, err := a.cloud.Backup(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.backup = b
	return nil
}

// SetReady implements Unready.
func (a *apiserverPart) SetReady(ctx context.Context, ready bool) error {
	return a.cloud.SetReady(ctx, ready)
}

// Restore implements Restorable.
func (a *apiserverPart) Restore(ctx context.Context) (revision uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.backup == nil {
		return 0, errors.New("restore the cloud: there is no backup")
	}
	b := a.backup
	a.backup = nil
	return a.cloud.Restore(ctx, b)
}

// LoseDisk is not possible: a cloud is restored from a backup.
func (a *apiserverPart) LoseDisk() error {
	return errors.New("kube-apiserver keeps nothing on a disk of its own")
}

// Status is not there: an apiserver has none.
func (a *apiserverPart) Status(context.Context, any) error {
	return errors.New("a kube-apiserver has no status")
}

// Metrics reads the apiserver's own metrics.
func (a *apiserverPart) Metrics(ctx context.Context) (parts.Metrics, error) {
	data, err := a.cloud.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("metrics of kube-apiserver: %w", err)
	}
	return parts.ParseMetrics(string(data)), nil
}
