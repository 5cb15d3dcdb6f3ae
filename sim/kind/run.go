package kind

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	kindexec "sigs.k8s.io/kind/pkg/exec"
	kindlog "sigs.k8s.io/kind/pkg/log"

	"github.com/weir-edge/weir/sim/docker"
)

const (
	createNotice = 5 * time.Second
	deletePause  = 2 * time.Second
	networkIs    = "KIND_EXPERIMENTAL_DOCKER_NETWORK" // by which kind is told of a network
)

// Run is a run: a network, and the cluster in it once that is created. Its methods may not run at once.
type Run struct {
	ID      string // also the name of cluster and network
	Network *docker.Network

	lock       *os.File // held as long as this process lives
	kubeconfig string   // file
}

// Begin makes the network of a run. dir is a folder for its files, which has to be there as long as the run.
func Begin(ctx context.Context, dir string) (*Run, error) {
	random := make([]byte, 3)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	r := &Run{ID: "weir-" + hex.EncodeToString(random), kubeconfig: filepath.Join(dir, "kubeconfig")}
	var err error
	if r.lock, err = takeLock(filepath.Join(dir, "lock")); err != nil {
		return nil, err
	}
	if r.Network, err = docker.CreateNetwork(ctx, r.ID, r.Labels()); err != nil {
		return nil, errors.Join(err, r.lock.Close())
	}
	return r, nil
}

// Labels are for whatever else is created for the run, by which Clean finds it.
func (r *Run) Labels() map[string]string {
	return map[string]string{runLabel: r.ID, lockLabel: r.lock.Name()}
}

func provider() *kindcluster.Provider {
	return kindcluster.NewProvider(kindcluster.ProviderWithDocker(), kindcluster.ProviderWithLogger(kindlog.NoopLogger{}))
}

// creating guards the environment variable that kind reads, of which a process has one.
var creating sync.Mutex

// Create creates the cluster. kind knows no context: when ctx ends, the nodes are deleted under its hands.
func (r *Run) Create(ctx context.Context, config *v1alpha4.Cluster, progress func(string)) error {
	creating.Lock()
	defer creating.Unlock()
	if err := os.Setenv(networkIs, r.Network.Name); err != nil {
		return err
	}
	defer os.Unsetenv(networkIs)
	done := make(chan error, 1)
	began := time.Now()
	go func() {
		done <- provider().Create(r.ID, kindcluster.CreateWithV1Alpha4Config(config),
			kindcluster.CreateWithKubeconfigPath(r.kubeconfig),
			kindcluster.CreateWithRetain(true), kindcluster.CreateWithDisplayUsage(false),
			kindcluster.CreateWithDisplaySalutation(false))
	}()
	notice := time.NewTicker(createNotice)
	defer notice.Stop()
	for {
		select {
		case err := <-done:
			return explain(err)
		case <-notice.C:
			progress(fmt.Sprintf("kind: creating %d nodes, %.0f s", len(config.Nodes), time.Since(began).Seconds()))
		case <-ctx.Done():
			for {
				_ = provider().Delete(r.ID, r.kubeconfig)
				select {
				case err := <-done:
					return errors.Join(ctx.Err(), explain(err))
				case <-time.After(deletePause):
				}
			}
		}
	}
}

// explain adds to an error of kind what the failed command wrote.
func explain(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("create kind cluster: %w", err)
	if e := kindexec.RunErrorForError(err); e != nil {
		out := strings.TrimSpace(string(e.Output))
		return fmt.Errorf("%w\n  %s", err, strings.ReplaceAll(out[max(0, len(out)-2000):], "\n", "\n  "))
	}
	return err
}

// Control is the machine of the control plane, and Worker that of a worker, counted from 1.
func (r *Run) Control() docker.Container { return docker.Container(r.ID + "-control-plane") }

// Worker is a worker's machine, counted from 1.
func (r *Run) Worker(n int) docker.Container {
	if n == 1 {
		return docker.Container(r.ID + "-worker")
	}
	return docker.Container(fmt.Sprintf("%s-worker%d", r.ID, n))
}

// Kubeconfig is the file by which an administrator calls the cluster.
func (r *Run) Kubeconfig() string { return r.kubeconfig }

// Admin is how an administrator calls the cluster.
func (r *Run) Admin() (*rest.Config, error) {
	data, err := provider().KubeConfig(r.ID, false)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the cluster: %w", err)
	}
	admin, err := clientcmd.RESTConfigFromKubeConfig([]byte(data))
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the cluster: %w", err)
	}
	return admin, nil
}

// CollectLogs writes the logs of all nodes and pods to a folder. It fails where a node is off; the others' are there
// then.
func (r *Run) CollectLogs(dir string) error { return provider().CollectLogs(r.ID, dir) }

// Remove removes all that the run made in the engine.
func (r *Run) Remove(ctx context.Context) error {
	return errors.Join(remove(ctx, r.ID, r.Network), r.lock.Close())
}
