package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/mvcc"
)

const (
	readChanges = 64                     // changes taken from the relay at once
	firstLook   = 500 * time.Millisecond // how often it is looked whether there is something that is not waited for
	// bytes of a new file that are made durable at once: others wait for the same disk.
	syncEvery  = 1 << 20
	minAppend  = 1 << 20 // a file is rewritten when this, and as much as it began with, was appended
	firstRetry = 15 * time.Second
	lastRetry  = 5 * time.Minute
)

// errLost says that the relay has changes that it does not hold any more.
var errLost = errors.New("the relay has passed the last change written")

// keeper keeps the file of one relay. Run owns it, but for its status.
type keeper struct {
	cfg   Config
	relay *relay.Relay
	name  string // of the file
	disk  disk.Disk
	did   report

	file    disk.File // nil: what comes next is a whole file
	pos     position
	least   int64 // minAppend, but for tests
	began   int64 // size that the file began with
	limit   int64 // size from which it is rewritten
	place   mvcc.Place
	reached uint64    // version at place
	written uint64    // version in the file
	moved   bool      // a change was written since the start
	asOf    time.Time // in the file
	saidAt  time.Time // when that was written
	scratch []*mvcc.Event

	pause pause
	end   context.CancelFunc // of run; nil: it does not run
	ended chan struct{}      // run has
}

// pause is how long a keeper waits that failed, longer each time.
type pause struct {
	length time.Duration
	until  time.Time
}

func (p *pause) begin(now time.Time) {
	p.length = min(max(2*p.length, firstRetry), lastRetry)
	p.until = now.Add(p.length)
}

func newKeeper(c Config, r *relay.Relay, d disk.Disk) *keeper {
	c.Logger = c.Logger.With("resource", r.Resource().String())
	return &keeper{
		cfg: c, relay: r, name: fileOf(r.Resource()), disk: d, scratch: make([]*mvcc.Event, 0, readChanges), least: minAppend,
	}
}

// fileOf is the name of the file of a resource.
func fileOf(r relay.Resource) string { return strings.TrimSuffix(r.String(), ".") + ".snapshot" }

func (k *keeper) temporary() string { return k.name + ".tmp" }

// restore gives the relay what the file holds, if there is one, and goes on behind it.
func (k *keeper) restore() {
	_ = k.disk.Remove(k.temporary()) // of a process that was killed
	f, err := k.disk.Open(k.name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		if err = k.load(f); err == nil {
			return
		}
		f.Close()
	}
	k.refuse(err)
}

func (k *keeper) load(f disk.File) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	c, err := decode(f, size, k.relay)
	if err != nil {
		return err
	}
	if err := c.relay.Finish(c.asOf); err != nil {
		return err
	}
	s := k.relay.Status()
	k.place, k.reached, k.written, k.asOf, k.saidAt = k.relay.Place(), s.Version, s.Version, c.asOf, k.cfg.Clock.Now()
	age, _ := s.Age(k.saidAt)
	k.cfg.Logger.Info("restored from disk", "file", k.name, "version", s.Version, "oldest", s.Oldest, "objects", s.Objects,
		"age", age.Round(time.Second).String(), "freshAt", c.asOf.UTC().Format(time.RFC3339), "tornBytes", c.torn)
	// Sync: a process that was killed may not have come to it.
	goOn := !c.open && f.Cut(c.end.offset) == nil && f.Sync() == nil
	if !goOn {
		f.Close() // the next write is a whole file
		return nil
	}
	k.opened(f, c.base)
	k.pos = c.end
	k.did.note(func(st *Status) { st.Size, st.Version = c.end.offset, s.Version })
	return nil
}

// opened goes on with a file that began with a size.
func (k *keeper) opened(f disk.File, began int64) {
	k.file, k.began, k.limit = f, began, began+max(began, k.least)
}

// refuse puts a file aside that cannot be used.
func (k *keeper) refuse(why error) {
	kept := k.name + ".bad"
	if err := k.disk.Rename(k.name, kept); err != nil {
		kept = k.name
	}
	k.did.fault(why)
	k.cfg.Logger.Error("a snapshot cannot be used: the relay starts empty and waits for its source; nothing needs to be "+
		"done, delete the file when it was looked at",
		"file", kept, "err", why)
}

// run writes what changes until ctx ends, and what is left then.
func (k *keeper) run(ctx context.Context) {
	tick := k.cfg.Clock.NewTicker(min(k.cfg.Every, firstLook))
	defer tick.Stop()
	due := k.cfg.Clock.Now().Add(k.cfg.Every)
	for {
		select {
		case <-tick.C():
			if now := k.cfg.Clock.Now(); k.first() || !now.Before(due) {
				k.step(ctx, false)
				due = now.Add(k.cfg.Every)
			}
		case <-ctx.Done():
			k.step(context.WithoutCancel(ctx), true)
			k.close()
			return
		}
	}
}

// first reports whether something has to be written that is not waited for. Without a file a restart would cost each
// client a list. Without its first change a process that is killed again and again would fetch the same each time,
// until nobody can give it any more.
func (k *keeper) first() bool {
	return k.file == nil || !k.moved && k.relay.Status().Version > k.reached
}

// forget takes the file away of a relay that is kept no more.
func (k *keeper) forget() {
	for _, name := range []string{k.name, k.temporary()} {
		if err := k.disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.cfg.Logger.Error("a snapshot of what is relayed no more cannot be deleted", "file", name, "err", err)
		}
	}
}

func (k *keeper) close() {
	if k.file != nil {
		k.file.Close()
		k.file = nil
	}
}

