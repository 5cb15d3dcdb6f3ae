package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// memberGrace is for the members to change who they are.
const memberGrace = 10 * time.Second

// Readmit makes room for a member that has lost its data: etcd does not let it come back as who it was, since it may
// have voted for what it no longer knows. A member that never started is let be. A majority of the others is needed.
func (s *Store) Readmit(ctx context.Context, name string) error {
	peers := s.peers
	if s.renewed != nil {
		peers = s.renewed()
	}
	i := slices.IndexFunc(peers, func(p Peer) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no replica %q here", name)
	}
	target, former := peers[i].URL.String(), peers[i].Former.String()
	ctx, cancel := context.WithTimeout(ctx, memberGrace)
	defer cancel()
	members, err := s.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("list the members of etcd: %w", err)
	}
	if err := s.dismiss(ctx, members.Members, peers); err != nil {
		return err
	}
	for _, m := range members.Members {
		switch {
		case !slices.Contains(m.PeerURLs, target) && !slices.Contains(m.PeerURLs, former):
			continue
		case m.ID == uint64(s.etcd.Server.MemberID()):
			return errors.New("that is this replica")
		case len(m.ClientURLs) == 0 && slices.Contains(m.PeerURLs, target):
			// it was added, or is of the first start, and has not been here yet.
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

// dismiss removes the members in whose place others are. They did not go by themselves: a majority of those that stay
// is needed.
func (s *Store) dismiss(ctx context.Context, members []*etcdserverpb.Member, peers []Peer) error {
	if s.renewed == nil {
		return nil
	}
	for _, m := range members {
		stays := m.ID == uint64(s.etcd.Server.MemberID()) ||
			slices.ContainsFunc(peers, func(p Peer) bool { return slices.Contains(m.PeerURLs, p.URL.String()) })
		if stays {
			continue
		}
		if _, err := s.client.MemberRemove(ctx, m.ID); err != nil {
			return fmt.Errorf("remove the member at %v, in whose place another one is, from etcd: %w", m.PeerURLs, err)
		}
	}
	return nil
}
