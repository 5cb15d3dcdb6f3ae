package directory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/disk"
)

// settles is how long a watch in the cloud has to be open until what is held is what the cloud says now: a change that came before arrives in it.
const settles = 2 * time.Second

// sure is how long the word of who watches the object in the cloud counts as that.
const sure = 30 * time.Second

// Config of a Directory.
type Config struct {
	Pool  string
	Flags Entry  // what counts where nobody tells; its Pool and Version are not looked at
	File  string // where what was heard last is kept; "": nowhere
	// Hearsay says that there is no way to the cloud here: what the one who is asked says of his own watch is passed on. Of a coordinator.
	Hearsay bool
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Who told what is held.
const (
	ByFlags = "flags"
	ByDisk  = "disk"
	ByCloud = "cloud"
	ByPool  = "pool"
)

// kept is what is on the disk.
type kept struct {
	Entry Entry     `json:"entry"`
	Cloud bool      `json:"cloud"` // it was told by the cloud: a watch may go on behind its version
	At    time.Time `json:"at"`    // when it was known to be what the cloud says
}

// Directory is what one of a pool holds of what the pool is told. It is safe for concurrent use.
type Directory struct {
	Config
	retry chan struct{} // see Retry

	mu      sync.Mutex
	told    Entry  // Version 0: nothing
	text    []byte // of told
	now     Entry  // with flags
	by      string
	since   string        // version behind which a watch in the cloud goes on; "": it begins anew
	opened  time.Time     // since when a watch in the cloud is open; zero: none is
	vouched time.Time     // when somebody who watches it in the cloud said so last; zero: never
	at      time.Time     // when told was last known to be what the cloud says; zero: never
	changed chan struct{} // closed by the next change of now
	counts  Counts
	refused string // the last error
	again   func() // ends the watch in the cloud; nil: there is none
}

// Counts are those since the start.
type Counts struct {
	Changes int `json:"changes"` // of what is told
	Errors  int `json:"errors"`  // times that what was told could not be meant
}

// New reads what was kept. What cannot be read does not count: the cloud or the pool will tell it again.
func New(c Config) *Directory {
	d := &Directory{Config: c, retry: make(chan struct{}, 1), changed: make(chan struct{}), by: ByFlags}
	d.Flags.Pool, d.Flags.Version = c.Pool, 0
	if c.File != "" {
		text, err := os.ReadFile(c.File)
		if err == nil {
			err = d.load(text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.Logger.Warn("what the pool was told about itself, as it is on the disk, does not count", "file", c.File, "err", err)
		}
	}
	d.now = d.told.filled(d.Flags)
	d.now.Pool = c.Pool
	return d
}

func (d *Directory) load(text []byte) error {
	var k kept
	if len(text) > 2*MaxText {
		return errors.New("it is too long")
	}
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	raw, err := json.Marshal(k.Entry)
	if err != nil {
		return err
	}
	if d.told, err = Decode(d.Pool, raw); err != nil {
		return err
	}
	d.text, d.by, d.at = raw, ByDisk, k.At
	if k.Cloud {
		d.since = strconv.FormatUint(d.told.Version, 10)
	}
	return nil
}

// Now is what counts. Its Version is 0 while only flags count.
func (d *Directory) Now() Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// Changed is closed by the next change of what Now says, the version alone included. Ask for it before Now.
func (d *Directory) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// Live tells whether what is held is what the cloud says now.
func (d *Directory) Live() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live()
}

// live is Live; d.mu is held.
func (d *Directory) live() bool { return d.watches() || d.Hearsay && d.sure() }

// watches tells whether the object is watched in the cloud from here, and all that came before has arrived; d.mu is held.
func (d *Directory) watches() bool {
	return !d.opened.IsZero() && d.Clock.Since(d.opened) >= settles
}

// sure tells whether somebody who watches it in the cloud has said so a moment ago; d.mu is held.
func (d *Directory) sure() bool { return !d.vouched.IsZero() && d.Clock.Since(d.vouched) < sure }

// takeCloud takes what the cloud tells. It counts whatever is held.
func (d *Directory) takeCloud(e Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since, d.at = strconv.FormatUint(e.Version, 10), d.Clock.Now()
	d.set(e, ByCloud)
}

// takePool takes what one of the pool tells. live: he watches it in the cloud.
func (d *Directory) takePool(e Entry, live bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.opened.IsZero() { // a watch was opened meanwhile
		return
	}
	if live {
		d.vouched, d.at = d.Clock.Now(), d.Clock.Now()
	}
	if e.Version > d.told.Version || live || e.Version == d.told.Version && reflect.DeepEqual(e.bare(), d.told.bare()) {
		d.set(e, ByPool)
	}
}

// vouch takes that somebody who watches it in the cloud holds what has a tag.
func (d *Directory) vouch(mine string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if mine == tag(d.text) {
		d.vouched, d.at = d.Clock.Now(), d.Clock.Now()
	}
}

// cloudTells tells whether the object is watched in the cloud from here.
func (d *Directory) cloudTells() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.opened.IsZero()
}

