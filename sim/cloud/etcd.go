package cloud

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	// progressNotify is how often etcd tells watchers of a quiet resource how far they are. With etcd's default of ten
	// minutes kube-apiserver's bookmarks, and with them all freshness, would stand still.
	progressNotify = 5 * time.Second
	// maxSocketPath is what the kernel takes for the path of a unix socket.
	maxSocketPath = 107
	etcdPatience  = time.Minute
)

// etcd is the cloud's store, in this process.
type etcd struct {
	dir string // data
	log string
	url string
	run *embed.Etcd
}

func newEtcd(dir, log string) (*etcd, error) {
	client := filepath.Join(dir, "client.sock")
	if len(client) > maxSocketPath {
		return nil,
			fmt.Errorf("start etcd: the path of its socket %s is longer than %d bytes: set TMPDIR to a shorter folder", client,
				maxSocketPath)
	}
	return &etcd{dir: dir, log: log, url: "unix://" + client}, nil
}

func (e *etcd) start(ctx context.Context) error {
	client := url.URL{Scheme: "unix", Path: filepath.Join(e.dir, "client.sock")}
	peer := url.URL{Scheme: "unix", Path: filepath.Join(e.dir, "peer.sock")}
	c := embed.NewConfig()
	c.Name = "cloud"
	c.Dir = filepath.Join(e.dir, "data")
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.LogLevel, c.LogOutputs = "warn", []string{e.log}
	c.WatchProgressNotifyInterval = progressNotify
	c.UnsafeNoFsync = true // a testbed's cluster need not survive a power cut

	run, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("start etcd: %w (log: %s)", err, e.log)
	}
	timeout := time.NewTimer(etcdPatience)
	defer timeout.Stop()
	select {
	case <-run.Server.ReadyNotify():
		e.run = run
		return nil
	case err = <-run.Err():
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout.C:
		err = fmt.Errorf("not ready after %s", etcdPatience)
	}
	run.Close()
	return fmt.Errorf("start etcd: %w (log: %s)", err, e.log)
}

func (e *etcd) stop() {
	if e.run != nil {
		e.run.Close()
		e.run = nil
	}
}