// step writes what is new. last: there will be no other step.
func (k *keeper) step(ctx context.Context, last bool) {
	now := k.cfg.Clock.Now()
	s := k.relay.Status()
	if !s.Synced || now.Before(k.pause.until) && !last {
		return
	}
	err := errLost
	if k.file != nil {
		err = k.append(&s, last)
	}
	switch {
	case errors.Is(err, errLost):
		k.close()
		err = k.rewrite(ctx, &s)
	case err == nil && k.pos.offset >= k.limit && !last:
		if err = k.rewrite(ctx, &s); err != nil { // the old file will do
			k.limit = k.pos.offset + max(k.began, k.least)
		}
	}
	switch {
	case err == nil:
		k.succeeded()
	case ctx.Err() == nil:
		k.failed(err, now)
	}
}

// append writes the changes behind the place to the file and makes them durable.
func (k *keeper) append(s *relay.Status, last bool) error {
	e := newEncoder(k.file, k.pos)
	next, reached, changed := k.place, k.reached, false
	for {
		changes, ok := k.relay.Since(k.scratch[:0], next, readChanges)
		if !ok {
			return k.undo(errLost)
		}
		for _, c := range changes {
			reached = max(reached, c.Version)
			changed = e.change(c) || changed
		}
		clear(changes)
		next.Seq += uint64(len(changes))
		if len(changes) == 0 {
			break
		}
	}
	asOf := k.freshAt(s)
	due := last || k.cfg.Clock.Since(k.saidAt) >= k.cfg.Idle
	moved := reached > k.written || asOf.Sub(k.asOf).Abs() >= time.Second
	if !changed && (!due || !moved) {
		k.place, k.reached = next, reached
		return nil
	}
	k.tail(e, max(k.written, e.version), reached, asOf)
	err := e.end()
	k.did.count(e.pos.offset - k.pos.offset)
	if err != nil {
		return k.undo(fmt.Errorf("append: %w", err))
	}
	if err := k.file.Sync(); err != nil { // what is on the disk now, nobody knows, and a later Sync would not tell
		_ = k.file.Cut(k.pos.offset)
		k.close()
		return fmt.Errorf("append: %w", err)
	}
	k.place, k.reached, k.moved = next, reached, k.moved || changed
	k.took(e.pos, reached, asOf)
	return nil
}

// tail ends what is written at once: with the version reached, and when that was fresh.
func (k *keeper) tail(e *encoder, version, reached uint64, asOf time.Time) {
	if reached > version {
		e.reached(reached)
	}
	e.fresh(asOf)
}

// freshAt is when the relay was fresh last, by the wall clock as it is set now.
func (k *keeper) freshAt(s *relay.Status) time.Time {
	if s.ProgressAt.IsZero() {
		return k.asOf
	}
	now := k.cfg.Clock.Now()
	return now.Add(-now.Sub(s.ProgressAt)).Round(0) // of what was restored, ProgressAt is by the wall clock, and stays
}

// undo removes what was appended in part.
func (k *keeper) undo(why error) error {
	if err := k.file.Cut(k.pos.offset); err != nil {
		k.close()
	}
	return why
}

// rewrite makes a new file: the state at the oldest version from which a watch can resume, and the changes since.
func (k *keeper) rewrite(ctx context.Context, s *relay.Status) (err error) {
	x, ok := k.relay.Export()
	if !ok {
		return nil
	}
	f, err := k.disk.Create(k.temporary())
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = k.disk.Remove(k.temporary())
		}
	}()
	e := newEncoder(&paced{f: f}, position{})
	asOf := k.freshAt(s)
	err = k.export(ctx, e, x, asOf)
	k.did.count(e.pos.offset)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	err = k.disk.Rename(k.temporary(), k.name)
	k.close() // also if that failed: which file has the name now, nobody knows
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	k.opened(f, e.pos.offset)
	k.place, k.reached = x.Next, x.To
	k.took(e.pos, x.To, asOf)
	k.did.note(func(s *Status) { s.Rewritten++ })
	return nil
}

func (k *keeper) export(ctx context.Context, e *encoder, x *relay.Export, asOf time.Time) error {
	n, objects := x.Objects()
	e.start()
	e.head(k.relay.Resource(), x.History, x.From, asOf, n)
	for o := range objects {
		if e.object(o); e.err != nil || ctx.Err() != nil {
			return errors.Join(e.err, ctx.Err())
		}
	}
	for _, c := range x.Changes() {
		e.change(c)
	}
	k.tail(e, e.version, x.To, asOf)
	e.whole(n)
	return e.end()
}

// paced makes durable as it goes what is written: a whole file at once would hold up everybody who waits for the disk.
type paced struct {
	f     disk.File
	dirty int
}

func (p *paced) Write(b []byte) (int, error) {
	n, err := p.f.Write(b)
	if p.dirty += n; err == nil && p.dirty >= syncEvery {
		p.dirty = 0
		err = p.f.Sync()
	}
	return n, err
}

// took notes what the file holds now.
func (k *keeper) took(pos position, version uint64, asOf time.Time) {
	k.pos, k.written, k.asOf, k.saidAt = pos, version, asOf, k.cfg.Clock.Now()
	k.did.note(func(s *Status) { s.Size, s.Version, s.Success = pos.offset, version, k.saidAt })
}

// failed puts the next try off. What is on the disk stays as it is.
func (k *keeper) failed(err error, now time.Time) {
	k.pause.begin(now)
	if k.did.fault(err) {
		k.cfg.Logger.Error("cannot write a snapshot: the relay serves on, but a restart would restore an older state; "+
			"trying again", "file", k.name, "err", err)
	}
}

func (k *keeper) succeeded() {
	k.pause = pause{}
	if k.did.success() {
		k.cfg.Logger.Info("snapshots can be written again", "file", k.name)
	}
}
