package directory

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/pki"
)

// Config of a Directory.
type Config struct {
	Pool  string
	Flags Entry  // what is valid where nobody tells; its Pool and Version are not looked at
	File  string // where what was heard last is kept; "": nowhere
	// Trusted are the authorities of the pool, and Speakers those of them that may sign an entry now. Both are required.
	Trusted, Speakers func() []*x509.Certificate
	Time              *pki.Proven // bounds numbers; nil: nothing does
	Clock             clock.Clock
	Logger            *slog.Logger
}

// The source of what is held.
const (
	ByFlags = "flags"
	ByDisk  = "disk"
	ByCloud = "cloud"
	ByPool  = "pool"
)

// Directory is what one of a pool holds of what the pool is told. It is safe for concurrent use.
type Directory struct {
	Config
	*bulletin.Document

	mu      sync.Mutex
	told    Entry             // Version 0: nothing
	line    []byte            // told, as it was signed; none: nothing was, or a version of before has kept it unsigned
	signer  *x509.Certificate // of line
	learnt  []Shared          // kinds that the cloud told here
	now     Entry             // with flags
	by      string
	changed chan struct{} // closed by the next change of now
	counts  Counts
	refused string // the last error
}

// Counts are those since the start.
type Counts struct {
	Changes int `json:"changes"` // of what is told
	Errors  int `json:"errors"`  // times that what was told did not count
}

// New reads what was kept. What cannot be read is ignored: the cloud or the pool will tell it again.
func New(c Config) *Directory {
	d := &Directory{Config: c, changed: make(chan struct{}), by: ByFlags}
	d.Document = bulletin.New(d, &bulletin.Document{
		About: form.Subject, At: contract.DirectoryPath, Max: MaxText, Key: contract.DirectoryKey, Log: c.Logger,
		Cloud: bulletin.Place{
			Path: "/api/v1/namespaces/" + contract.ManagerNamespace + "/endpoints", Name: contract.LeaderHubPrefix + c.Pool,
			Text: func(object []byte) ([]byte, error) {
				var o corev1.Endpoints
				err := json.Unmarshal(object, &o)
				return []byte(o.Annotations[contract.LeaderHubSigned]), err
			},
		},
	})
	d.Flags.Pool, d.Flags.Version = c.Pool, 0
	if c.File != "" {
		text, err := disk.ReadFile(c.File, 2*MaxText)
		if err == nil {
			err = d.load(text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.Logger.Warn("the configuration of the pool on the disk is invalid", "file", c.File,
				"err", err)
		}
	}
	d.fill()
	d.Began = func() {
		if d.Now().Version == 0 {
			c.Logger.Info("the configuration of the pool is not signed yet: flags are used", "pool", c.Pool)
		}
	}
	return d
}

// load takes what is on the disk: a signed entry. An authority that signed before counts there: this machine has judged
// it when it came.
func (d *Directory) load(text []byte) error {
	line, kinds, _ := bytes.Cut(text, []byte("\n"))
	e, signer, err := Open(line, d.Pool, d.Trusted())
	if err == nil {
		d.told, d.line, d.signer, d.by = e, append(slices.Clone(line), '\n'), signer, ByDisk
		if len(kinds) > 0 {
			err = json.Unmarshal(kinds, &d.learnt)
		}
		if err == nil {
			err = Entry{Pool: d.Pool, Scope: d.learnt}.checkScope()
		}
		if err != nil {
			d.learnt = nil
			d.Logger.Warn("the kinds of custom resources on the disk are invalid", "file", d.File, "err", err)
		}
		return nil
	}
	// A version of before kept it unsigned. Like a flag, it is of this machine alone, and is valid until somebody tells
	// what is signed: a pool goes on while it is upgraded.
	var former struct {
		Entry json.RawMessage `json:"entry"`
	}
	if json.Unmarshal(text, &former) != nil || former.Entry == nil {
		return err
	}
	if e, err = decode(d.Pool, former.Entry); err != nil {
		return err
	}
	d.Logger.Warn("what the pool was told about itself was kept unsigned by a version of before: it counts until "+
		"weir-manager has signed what the pool is told", "file", d.File)
	d.told, d.by = e, ByDisk
	return nil
}

// fill makes what is valid; d.mu is held.
func (d *Directory) fill() {
	d.now = d.told.knowing(Entry{Scope: d.learnt}).filled(d.Flags)
	d.now.Pool = d.Pool
}

// Now is what is valid. Its Version is 0 while only flags are used.
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

// Text implements bulletin.Holder: what is signed.
func (d *Directory) Text() (text []byte, tag string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.line == nil {
		return nil, ""
	}
	return d.line, bulletin.TagOf(d.line)
}

// Take takes what one of the pool hands over, if it is signed and newer.
func (d *Directory) Take(text []byte) (changed bool, err error) { return d.take(text, ByPool) }

// TakeOfCloud takes what the cloud shows, by the same rule.
func (d *Directory) TakeOfCloud(text []byte) (changed bool, err error) { return d.take(text, ByCloud) }

func (d *Directory) take(text []byte, by string) (changed bool, err error) {
	if len(text) == 0 { // nobody signs for the pool, or nothing yet
		return false, nil
	}
	may := d.Speakers()
	e, signer, err := Open(text, d.Pool, may)
	if err == nil && d.Time != nil {
		err = bulletin.By(d.Time).Number(e.Version)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.refuse(err)
		return false, err
	}
	d.refused = ""
	// What somebody signed without the right to sign any more is below all that is valid now: its key may have been
	// stolen.
	if d.line != nil && slices.ContainsFunc(may, d.signer.Equal) && e.Version <= d.told.Version {
		if by == ByCloud && e.Version == d.told.Version {
			d.by = by
		}
		return false, nil
	}
	for _, was := range d.told.Scope { // the cloud may not tell the kind now, and weir-manager not sign it
		if was.Kind != "" {
			d.learn(was)
		}
	}
	d.told, d.signer, d.by = e, signer, by
	d.line = append(slices.Clone(bytes.TrimSpace(text)), '\n')
	d.change()
	d.Logger.Info("the pool is told about itself", "pool", d.Pool, "by", by, "version", e.Version, "mode", d.now.Mode,
		"leaders", len(e.Leaders),
		"coordinators", e.Coordinators, "scope", len(e.Scope))
	d.keep()
	return true, nil
}

// Lacks is what is held, if the cloud shows what was signed before it: it was restored from a backup.
func (d *Directory) Lacks(shown []byte) []byte {
	e, _, err := Open(shown, d.Pool, d.Trusted())
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || e.Version >= d.told.Version {
		return nil
	}
	return d.line
}

// Learn takes the kind of a custom resource of the scope, as the cloud told it here. Nobody else is told of it.
func (d *Directory) Learn(x Shared) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.ContainsFunc(d.now.Scope, func(s Shared) bool { return s.Kind == "" && s.String() == x.String() }) {
		return
	}
	d.learn(x)
	d.change()
	d.keep()
}

