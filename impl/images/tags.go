package images

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/exchange"
)

// Bounds of a book of tags.
const (
	maxBook    = 1 << 20          // bytes of its file
	maxGuesses = 256              // repositories whose tag a registry is being asked about
	guessFor   = 30 * time.Second // after the question for a tag its manifest is asked for, or it was there
)

// tagBook is what registries said of tags, as far as this node knows, and what containerd is asking them now. It knows
// what they said to this node's own containerd, and what two members of the pool say that they said. The word of one
// member is not kept.
//
// Nobody tells a hub what a registry said. It is seen: containerd asks the mirror for a tag, gets 404, asks the
// registry, and then asks the mirror for a manifest of the same repository by its digest. That is the one of the tag,
// unless something else may have led to it: see guess. What may be something else is not learned.
type tagBook struct {
	clock  clock.PassiveClock
	file   string
	logger *slog.Logger

	mu     sync.Mutex
	known  map[string]learned
	asked  map[string]*question // by registry/repository
	others map[string]time.Time // registry/repository@digest that something else led to
}

// learned is what a registry said of a tag.
type learned struct {
	Digest exchange.Digest `json:"digest"`
	At     time.Time       `json:"at"`
	Own    time.Time       `json:"own,omitzero"` // when it said so to this node's own containerd; zero: only to others
}

// question is one that containerd asks a registry.
type question struct {
	tag     string
	at      time.Time
	several bool // tags of the same repository
}

// openTags reads what was kept. What cannot be read is forgotten: registries know it.
func openTags(file string, c clock.PassiveClock, logger *slog.Logger) *tagBook {
	b := &tagBook{
		clock: c, file: file, logger: logger, known: map[string]learned{}, asked: map[string]*question{},
		others: map[string]time.Time{},
	}
	if file == "" {
		return b
	}
	raw, err := disk.ReadFile(file, maxBook)
	if err == nil {
		err = json.Unmarshal(raw, &b.known)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, os.ErrNotExist) {
		logger.Warn("what registries said of tags is forgotten", "file", file, "err", err)
		b.known = map[string]learned{}
	}
	for name := range b.known {
		if exchange.CheckTag(name) != nil || len(b.known) > exchange.MaxTags {
			delete(b.known, name)
		}
	}
	return b
}

// ask notes that containerd asks a registry for a tag.
func (b *tagBook) ask(r reference) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prune()
	key, now := r.registry+"/"+r.repository, b.clock.Now()
	if q := b.asked[key]; q != nil {
		q.several, q.at = q.several || q.tag != r.tag, now
	} else if len(b.asked) < maxGuesses {
		b.asked[key] = &question{tag: r.tag, at: now}
	}
}

// exclude notes that something else than a question to a registry leads containerd to a digest.
func (b *tagBook) exclude(r reference, d exchange.Digest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prune()
	if len(b.others) < maxGuesses {
		b.others[r.registry+"/"+r.repository+"@"+d.String()] = b.clock.Now()
	} else { // which of them it is is not known any more
		clear(b.asked)
	}
}

// guess is the tag that a registry said to lead to a digest; "": none is known for sure. accept is what containerd
// wants by its type: it knows from the registry whether that is an index. A single manifest may as well be one of an
// index that the store has from before: listed reports that.
func (b *tagBook) guess(r reference, accept string, listed func(exchange.Digest) bool) (tag string, at time.Time) {
	b.mu.Lock()
	b.prune()
	key := r.registry + "/" + r.repository
	q := b.asked[key]
	_, other := b.others[key+"@"+r.digest.String()]
	if q == nil || other {
		b.mu.Unlock()
		return "", at
	}
	delete(b.asked, key)
	b.mu.Unlock()
	first, _, _ := strings.Cut(accept, ",")
	switch first = strings.TrimSpace(first); {
	case q.several:
		return "", at
	case first == ociIndex, first == dockerIndex:
	case first != ociManifest && first != dockerManifest, listed(r.digest):
		return "", at
	}
	r.tag = q.tag
	return r.name(), q.at
}

// prune forgets what was too long ago. mu is held.
func (b *tagBook) prune() {
	now := b.clock.Now()
	for key, q := range b.asked {
		if now.Sub(q.at) > guessFor {
			delete(b.asked, key)
		}
	}
	for key, at := range b.others {
		if now.Sub(at) > guessFor {
			delete(b.others, key)
		}
	}
}

// learn keeps what a registry said, to this node's own containerd or to others. The later answer counts.
func (b *tagBook) learn(name string, d exchange.Digest, at time.Time, own bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, ok := b.known[name]
	if ok && !at.After(before.At) && (!own || d != before.Digest || !at.After(before.Own)) {
		return
	}
	if !ok && len(b.known) >= exchange.MaxTags {
		oldest := ""
		for other, l := range b.known {
			if oldest == "" || l.At.Before(b.known[oldest].At) {
				oldest = other
			}
		}
		delete(b.known, oldest)
	}
	now := learned{Digest: d, At: at}
	if d == before.Digest && at.Before(before.At) {
		now.At = before.At
	}
	switch {
	case own:
		now.Own = at
	case d == before.Digest:
		now.Own = before.Own
	}
	b.known[name] = now
	if b.file == "" || ok && before.Digest == d && now.Own.IsZero() == before.Own.IsZero() &&
		at.Sub(before.At) < time.Hour { // the disk is one of flash
		return
	}
	raw, err := json.Marshal(b.known)
	if err == nil {
		err = disk.WriteFile(b.file, raw)
	}
	if err != nil {
		b.logger.Warn("what registries said of tags cannot be kept", "file", b.file, "err", err)
	}
}

// last is what a registry last said of a tag, and how long ago.
func (b *tagBook) last(name string) (d exchange.Digest, age time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.known[name]
	return l.Digest, max(b.clock.Since(l.At), 0), ok
}

// words are what registries said to this node's own containerd, for a desk that knows nothing. What others have said
// they say themselves: a desk counts who says the same.
func (b *tagBook) words() (out []exchange.Resolution) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, l := range b.known {
		if !l.Own.IsZero() {
			out = append(out, exchange.Resolution{Tag: name, Digest: l.Digest, Age: max(b.clock.Since(l.Own), 0)})
		}
	}
	return out
}
