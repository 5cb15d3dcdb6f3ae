package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// Peer is one member of a cluster, as everybody in it knows it.
type Peer struct {
	Name string
	URL  *url.URL // https, of etcd's peers
}

// Cluster is what makes a store one of several that keep the same data. Members are known to each other by certificate: of CAFile,
// for the host of their URL, and with a common name of theirs.
type Cluster struct {
	Token  string // names the cluster: members of two can never be taken for members of one
	Name   string // of this member
	Peers  []Peer // all, this one among them; the same everywhere
	Listen string // host:port for peers

	CertFile, KeyFile, CAFile string
	CommonNames               []string // of the certificates of peers

	// Join asks the other members, when there is no data here, to take this one in again (Readmit). false: none of them serves, so
	// that this may be the first start of all.
	Join func(ctx context.Context) (member bool, err error)
}

const (
	joinAgain   = time.Second
	quorumTold  = 30 * time.Second
	memberGrace = 10 * time.Second
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
	e.ListenPeerUrls = []url.URL{{Scheme: "https", Host: c.Listen}}
	e.InitialCluster = strings.Join(all, ",")
	e.InitialClusterToken = c.Token
	e.PeerTLSInfo = transport.TLSInfo{
		CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.CAFile, ClientCertAuth: true, AllowedCNs: c.CommonNames,
		// Its common name says who a peer is; from which of its addresses it calls is the network's affair.
		SkipClientSANVerify: true,
	}
	// A vote over a busy LAN takes longer than one among nobody. The defaults of etcd are meant for that.
	e.TickMs, e.ElectionMs = 100, 1000
	// Who was away for a moment should not need a snapshot.
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
				if err := pause(ctx); err != nil {
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
			l.Warn("waiting for a majority of the replicas: this one alone decides nothing (--log-level=debug tells what it hears of them)", "replicas", e.InitialCluster)
		})
		etcd, err := start(ctx, e, f)
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
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context) error {
	t := time.NewTimer(joinAgain)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Readmit makes room for a member that has lost its data: etcd does not let it come back as who it was, since it may have voted for
// what it no longer knows. A member that never started is let be. A majority of the others is needed.
func (s *Store) Readmit(ctx context.Context, name string) error {
	i := slices.IndexFunc(s.peers, func(p Peer) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no replica %q here", name)
	}
	target := s.peers[i].URL.String()
	ctx, cancel := context.WithTimeout(ctx, memberGrace)
	defer cancel()
	members, err := s.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("list the members of etcd: %w", err)
	}
	for _, m := range members.Members {
		switch {
		case !slices.Contains(m.PeerURLs, target):
			continue
		case m.ID == uint64(s.etcd.Server.MemberID()):
			return errors.New("that is this replica")
		case len(m.ClientURLs) == 0: // it was added, or is of the first start, and has not been here yet
			return nil
		}
		if _, err := s.client.MemberRemove(ctx, m.ID); err != nil {
			return fmt.Errorf("remove the former member %s from etcd: %w", name, err)
		}
	}
	if _, err := s.client.MemberAdd(ctx, []string{target}); err != nil {
		return fmt.Errorf("add the member %s to etcd: %w", name, err)
	}
	return nil
}

// checkMembers tells whether the data here is of the cluster that was configured.
func (s *Store) checkMembers() error {
	want := make([]string, 0, len(s.peers))
	for _, p := range s.peers {
		want = append(want, p.URL.String())
	}
	var have []string
	for _, m := range s.etcd.Server.Cluster().Members() {
		have = append(have, m.PeerURLs...)
	}
	for _, u := range have {
		switch {
		case len(s.peers) == 0 && !strings.HasPrefix(u, "unix:"):
			return errors.New("the data directory is of one of several replicas: give it their flags, or an empty directory")
		case len(s.peers) > 0 && !slices.Contains(want, u):
			return fmt.Errorf("the data directory is of a coordinator that knows a replica at %s, which is none of %s: use an empty directory",
				u, strings.Join(want, ", "))
		}
	}
	return nil
}

// Note is a small value that all members see, and which version of it.
type Note struct {
	Value    []byte // nil: there is none
	Revision int64  // grows with each write
}

// WriteNote replaces the note under a key if it is still the one of a revision, 0 if there was none. It returns the revision of the
// write, or 0: somebody else was quicker.
func (s *Store) WriteNote(ctx context.Context, key string, value []byte, over int64) (int64, error) {
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", over)).Then(clientv3.OpPut(key, string(value))).Commit()
	if err != nil || !resp.Succeeded {
		return 0, err
	}
	return resp.Header.Revision, nil
}

// ReadNote reads a note as it is now, by the word of a majority.
func (s *Store) ReadNote(ctx context.Context, key string) (Note, error) {
	resp, err := s.client.Get(ctx, key)
	if err != nil || len(resp.Kvs) == 0 {
		return Note{}, err
	}
	return Note{resp.Kvs[0].Value, resp.Kvs[0].ModRevision}, nil
}

// FollowNote shows a note as it is and as it changes, until ctx ends or the watch breaks.
func (s *Store) FollowNote(ctx context.Context, key string, take func(Note)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := s.client.Get(ctx, key, clientv3.WithSerializable()) // what this member knows, even while it is alone
	if err != nil {
		return err
	}
	if len(resp.Kvs) > 0 {
		take(Note{resp.Kvs[0].Value, resp.Kvs[0].ModRevision})
	}
	for w := range s.client.Watch(ctx, key, clientv3.WithRev(resp.Header.Revision+1)) {
		if err := w.Err(); err != nil {
			return err
		}
		for _, ev := range w.Events {
			if ev.Type == clientv3.EventTypePut {
				take(Note{ev.Kv.Value, ev.Kv.ModRevision})
			}
		}
	}
	return errors.New("closed")
}
