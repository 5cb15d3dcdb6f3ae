package scope

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/snapshot"
)

// DefaultLinger outlasts the restart of a node, and of what reads on it.
const DefaultLinger = 10 * time.Minute

const (
	findFirst = time.Second     // until a resource that nobody knows is asked for again
	findMost  = 5 * time.Minute // and at most
	looks     = 10              // how often within Config.Linger it is looked whether nobody reads
)

// Relays are those of a process.
type Relays interface {
	// All are those that there are.
	All() []*relay.Relay
	// Join makes the relay of one more resource, and shows it to all who look at relays.
	Join(relay.Resource) (*relay.Relay, error)
	// Feed feeds a relay until ctx ends.
	Feed(context.Context, *relay.Relay) error
	// Leave takes a relay away from all who look at relays. It is still fed.
	Leave(*relay.Relay)
	// Left forgets what is kept of a relay that is neither fed nor read any more.
	Left(*relay.Relay)
}

// Config of a Scope.
type Config struct {
	Relays Relays
	// Directory names the resources; nil: they are Fixed.
	Directory *directory.Directory
	Fixed     []directory.Shared
	// Always are those of the resources that are relayed from the start and for ever, read or not.
	Always []string
	// Linger is how long a resource is relayed after its last reader has gone. 0: all are as Always.
	Linger time.Duration
	// Open are the resources that somebody reads without a relay now; may be nil.
	Open func() []string
	// Holds reports whether what is held may be all that there is for a time, so that no relay is given up; may be nil.
	Holds func() bool
	// Find asks the cloud what a resource is that Weir does not know. nil: there is no way to the cloud here, and somebody
	// else tells the directory.
	Find   func(context.Context, directory.Shared) (directory.Shared, error)
	Clock  clock.Clock
	Logger *slog.Logger
}

// Scope is what is relayed. It is safe for concurrent use.
type Scope struct {
	Config
	all  sync.WaitGroup // what runs
	poke chan struct{}  // somebody reads what is not relayed

	mu      sync.Mutex
	ctx     context.Context                     // of Run; nil: it has not begun, or has ended
	lives   map[*relay.Relay]context.CancelFunc // of what feeds each
	leaving map[string]bool                     // resources whose relay is given up, and still has something on the disk
	reads   map[string]*reading                 // of what is named
	unknown map[string]string                   // why a resource that is named is not relayed
}

// reading is who reads a resource.
type reading struct {
	relay *relay.Relay // nil: it is not relayed
	open  int          // reads that last
	last  time.Time    // when the last one ended, or when nobody had read yet
}

// New makes what has not begun.
func New(c Config) *Scope {
	return &Scope{
		Config: c, poke: make(chan struct{}, 1), lives: map[*relay.Relay]context.CancelFunc{}, leaving: map[string]bool{},
		reads: map[string]*reading{}, unknown: map[string]string{},
	}
}

// Parse reads a resource of a flag, and whether it is always relayed: then a + stands before it.
func Parse(flag string) (r relay.Resource, always bool, err error) {
	name, always := strings.CutPrefix(flag, "+")
	r, err = relay.ParseResource(name)
	return r, always, err
}

// Of are the resources that an entry names and of which it is known what they are.
func Of(e directory.Entry) (known []relay.Resource) {
	for _, s := range e.Scope {
		if r, err := relay.ParseResource(s.Flag()); err == nil {
			known = append(known, r)
		}
	}
	return known
}

// First are those of known resources that a process begins with: what is always relayed, and what was read before a
// restart, so that something of it is kept in a folder of package snapshot. always and linger are as in Config.
func First(known []relay.Resource, always []string, linger time.Duration, folder string) (first []relay.Resource) {
	for _, r := range known {
		if linger == 0 || slices.Contains(always, r.String()) || snapshot.Kept(folder, r) {
			first = append(first, r)
		}
	}
	return first
}

// named are the resources that may be relayed.
func (s *Scope) named() []directory.Shared {
	if s.Directory == nil {
		return s.Fixed
	}
	return s.Directory.Now().Scope
}

// has reports whether a resource is named, and as what.
func has(named []directory.Shared, resource string) (x directory.Shared, ok bool) {
	i := slices.IndexFunc(named, func(x directory.Shared) bool { return x.String() == resource })
	if i < 0 {
		return x, false
	}
	return named[i], true
}

