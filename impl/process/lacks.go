package process

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

const (
	lackEvery  = 20 * time.Second // between two looks whether a cause is gone
	lackSteady = 3                // looks in a row that find it gone
)

// MendedError says that the cause of a lack is gone: the hub ends, to be restarted with what it lacked.
type MendedError struct{ What string }

func (e *MendedError) Error() string {
	return e.What + " can be used again: this hub ends, and its unit restarts it"
}

// Lack is something that a hub goes on without.
type Lack struct {
	What string `json:"what"` // the flag that names it
	Why  string `json:"why"`
}

// Lacks is what a hub lacks. It is for concurrent use.
type Lacks struct {
	Clock  clock.WithTicker
	Logger *slog.Logger
	Files  func() []Lack // what cannot be read of credentials, and is read again without an end of the hub; nil: nothing

	mu  sync.Mutex
	all []cause
}

// cause is a lack that stays until the hub starts again.
type cause struct {
	Lack

	mended func() error // nil: its cause is gone
	looks  int          // in a row that found it gone
}

// Add tells of something that is lacking: without says what the hub does not do meanwhile, and mended looks whether the
// cause is gone.
func (l *Lacks) Add(what string, why error, without string, mended func() error) {
	l.Logger.Error("the hub goes on without "+what+": "+without, "why", why)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, cause{Lack: Lack{what, fmt.Sprintf("%v: %s", why, without)}, mended: mended})
}

// All is what is lacking now.
func (l *Lacks) All() (all []Lack) {
	l.mu.Lock()
	for _, c := range l.all {
		all = append(all, c.Lack)
	}
	l.mu.Unlock()
	if l.Files != nil {
		all = append(all, l.Files()...)
	}
	return all
}

// Run looks after causes until ctx ends. It returns a *MendedError when one is gone for a minute.
func (l *Lacks) Run(ctx context.Context) error {
	tick := l.Clock.NewTicker(lackEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
		if what := l.look(); what != "" {
			return &MendedError{what}
		}
	}
}

func (l *Lacks) look() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.all {
		c := &l.all[i]
		if c.looks++; c.mended() != nil {
			c.looks = 0
		}
		if c.looks >= lackSteady {
			return c.What
		}
	}
	return ""
}

var lacking = prometheus.NewDesc("weir_hub_lacks",
	"1 for what the hub goes on without, by the flag that names it: its log and its status say why.", []string{"what"},
	nil)

// Describe implements prometheus.Collector.
func (l *Lacks) Describe(ch chan<- *prometheus.Desc) { ch <- lacking }

// Collect implements prometheus.Collector.
func (l *Lacks) Collect(ch chan<- prometheus.Metric) {
	said := map[string]bool{}
	for _, lack := range l.All() {
		if !said[lack.What] {
			said[lack.What] = true
			ch <- prometheus.MustNewConstMetric(lacking, prometheus.GaugeValue, 1, lack.What)
		}
	}
}
