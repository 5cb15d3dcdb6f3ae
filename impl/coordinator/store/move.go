package store

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// moveGrace is for the members to change where this one is met.
const moveGrace = 10 * time.Second

// move lets this member be met at Peer.URL, if its directory is of before there was a mesh. It waits until all members
// can be met so: one that is not restarted by then could not find those that have moved. stop ends it.
func (c *Cluster) move(client *clientv3.Client, self types.ID, l *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		told := time.AfterFunc(quorumTold, func() {
			l.Warn("the etcds of the replicas go on as before, with the authorities that they read when they started, until " +
				"all three replicas run this version")
		})
		defer told.Stop()
		for ctx.Err() == nil {
			err := c.moveOnce(ctx, client, self)
			if err == nil {
				return
			}
			l.Debug("the etcd of this replica is not met over the mesh yet", "err", err)
			_ = rest(ctx)
		}
	})
	return func() { cancel(); running.Wait() }
}

func (c *Cluster) moveOnce(ctx context.Context, client *clientv3.Client, self types.ID) error {
	ctx, cancel := context.WithTimeout(ctx, moveGrace)
	defer cancel()
	target := c.Peers[slices.IndexFunc(c.Peers, func(p Peer) bool { return p.Name == c.Name })].URL.String()
	members, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, m := range members.Members {
		if m.ID == uint64(self) && slices.Equal(m.PeerURLs, []string{target}) {
			return nil
		}
	}
	if err := c.Meshed(ctx); err != nil {
		return err
	}
	_, err = client.MemberUpdate(ctx, uint64(self), []string{target})
	return err
}
