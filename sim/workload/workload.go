package workload

import (
	"time"

	"k8s.io/utils/clock"
)

// Workload is the Services of a cluster and how they change. Use it from one goroutine at a time, and with one cloud:
// it remembers what the server assigned.
type Workload struct {
	config  Config
	err     error // of config
	base    time.Time
	content random
	changes random
	pods    uint32

	services []*service
	extra    extra
	churned  int           // endpoint changes so far
	elapsed  time.Duration // that they would take if all were made in time
}

// Progress is told how much of the work is done. Calls do not overlap.
type Progress func(done, total int)

// New returns the workload that c describes. A c that is not valid makes Fill and Churn fail.
func New(c Config) *Workload {
	w := &Workload{config: c, err: c.Validate()}
	if w.err != nil {
		return w
	}
	if w.config.Clock == nil {
		w.config.Clock = clock.RealClock{}
	}
	// A time of the past that depends on nothing but the seed.
	w.base = time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC).Add(time.Duration(uint64(c.Seed)%86_400) * time.Second)
	w.content = newRandom(c.Seed, streamContent)
	w.changes = newRandom(c.Seed, streamChanges)
	for i := range c.Services {
		w.services = append(w.services, w.newService(i))
	}
	return w
}

// Objects is the number of objects that Fill writes, namespaces aside.
func (w *Workload) Objects() int {
	var n int
	for _, s := range w.services {
		n += 2 + len(s.slices)
	}
	return n
}