// learn notes a kind; d.mu is held.
func (d *Directory) learn(x Shared) {
	d.learnt = append(slices.DeleteFunc(slices.Clone(d.learnt), func(s Shared) bool { return s.String() == x.String() }),
		x)
	d.learnt = d.learnt[max(0, len(d.learnt)-MaxScope):]
	slices.SortFunc(d.learnt, func(a, b Shared) int { return strings.Compare(a.String(), b.String()) })
}

// change tells who waits that something else counts; d.mu is held.
func (d *Directory) change() {
	d.fill()
	d.counts.Changes++
	close(d.changed)
	d.changed = make(chan struct{})
}

// keep writes what is told to the disk, and below it the kinds that were learnt; d.mu is held.
func (d *Directory) keep() {
	if d.File == "" || d.line == nil {
		return
	}
	text := slices.Clone(d.line)
	kinds, err := json.Marshal(d.learnt)
	if err == nil && len(d.learnt) > 0 {
		text = append(append(text, kinds...), '\n')
	}
	if err == nil {
		err = disk.WriteFile(d.File, text)
	}
	if err != nil {
		d.Logger.Error("the configuration of the pool is used, but cannot be kept: it is lost with this process",
			"file", d.File, "err", err)
	}
}

// refuse notes what is invalid; d.mu is held.
func (d *Directory) refuse(err error) {
	d.counts.Errors++
	if text := err.Error(); text != d.refused {
		d.refused = text
		d.Logger.Error("the configuration of the pool is invalid, and the one before stays", "err", err)
	}
}

// Status is what a Directory says of itself.
type Status struct {
	Version uint64 `json:"version"` // 0: only flags are used
	By      string `json:"by"`      // who told it: flags, disk, cloud, pool
	// by the pool's authority; else flags are used, or what a version of before has kept.
	Signed     bool     `json:"signed"`
	Live       bool     `json:"live"`       // it is what the cloud says now
	AgeSeconds float64  `json:"ageSeconds"` // since this process knew what the cloud says, -1 for never
	Mode       string   `json:"mode,omitempty"`
	Leaders    []Leader `json:"leaders,omitempty"`
	Servers    []string `json:"coordinators,omitempty"`
	Scope      []string `json:"scope,omitempty"`
	Images     []string `json:"images,omitempty"` // <registry>=<sharing>; none: all are shared
	Gate       string   `json:"gate,omitempty"`   // where weir-gate is; "": there is none
	Reach      []string `json:"reach,omitempty"`  // what it may reach beside kubelets: <network>[:<ports>]
	Counts
	Refused string `json:"refused,omitempty"` // why what was told last is ignored
}

// Status tells what is valid, and who said so.
func (d *Directory) Status() Status {
	age, live := -1.0, d.Live(d.Clock.Now())
	if a, ever := d.Age(d.Clock.Now()); ever {
		age = a.Truncate(time.Millisecond).Seconds()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Status{
		Version: d.now.Version, By: d.by, Signed: d.line != nil, Live: live, AgeSeconds: age, Mode: d.now.Mode,
		Leaders: d.now.Leaders, Servers: d.now.Coordinators,
		Gate: d.now.Gate.Server, Counts: d.counts, Refused: d.refused,
	}
	for _, r := range d.now.Scope {
		s.Scope = append(s.Scope, r.String())
	}
	for _, r := range d.now.Images {
		s.Images = append(s.Images, r.String())
	}
	for _, r := range d.now.Reach {
		s.Reach = append(s.Reach, r.String())
	}
	return s
}
