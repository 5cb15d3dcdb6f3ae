package filter

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/weir-edge/weir/impl/disk"
)

const maxClients = 256 // of which it is known what they have

// topology is what is known of it now, and what each client was told of that.
type topology struct {
	Config

	mu      sync.Mutex
	view    *view
	first   *view // of this process: what a client has of which nothing is known; nil: clients were forgotten
	streams map[follower]struct{}
	clients map[string]has
	shown   func(*view) // is told of each view that a client has from now on; nil: nobody wants to know
}

// follower is told that there is another view. It must not block.
type follower interface{ follow() }

func newTopology(c Config) topology {
	v := restore(c)
	return topology{Config: c, view: v, first: v, streams: map[follower]struct{}{}, clients: map[string]has{}}
}

// join has a stream follow the view until it leaves.
func (f *topology) join(s follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams[s] = struct{}{}
}

func (f *topology) leave(s follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.streams, s)
}

// has is what a client has, as far as it is known.
type has struct {
	view   *view
	before *view  // if it was told of a change: what it had before
	at     uint64 // the version at which it was told: one that comes back with it may have missed a part of that
	lists  bool   // it was told to list, and has not done so yet
}

func (f *topology) now() *view {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

// change makes another view, and tells it to all watches.
func (f *topology) change(edit func(*view)) {
	f.mu.Lock()
	next := *f.view
	edit(&next)
	if next.equal(f.view) {
		f.mu.Unlock()
		return
	}
	f.view = &next
	open := slices.Collect(maps.Keys(f.streams))
	f.mu.Unlock()
	f.keep(&next)
	for _, s := range open {
		s.follow()
	}
}

// set notes what a client has.
func (f *topology) set(client string, h has) {
	if len(f.clients) >= maxClients {
		clear(f.clients)
		f.first = nil
	}
	f.clients[client] = h
}

// listed notes the same of one that was shown all, and gives what it still has to be told of: who had another view and
// was not told to list takes no notice of what looks different at the same version.
func (f *topology) listed(client string, v *view) (had *view) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h, known := f.clients[client]; known && !h.lists {
		if h.before != nil {
			return h.before
		}
		return h.view
	}
	f.set(client, has{view: v})
	f.tells(v)
	return v
}

// tells tells that a client has a view.
func (f *topology) tells(v *view) {
	if f.shown != nil {
		f.shown(v)
	}
}

// told notes that a client was told of a change at a version, or to list.
func (f *topology) told(client string, before, v *view, at uint64, lists bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.clients[client]; h.before != nil && h.at == at {
		before = h.before
	}
	f.set(client, has{v, before, at, lists})
	if !lists {
		f.tells(v)
	}
}

// had is the view that a client has which comes back at a version; ok is false if that is not known.
func (f *topology) had(client string, version uint64) (v *view, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch h, known := f.clients[client]; {
	case !known: // it was told of all by the process before, which kept that
		return f.first, f.first != nil
	case h.lists, h.before != nil && version <= h.at:
		return h.before, h.before != nil
	default:
		return h.view, true
	}
}

// setMembers takes the nodes of the pool.
func (f *topology) setMembers(names []string) {
	f.change(func(v *view) { v.members = membersOf(append(names, f.Node), f.Node) })
}

// learn takes the topology of some Services, by namespace/name; anywhere is none.
func (f *topology) learn(some map[string]scope) {
	f.mu.Lock()
	news := false
	for key, of := range some {
		news = news || f.view.services[key] != of
	}
	f.mu.Unlock()
	if !news {
		return
	}
	f.change(func(v *view) {
		v.services = maps.Clone(v.services)
		if v.services == nil {
			v.services = map[string]scope{}
		}
		for key, of := range some {
			v.services[key] = of
			if of == anywhere {
				delete(v.services, key)
			}
		}
	})
}

// restore reads the view that the process before kept.
func restore(c Config) *view {
	v := &view{node: c.Node}
	if c.File == "" {
		return v
	}
	b, err := os.ReadFile(c.File)
	if errors.Is(err, fs.ErrNotExist) {
		return v
	}
	var k kept
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	if err != nil {
		c.Logger.Error("what was kept of the pool's members and of Services' topology cannot be used: endpoints are not "+
			"filtered until clients list Services again",
			"file", c.File, "err", err)
		return v
	}
	v.services, v.members = k.Services, membersOf(k.Members, c.Node)
	return v
}

// keep writes a view to the file, durably, before anybody sees what it was learnt from: who goes on behind that is not
// shown it again.
func (f *topology) keep(v *view) {
	if f.File == "" {
		return
	}
	b, err := json.Marshal(kept{Members: slices.Sorted(maps.Keys(v.members)), Services: v.services})
	if err == nil {
		err = disk.WriteFile(f.File, b)
	}
	if err != nil {
		f.Logger.Warn("cannot keep the pool's members and Services' topology", "file", f.File, "err", err)
	}
}
