package store

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Note is a small value that all members see, and which version of it.
type Note struct {
	Value    []byte // nil: there is none
	Revision int64  // grows with each write
}

// WriteNote replaces the note under a key if it is still the one of a revision, 0 if there was none. It returns the
// revision of the write, or 0: somebody else was quicker.
func (s *Store) WriteNote(ctx context.Context, key string, value []byte, over int64) (int64, error) {
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", over)).Then(
		clientv3.OpPut(key, string(value))).Commit()
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