// May reports whether a resource may be relayed, whether somebody reads it or not.
func (s *Scope) May(resource string) bool {
	_, ok := has(s.named(), resource)
	return ok
}

// Names are the resources that may be relayed, whether somebody reads them or not.
func (s *Scope) Names() (all []string) {
	for _, x := range s.named() {
		all = append(all, x.String())
	}
	return all
}

// Idle are the resources that may be relayed, and are not, since nobody reads them.
func (s *Scope) Idle() (all []string) {
	for _, x := range s.named() {
		if name := x.String(); s.held(name) == nil && !s.wanted(name, nil) {
			all = append(all, name)
		}
	}
	return all
}

// held is the relay of a resource, nil if there is none.
func (s *Scope) held(resource string) *relay.Relay {
	all := s.Relays.All()
	i := slices.IndexFunc(all, func(r *relay.Relay) bool { return r.Resource().String() == resource })
	if i < 0 {
		return nil
	}
	return all[i]
}

// Read begins to relay a resource if that has not begun, and keeps it until done is called and Config.Linger is over.
// The relay holds nothing at first (relay.Status.Joins). It is nil if the resource is not named, or if it is not known
// yet what it is: it is asked for, and relayed if somebody reads it then.
func (s *Scope) Read(resource string) (r *relay.Relay, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.reads[resource]; now != nil && now.relay != nil { // each read of a relay passes here
		return now.relay, s.count(now)
	}
	x, ok := has(s.named(), resource)
	if !ok {
		return s.held(resource), func() {}
	}
	done = s.count(s.reading(resource))
	if r = s.held(resource); r != nil || s.ctx == nil || s.ctx.Err() != nil || s.leaving[resource] {
		return r, done
	}
	res, err := relay.ParseResource(x.Flag())
	if err == nil {
		r, err = s.begin(res)
	}
	if err != nil {
		s.look()
	}
	return r, done
}

// count counts a read until done is called. s.mu is held.
func (s *Scope) count(r *reading) (done func()) {
	r.open++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.open--
		r.last = s.Clock.Now()
	}
}

// look has Run look again. It never blocks.
func (s *Scope) look() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// reading is that of a resource. s.mu is held.
func (s *Scope) reading(resource string) *reading {
	r := s.reads[resource]
	if r == nil {
		r = &reading{last: s.Clock.Now()}
		s.reads[resource] = r
	}
	return r
}

// wanted reports whether somebody reads a resource.
func (s *Scope) wanted(resource string, open []string) bool {
	if s.Linger == 0 || slices.Contains(s.Always, resource) || slices.Contains(open, resource) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reads[resource]
	return r != nil && r.open > 0
}

