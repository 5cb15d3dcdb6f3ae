package estimate

import (
	"fmt"
	"time"
)

// Source is where rates of change come from.
type Source string

// The sources, the best first.
const (
	Audit   Source = "audit log"
	Metrics Source = "metrics of kube-apiserver"
	Managed Source = "times in managedFields"
)

// Rates are what was seen of a cluster for a time.
type Rates struct {
	By      Source
	Took    time.Duration
	Changes map[string]float64 // by resource.group
	Pods    float64            // created
	Sizes   map[string]float64 // of a change, as watches got it; where they are known
	// Clients are the watches of all objects on each node; nil: not known.
	Clients map[string]float64
	Notes   []string
}

func newRates(by Source) *Rates {
	return &Rates{By: by, Changes: map[string]float64{}, Sizes: map[string]float64{}}
}

// few is how many changes are too few to take a day to be like them.
const few = 100

// perDay are so many changes in a day.
func (r *Rates) perDay(n float64) float64 {
	if r.Took <= 0 {
		return 0
	}
	return n * day / r.Took.Seconds()
}

// said is a sentence about what was seen.
func (r *Rates) said() (all []string) {
	n := 0.0
	for _, changes := range r.Changes {
		n += changes
	}
	all = append(all, fmt.Sprintf("Rates come from the %s of %s. Each day is taken to be like that.", r.By,
		r.Took.Round(time.Second)))
	if n < few {
		all = append(all, fmt.Sprintf("Only %.0f changes were seen: look for longer.", n))
	}
	return append(all, r.Notes...)
}