// Learn takes the kind of a custom resource of the scope, as the cloud told it here. It is kept with the entry, and the pool is told.
func (d *Directory) Learn(x Shared) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.told.Scope, func(s Shared) bool { return s.Kind == "" && s.String() == x.String() })
	if i < 0 {
		return
	}
	e := d.told
	e.Scope = slices.Clone(e.Scope)
	e.Scope[i] = x
	d.set(e, d.by)
}

// set puts another entry in the place of the one before; d.mu is held.
func (d *Directory) set(e Entry, by string) {
	e = e.knowing(d.told)
	text, err := json.Marshal(e)
	if err != nil || len(text) > MaxText { // bounds of its parts see to it
		d.Logger.Error("what the pool is told about itself is too long", "bytes", len(text), "err", err)
		return
	}
	d.refused = ""
	if string(text) == string(d.text) {
		if d.by = by; by == ByCloud {
			d.keep(by)
		}
		return
	}
	d.told, d.text, d.by = e, text, by
	d.now = e.filled(d.Flags)
	d.counts.Changes++
	close(d.changed)
	d.changed = make(chan struct{})
	d.Logger.Info("the pool is told about itself", "pool", d.Pool, "by", by, "version", e.Version, "mode", d.now.Mode, "leaders", len(e.Leaders),
		"coordinators", e.Coordinators, "scope", len(e.Scope))
	d.keep(by)
}

// keep writes what is told to the disk; d.mu is held.
func (d *Directory) keep(by string) {
	if d.File == "" {
		return
	}
	text, err := json.Marshal(kept{d.told, by == ByCloud, d.at.UTC().Truncate(time.Second)})
	if err == nil {
		err = disk.WriteFile(d.File, append(text, '\n'))
	}
	if err != nil {
		d.Logger.Error("what the pool is told about itself counts, but cannot be kept: it is lost with this process", "file", d.File, "err", err)
	}
}

// refuse notes what cannot be meant.
func (d *Directory) refuse(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Errors++
	if text := err.Error(); text != d.refused {
		d.refused = text
		d.Logger.Error("what the pool is told about itself does not count, and what was told before stays", "err", err)
	}
}

// tag is the same for the same text.
func tag(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// Status is what a Directory says of itself.
type Status struct {
	Version    uint64   `json:"version"`    // 0: only flags count
	By         string   `json:"by"`         // who told it: flags, disk, cloud, pool
	Live       bool     `json:"live"`       // it is what the cloud says now
	AgeSeconds float64  `json:"ageSeconds"` // since it was known to be that, -1 for never
	Mode       string   `json:"mode,omitempty"`
	Leaders    []Leader `json:"leaders,omitempty"`
	Servers    []string `json:"coordinators,omitempty"`
	Scope      []string `json:"scope,omitempty"`
	Counts
	Refused string `json:"refused,omitempty"` // why what was told last does not count
}

// Status tells what counts, and who said so.
func (d *Directory) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Status{
		Version: d.now.Version, By: d.by, Live: d.live(), AgeSeconds: d.age(), Mode: d.now.Mode, Leaders: d.now.Leaders, Servers: d.now.Coordinators,
		Counts: d.counts, Refused: d.refused,
	}
	for _, r := range d.now.Scope {
		s.Scope = append(s.Scope, r.String())
	}
	return s
}

// age is how long ago what is held was known to be what the cloud says, in seconds, -1: never; d.mu is held.
func (d *Directory) age() float64 {
	switch {
	case d.live():
		return 0
	case d.at.IsZero():
		return -1
	}
	return max(d.Clock.Since(d.at), 0).Truncate(time.Millisecond).Seconds()
}