// Run keeps to what is named, and read, until ctx ends.
func (s *Scope) Run(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	for _, r := range s.Relays.All() {
		s.start(r)
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.ctx = nil
		s.mu.Unlock()
		s.all.Wait()
	}()
	for wait := findFirst; ctx.Err() == nil; {
		var changed <-chan struct{}
		if s.Directory != nil {
			changed = s.Directory.Changed()
		}
		next := findMost
		if all := s.settle(ctx); !all && s.Find != nil {
			next = wait
			wait = min(2*wait, findMost)
		} else {
			wait = findFirst
		}
		if s.Linger > 0 {
			next = min(next, max(s.Linger/looks, time.Second))
		}
		timer := s.Clock.NewTimer(next)
		select {
		case <-timer.C():
		case <-changed:
			wait = findFirst
		case <-s.poke:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// settle relays what is named and read, gives up the rest, and reports whether that is all.
func (s *Scope) settle(ctx context.Context) (all bool) {
	named, open := s.named(), []string(nil)
	if s.Open != nil {
		open = s.Open()
	}
	holds := s.Holds != nil && s.Holds()
	for _, r := range s.Relays.All() {
		name := r.Resource().String()
		if _, ok := has(named, name); !ok {
			s.leave(r, "a resource is relayed no more: its clients go on at the cloud", func() bool { return true })
			s.mu.Lock()
			delete(s.reads, name)
			s.mu.Unlock()
		} else if !holds && !s.wanted(name, open) {
			s.leave(r, "nobody reads a resource: it is relayed no more until somebody does", func() bool {
				last := s.reading(name)
				return last.open == 0 && s.Clock.Since(last.last) >= s.Linger
			})
		}
	}
	unknown := map[string]string{}
	for _, x := range named {
		if name := x.String(); s.held(name) == nil && s.wanted(name, open) {
			if err := s.join(ctx, x); err != nil && ctx.Err() == nil {
				unknown[name] = err.Error()
			}
		}
	}
	s.mu.Lock()
	was := s.unknown
	s.unknown = unknown
	s.mu.Unlock()
	for name, why := range unknown {
		if _, told := was[name]; !told {
			s.Logger.Warn("the pool is to share a resource that is not known: requests for it are the cloud's to answer, and "+
				"it is asked for again", "resource", name, "why", why)
		}
	}
	return len(unknown) == 0
}

// join begins to relay a resource, once it is known what it is.
func (s *Scope) join(ctx context.Context, x directory.Shared) error {
	res, err := relay.ParseResource(x.Flag())
	if err != nil {
		if x.Kind != "" || x.Group == "" { // what is built in has no kind behind it, and needs none
			return err
		}
		if s.Find == nil {
			return errors.New("nobody has told its kind yet")
		}
		if x, err = s.Find(ctx, x); err != nil {
			return err
		}
		if res, err = relay.ParseResource(x.Flag()); err != nil {
			return err
		}
		if s.Directory != nil {
			s.Directory.Learn(x)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := res.String(); s.held(name) != nil || s.leaving[name] { // somebody was faster, or it comes back in a moment
		return nil
	}
	_, err = s.begin(res)
	return err
}

// begin makes the relay of a resource, and runs it. s.mu is held.
func (s *Scope) begin(res relay.Resource) (*relay.Relay, error) {
	r, err := s.Relays.Join(res)
	if err != nil {
		return nil, err
	}
	s.Logger.Info("one more resource is relayed", "resource", res.String(), "kind", res.Kind)
	if why := res.Exposed(); why != "" {
		s.Logger.Warn(why, "resource", res.String())
	}
	s.start(r)
	return r, nil
}

// start runs a relay and what feeds it. s.mu is held.
func (s *Scope) start(r *relay.Relay) {
	ctx := s.ctx
	feeding, end := context.WithCancel(ctx)
	s.lives[r] = end
	s.reading(r.Resource().String()).relay = r
	s.all.Go(func() {
		defer end()
		fed := make(chan struct{})
		go func() {
			defer close(fed)
			if err := s.Relays.Feed(feeding, r); err != nil && feeding.Err() == nil {
				s.Logger.Error("a relay is fed no more", "resource", r.Resource().String(), "err", err)
			}
		}()
		if err := r.Run(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Error("a relay has ended", "resource", r.Resource().String(), "err", err)
		}
		<-fed
		if ctx.Err() != nil {
			return
		}
		s.Relays.Left(r)
		s.mu.Lock()
		delete(s.leaving, r.Resource().String())
		s.mu.Unlock()
		s.look()
	})
}

// leave ends what is relayed of a resource, if that is still right.
func (s *Scope) leave(r *relay.Relay, why string, right func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !right() {
		return
	}
	s.Logger.Info(why, "resource", r.Resource().String())
	name := r.Resource().String()
	s.leaving[name], s.reading(name).relay = true, nil
	s.Relays.Leave(r)
	r.Retire()
	s.lives[r]()
	delete(s.lives, r)
}

// Unknown are the resources that are named and not relayed, each with the reason behind it.
func (s *Scope) Unknown() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.unknown)) {
		all = append(all, strings.TrimSuffix(name, ".")+": "+s.unknown[name])
	}
	return all
}

var unknown = prometheus.NewDesc("weir_scope_unknown",
	"1 for a resource that the pool is to share and that is not relayed, since it is not known what it is.",
	[]string{"resource"}, nil)

// Describe implements prometheus.Collector.
func (s *Scope) Describe(ch chan<- *prometheus.Desc) { ch <- unknown }

// Collect implements prometheus.Collector.
func (s *Scope) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.unknown {
		ch <- prometheus.MustNewConstMetric(unknown, prometheus.GaugeValue, 1, name)
	}
}
