package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/weir-edge/weir/impl/limit"
)

const (
	incarnationKey = "/weir/incarnation"
	startPatience  = 30 * time.Second
	checkPatience  = 2 * time.Second
)

// Store is a running etcd.
type Store struct {
	room
	failure     *failure
	endpoint    string
	incarnation string
	peers       []Peer        // none: it is alone
	renewed     func() []Peer // as they are to be now; nil: they never change
	moved       func()        // ends what Open started, and waits for it; nil: it started nothing
}

// small sets what etcd offers as a variable of its package only: a WAL segment is written in full when it is made, 64
// MiB by default, and there are two.
var small = sync.OnceFunc(func() { wal.SegmentSizeBytes = 4 << 20 })

// config is a member for a few hundred Leases on flash, which is alone unless it is one of a cluster.
func config(d *Dir, cluster *Cluster, l *slog.Logger, f *failure) (*embed.Config, error) {
	small()
	c := embed.NewConfig()
	c.Name = "weir"
	c.Dir = filepath.Join(d.path, "etcd")
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(l, f))
	for name, urls := range map[string][]*[]url.URL{
		"etcd.sock": {&c.ListenClientUrls, &c.AdvertiseClientUrls},
		"peer.sock": {&c.ListenPeerUrls, &c.AdvertisePeerUrls}, // nobody comes here, but etcd insists
	} {
		path, err := d.socket(name)
		if err != nil {
			return nil, err
		}
		for _, u := range urls {
			*u = []url.URL{{Scheme: "unix", Path: path}}
		}
	}
	// For peers etcd looks at the host of such a URL. By a path alone it would take an abstract socket, where anybody of
	// this machine may come.
	c.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: c.ListenPeerUrls[0].Path}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	// kube-apiserver's watch cache, hence bookmarks and consistent reads from memory, lives on progress notifications.
	c.WatchProgressNotifyInterval = 5 * time.Second
	// There is nobody to vote with: the first tick that may elect, does.
	c.TickMs, c.ElectionMs = 50, 250
	// Entries of the raft log stay in memory until a snapshot, and nobody has to catch up.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 2000, 100
	// The WAL makes a write durable. The database behind it may lag: fewer pages are written to flash.
	c.BackendBatchInterval = time.Second
	c.BootstrapDefragThresholdMegabytes = 32
	c.EnableGRPCGateway = false
	if cluster == nil {
		return c, nil
	}
	return c, cluster.apply(c)
}

// Open starts etcd in a locked directory and waits until it serves. A member of a cluster may have to wait for others;
// cluster is nil for a store that is alone.
func Open(ctx context.Context, d *Dir, cluster *Cluster, l *slog.Logger) (*Store, error) {
	return openIn(ctx, d, cluster, l, limit.Quota)
}

func openIn(ctx context.Context, d *Dir, cluster *Cluster, l *slog.Logger, quota int64) (*Store, error) {
	s := &Store{failure: newFailure(), room: room{quota: quota}}
	c, err := config(d, cluster, l, s.failure)
	if err != nil {
		return nil, err
	}
	c.QuotaBackendBytes = quota
	s.endpoint = "unix://" + c.AdvertiseClientUrls[0].Path
	if cluster != nil {
		s.peers, s.renewed = cluster.Peers, cluster.Now
		s.etcd, err = cluster.startMember(ctx, c, s.failure, l)
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("etcd does not serve after %v", startPatience))
		defer cancel()
		s.etcd, err = start(ctx, c, s.failure, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", c.Dir, err)
	}
	s.client = v3client.New(s.etcd.Server)
	if s.renewed == nil { // else those of before may be in etcd, until the next one comes
		if err := checkMembers(s.etcd, s.peers); err != nil {
			s.Close()
			return nil, err
		}
	}
	if cluster != nil {
		s.moved = cluster.move(s.client, s.etcd.Server.MemberID(), l)
	}
	for s.incarnation == "" {
		if len(s.alarms()) > 0 { // it was full when it ended: then it does not even take a write that changes nothing
			if err := s.reclaim(ctx); err != nil {
				l.Warn("etcd is full, and its history cannot be thrown away", "err", err)
			}
		}
		if s.incarnation, err = s.draw(ctx); err != nil && (cluster == nil || rest(ctx) != nil) {
			s.Close()
			return nil, fmt.Errorf("read incarnation: %w", err)
		}
	}
	return s, nil
}

// draw returns the incarnation, and makes it if this etcd is new.
func (s *Store) draw(ctx context.Context) (string, error) {
	fresh := strings.ToLower(rand.Text())[:16]
	resp, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(incarnationKey), "=", 0)).
		Then(clientv3.OpPut(incarnationKey, fresh)).
		Else(clientv3.OpGet(incarnationKey)).
		Commit()
	if err != nil {
		return "", err
	}
	if resp.Succeeded {
		return fresh, nil
	}
	return string(resp.Responses[0].GetResponseRange().Kvs[0].Value), nil
}

// Endpoint is where clients of etcd reach it.
func (s *Store) Endpoint() string { return s.endpoint }

// Incarnation names this etcd's data, of all members together.
func (s *Store) Incarnation() string { return s.incarnation }

// Failed is sent what etcd could not survive, once. After that the store cannot be used, nor closed.
func (s *Store) Failed() <-chan error { return s.failure.c }

// Check reports whether the store answers and takes writes.
func (s *Store) Check(ctx context.Context) error {
	if len(s.alarms()) > 0 {
		return errors.New("etcd is full and takes no writes")
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	if _, err := s.client.Get(ctx, incarnationKey, clientv3.WithCountOnly()); err != nil {
		return fmt.Errorf("etcd does not answer: %w", err)
	}
	return nil
}

// Close ends etcd. Its clients must have gone.
func (s *Store) Close() {
	if s.moved != nil {
		s.moved()
	}
	s.client.Close()
	s.etcd.Close()
}
