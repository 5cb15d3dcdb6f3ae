package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"
)

// Cloud is what draining needs of the cloud. Objects are JSON. An error that none of the Err below is means that nobody
// knows whether the call did anything: draining ends, and begins again later.
type Cloud interface {
	// Get reads an object as it is now, not from a cache; nil if there is none.
	Get(ctx context.Context, t Target) ([]byte, error)
	// Update writes the status of an object, or an Event. The body has the version and the uid that it was made from, and
	// the cloud takes it only if its object still has both; else ErrConflict.
	Update(ctx context.Context, t Target, body []byte) error
	// Create makes an Event; ErrExists if there is one of that name.
	Create(ctx context.Context, t Target, body []byte) error
}

// What a Cloud answers beside success, for errors.Is.
var (
	ErrConflict = errors.New("the object has changed")
	ErrExists   = errors.New("there is one of that name")
	// ErrRefused says that the cloud will never take this: the entry is dropped.
	ErrRefused = errors.New("the cloud refuses it")
)

// maxConflicts is how often an object may change under our hands before draining gives up for now.
const maxConflicts = 10

// Drain pushes what waits until nothing does: also what comes in meanwhile. What is about the node goes first, then its
// pods, then Events, each in the order of the last writes. On an error the rest waits for the next Drain. One at a time
// runs.
func (q *Queue) Drain(ctx context.Context, cloud Cloud) error { return q.drain(ctx, cloud, true) }

// DrainStatuses is Drain of all but Events.
func (q *Queue) DrainStatuses(ctx context.Context, cloud Cloud) error {
	return q.drain(ctx, cloud, false)
}

func (q *Queue) drain(ctx context.Context, cloud Cloud, events bool) error {
	q.draining.Lock()
	defer q.draining.Unlock()
	for {
		q.mu.RLock()
		e := q.state.first()
		q.mu.RUnlock()
		if e == nil {
			q.settle()
			return nil
		}
		if e.Kind.event() && !events {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		applied, err := q.push(ctx, cloud, e)
		if errors.Is(err, errWrittenAgain) {
			continue
		}
		if err != nil {
			return fmt.Errorf("push the %v: %w", e.Target, err)
		}
		q.left.Add(1)
		// Not made durable: if it is lost, the entry is pushed again, which does nothing.
		if err := q.change(&record{kind: recordDone, seq: e.Seq, flag: applied}, false); err != nil {
			return err
		}
	}
}

// change is write for the one that does not hold writing.
func (q *Queue) change(r *record, sync bool) error {
	q.writing.Lock()
	defer q.writing.Unlock()
	return q.write(r, sync)
}

// settle makes it durable that nothing waits, by an empty file. If that fails, a restart pushes some entries again,
// which does nothing.
func (q *Queue) settle() {
	q.writing.Lock()
	defer q.writing.Unlock()
	if len(q.state.entries) > 0 || q.journal.file == nil || q.journal.size <= int64(len(magic)) {
		return
	}
	err := q.journal.rewrite(nil)
	q.note(func(s *Stats) {
		if err != nil {
			s.LastError = err.Error()
			return
		}
		s.Rewritten++
		s.Syncs++
		s.WrittenBytes += q.journal.size
		s.FileBytes = q.journal.size
	})
}

// push brings one entry to the cloud. applied: the cloud has it now; else the entry is void.
func (q *Queue) push(ctx context.Context, cloud Cloud, e *Entry) (applied bool, err error) {
	if e.Kind.event() {
		if err := q.pace(ctx); err != nil {
			return false, err
		}
		switch err := cloud.Create(ctx, e.Target, e.Ours); {
		case err == nil:
			q.note(func(s *Stats) { s.Pushed++ })
			return true, nil
		case errors.Is(err, ErrRefused):
			return q.drop(e, Refused, err.Error())
		case !errors.Is(err, ErrExists):
			return false, err
		}
	}
	for range maxConflicts {
		object, err := cloud.Get(ctx, e.Target)
		if errors.Is(err, ErrRefused) {
			return q.drop(e, Refused, err.Error())
		}
		if err != nil {
			return false, err
		}
		v, err := plan(e, object)
		if err != nil {
			return q.drop(e, Unusable, err.Error())
		}
		switch v.step {
		case stepDone:
			q.note(func(s *Stats) { s.Unneeded++ })
			return true, nil
		case stepDrop:
			return q.drop(e, v.why, string(v.why))
		case stepCreate: // it went away after Create had found it
			err = cloud.Create(ctx, e.Target, v.body)
		case stepUpdate:
			if e, err = q.markSent(e, v); err == nil {
				err = cloud.Update(ctx, e.Target, v.body)
			}
		}
		switch {
		case err == nil:
			q.note(func(s *Stats) { s.Pushed++ })
			return true, nil
		case errors.Is(err, ErrConflict), errors.Is(err, ErrExists):
			// It did not arrive, for certain: what the object has of it by now is another's.
			e = e.unsent()
		case errors.Is(err, ErrRefused):
			return q.drop(e, Refused, err.Error())
		default:
			return false, err
		}
	}
	return false, fmt.Errorf("%w %d times", ErrConflict, maxConflicts)
}

// errWrittenAgain says that a client has written the object since its entry was looked at.
var errWrittenAgain = errors.New("it was written again")

// markSent notes, durably, what is about to be sent: after a crash it tells what is found in the cloud from what others
// wrote. An Event needs no mark: its count only grows.
func (q *Queue) markSent(e *Entry, v verdict) (*Entry, error) {
	if e.Kind.event() {
		return e, nil
	}
	q.writing.Lock()
	defer q.writing.Unlock()
	if now := q.state.entries[e.Target]; now == nil || now.Seq != e.Seq {
		return e, errWrittenAgain
	}
	if err := q.write(&record{kind: recordSent, seq: e.Seq, sentAt: v.version, flag: v.arrived}, true); err != nil {
		return e, err
	}
	return q.state.entries[e.Target], nil
}

// unsent is an entry of which it is known that what was sent did not arrive.
func (e *Entry) unsent() *Entry {
	clean := *e
	clean.Sent, clean.SentAt, clean.sentSeq = nil, "", 0
	return &clean
}

func (q *Queue) drop(e *Entry, why Why, detail string) (bool, error) {
	level := slog.LevelInfo
	if why == Refused || why == Unusable {
		level = slog.LevelWarn
	}
	q.Logger.Log(context.Background(), level, "a write that waited for the cloud is dropped",
		"what", e.Target.String(), "since", e.At.UTC().Format(time.RFC3339), "why", detail)
	q.note(func(s *Stats) {
		s.Dropped++
		s.Why = maps.Clone(s.Why) // what was given out stays
		if s.Why == nil {
			s.Why = map[Why]int{}
		}
		s.Why[why]++
	})
	return false, nil
}

// pace waits for the next Event's turn.
func (q *Queue) pace(ctx context.Context) error {
	t := q.Clock.NewTimer(time.Second / time.Duration(q.PushedPerSecond))
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
