package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/process"
)

// Peer is one member of a cluster, as everybody in it knows it.
type Peer struct {
	Name   string
	URL    *url.URL // where the etcds of the others meet it
	Former *url.URL // where they did before there was a mesh: it is in older directories
}

// Cluster is what makes a store one of several that keep the same data. Members are known to each other by certificate:
// of CAFile, for the host of their URL, and with a common name of theirs.
type Cluster struct {
	Token string // names the cluster: members of two can never be taken for members of one
	Name  string // of this member
	Peers []Peer // all, this one among them; the same everywhere

	// Now are all members as they are to be now. Readmit removes others from etcd. nil: Peers, which never change.
	Now func() []Peer
	// Joins says that this member comes to others: without data it never begins again.
	Joins bool

	// Serve takes what answers the other members.
	Serve func(http.Handler)
	// Meshed tells why not all other members can be met at Peer.URL; nil: they can.
	Meshed func(ctx context.Context) error

	// Those of before are met over etcd's own TLS, by these.
	CertFile, KeyFile, CAFile string
	CommonNames               []string

	// Join asks the other members, when there is no data here, to take this one in again (Readmit). false: none of them
	// serves, so that this may be the first start of all.
	Join func(ctx context.Context) (member bool, err error)
}

const (
	joinAgain  = time.Second
	quorumTold = 30 * time.Second
)

// apply makes a configuration one of a member.
func (c *Cluster) apply(e *embed.Config) error {
	e.Name = c.Name
	var all []string
	for _, p := range c.Peers {
		all = append(all, p.Name+"="+p.URL.String())
		if p.Name == c.Name {
			e.AdvertisePeerUrls = []url.URL{*p.URL}
		}
	}
	if len(e.AdvertisePeerUrls) != 1 {
		return fmt.Errorf("member %s is none of %s", c.Name, strings.Join(all, ", "))
	}
	e.InitialCluster = strings.Join(all, ",")
	e.InitialClusterToken = c.Token
	e.PeerTLSInfo = transport.TLSInfo{
		CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.CAFile, ClientCertAuth: true, AllowedCNs: c.CommonNames,
	}
	// A vote over a busy LAN takes longer than one among nobody. The defaults of etcd are meant for that.
	e.TickMs, e.ElectionMs = 100, 1000
	// A replica that was away for a moment should not need a snapshot.
	e.SnapshotCatchUpEntries = 500
	return nil
}

// startMember starts etcd as a member, and takes all the time that it needs for a majority to be there.
func (c *Cluster) startMember(ctx context.Context, e *embed.Config, f *failure, l *slog.Logger) (*embed.Etcd, error) {
	for {
		fresh := !wal.Exist(filepath.Join(e.Dir, "member", "wal"))
		if fresh {
			if err := os.RemoveAll(filepath.Join(e.Dir, "member")); err != nil { // of a start that was not completed
				return nil, err
			}
			member, err := c.Join(ctx)
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case err != nil:
				l.Warn("the other replicas do not take this one in again; trying again", "err", err)
				if err := rest(ctx); err != nil {
					return nil, err
				}
				continue
			case !member && c.Joins:
				l.Warn("there is no data here, and none of the other replicas serves: waiting to be taken in")
				if err := rest(ctx); err != nil {
					return nil, err
				}
				continue
			case member:
				l.Info("there is no data here: taken in again by the other replicas")
				e.ClusterState = embed.ClusterStateFlagExisting
			default:
				e.ClusterState = embed.ClusterStateFlagNew
			}
		}
		told := time.AfterFunc(quorumTold, func() {
			l.Warn("waiting for a majority of the replicas: this one alone decides nothing (--log-level=debug tells what it "+
				"hears of them)", "replicas", e.InitialCluster)
		})
		etcd, err := start(ctx, e, f, c.Serve)
		told.Stop()
		if err == nil || !fresh || ctx.Err() != nil {
			return etcd, err
		}
		select {
		case broken := <-f.c: // it cannot be tried again in this process
			return nil, broken
		default:
		}
		// Others run that know this member, but none served a moment ago.
		l.Warn("cannot join the other replicas; trying again", "err", err)
		if err := rest(ctx); err != nil {
			return nil, err
		}
	}
}

func rest(ctx context.Context) error {
	process.Pause(ctx, clock.RealClock{}, joinAgain)
	return context.Cause(ctx)
}

// checkMembers reports whether the data here is of the cluster that was configured.
func checkMembers(e *embed.Etcd, peers []Peer) error {
	var known, want []string
	for _, p := range peers {
		known, want = append(known, p.URL.String(), p.Former.String()), append(want, p.Name+" at "+p.Former.String())
	}
	var have []string
	for _, m := range e.Server.Cluster().Members() {
		have = append(have, m.PeerURLs...)
	}
	for _, u := range have {
		switch {
		case len(peers) == 0 && !strings.HasPrefix(u, "unix:///"):
			return errors.New("the data directory is of one of several replicas: give it their flags, or an empty directory")
		case len(peers) > 0 && !slices.Contains(known, u):
			return fmt.Errorf(
				"the data directory is of a coordinator that knows a replica at %s, which is none of %s: use an empty directory",
				u, strings.Join(want, ", "))
		}
	}
	return nil
}
