package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	dockerconfig "github.com/containerd/containerd/v2/core/remotes/docker/config"
	"github.com/containerd/containerd/v2/core/transfer"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/platforms"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sync/semaphore"
)

const (
	// downloads is max_concurrent_downloads of the CRI plugin, by default.
	downloads = 3
	// namespace is where the CRI plugin keeps images.
	namespace = "k8s.io"

	contentDir  = "io.containerd.content.v1.content"
	metadataDir = "io.containerd.metadata.v1.bolt"
	lockTimeout = 10 * time.Second // of the metadata, until a process that was killed is gone
)

type config struct {
	root, certs string
	patience    time.Duration
}

// puller pulls images into a content store.
type puller struct {
	config
	content content.Store // on disk, behind containerd's metadata
	db      *bolt.DB
}

func newPuller(c config) (*puller, error) {
	files, err := local.NewStore(filepath.Join(c.root, contentDir))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(c.root, metadataDir), 0o700); err != nil {
		return nil, err
	}
	db, err := bolt.Open(filepath.Join(c.root, metadataDir, "meta.db"), 0o600, &bolt.Options{Timeout: lockTimeout})
	if err != nil {
		return nil, fmt.Errorf("open metadata: %w", err)
	}
	m := metadata.NewDB(db, files, nil)
	if err := m.Init(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("open metadata: %w", err), db.Close())
	}
	return &puller{c, m.ContentStore(), db}, nil
}

func (p *puller) close() error { return p.db.Close() }

// pull brings an image, for the platform of this machine. It is what containerd's client does for the CRI plugin
// (client.Pull), but for what follows in a container runtime.
func (p *puller) pull(ctx context.Context, ref string) error {
	ctx, giveUp := context.WithCancelCause(namespaces.WithNamespace(ctx, namespace))
	defer giveUp(nil)
	w := newWatchman(p.patience)
	ended := w.watch(ctx, giveUp)
	err := p.fetch(ctx, ref, w)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	giveUp(nil)
	<-ended
	return err
}

func (p *puller) fetch(ctx context.Context, ref string, w *watchman) error {
	resolver := docker.NewResolver(docker.ResolverOptions{
		Hosts: dockerconfig.ConfigureHosts(ctx, dockerconfig.HostOptions{
			HostDir:      dockerconfig.HostDirFromRoot(p.certs),
			UpdateClient: func(c *http.Client) error { c.Transport = w.around(c.Transport); return nil },
		}),
	})
	if r, ok := resolver.(remotes.ResolverWithOptions); ok {
		r.SetOptions(transfer.WithMaxConcurrentDownloads(downloads),
			transfer.WithDownloadLimiter(semaphore.NewWeighted(downloads)))
	}
	name, desc, err := resolver.Resolve(ctx, ref)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", ref, err)
	}
	fetcher, err := resolver.Fetcher(ctx, name)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	here := platforms.Default()
	children := images.LimitManifests(images.FilterPlatforms(images.ChildrenHandler(p.content), here), here, 1)
	all := images.Handlers(remotes.FetchHandler(p.content, fetcher), children)
	if err := images.Dispatch(ctx, all, nil, desc); err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	return nil
}
