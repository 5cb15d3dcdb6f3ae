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
)

const (
	findFirst = time.Second     // until a resource that nobody knows is asked for again
	findMost  = 5 * time.Minute // and at most
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
	// Directory names the resources; nil: those that there are at the start stay.
	Directory *directory.Directory
	// Find asks the cloud what a resource is that Weir does not know. nil: there is no way to the cloud here, and somebody
	// else tells the directory.
	Find   func(context.Context, directory.Shared) (directory.Shared, error)
	Clock  clock.Clock
	Logger *slog.Logger
}

// Scope is what is relayed. It is safe for concurrent use.
type Scope struct {
	Config
	lives map[*relay.Relay]context.CancelFunc // of what feeds each; of Run
	all   sync.WaitGroup                      // what runs

	mu      sync.Mutex
	unknown map[string]string // why a resource that is named is not relayed
}

// New makes what has not begun.
func New(c Config) *Scope {
	return &Scope{Config: c, lives: map[*relay.Relay]context.CancelFunc{}, unknown: map[string]string{}}
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

// Run keeps to what the directory names, until ctx ends.
func (s *Scope) Run(ctx context.Context) error {
	defer s.all.Wait()
	for _, r := range s.Relays.All() {
		s.start(ctx, r)
	}
	if s.Directory == nil {
		<-ctx.Done()
		return nil
	}
	for wait := findFirst; ctx.Err() == nil; {
		changed := s.Directory.Changed()
		if all := s.settle(ctx, s.Directory.Now()); all || s.Find == nil {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			wait = findFirst
			continue
		}
		timer := s.Clock.NewTimer(wait)
		select {
		case <-timer.C():
			wait = min(2*wait, findMost)
		case <-changed:
			wait = findFirst
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// settle relays what an entry names and nothing else, and reports whether that is all that it names.
func (s *Scope) settle(ctx context.Context, e directory.Entry) (all bool) {
	named := func(r *relay.Relay) bool {
		return slices.ContainsFunc(e.Scope, func(x directory.Shared) bool { return x.String() == r.Resource().String() })
	}
	for _, r := range s.Relays.All() {
		if !named(r) {
			s.leave(r)
		}
	}
	unknown := map[string]string{}
	for _, x := range e.Scope {
		there := func(r *relay.Relay) bool { return r.Resource().String() == x.String() }
		if slices.ContainsFunc(s.Relays.All(), there) {
			continue
		}
		if err := s.join(ctx, x); err != nil && ctx.Err() == nil {
			unknown[x.String()] = err.Error()
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

// join begins to relay a resource.
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
		s.Directory.Learn(x)
	}
	r, err := s.Relays.Join(res)
	if err != nil {
		return err
	}
	s.Logger.Info("one more resource is relayed", "resource", x.String(), "kind", res.Kind)
	if why := res.Exposed(); why != "" {
		s.Logger.Warn(why, "resource", x.String())
	}
	s.start(ctx, r)
	return nil
}

// start runs a relay and what feeds it.
func (s *Scope) start(ctx context.Context, r *relay.Relay) {
	feeding, end := context.WithCancel(ctx)
	s.lives[r] = end
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
		if ctx.Err() == nil {
			s.Relays.Left(r)
		}
	})
}

// leave ends what is relayed of a resource.
func (s *Scope) leave(r *relay.Relay) {
	s.Logger.Info("a resource is relayed no more: its clients go on at the cloud", "resource", r.Resource().String())
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
