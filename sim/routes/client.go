package routes

import (
	"slices"
	"time"
)

// Client is what one client was shown, or who answered it.
type Client struct {
	Node, Kind string
	From, To   time.Time // it had all slices, or began to call, and it ended; To zero: it goes on
	Shown      []Shown   // in the order of time
	// Calls are the pods that it calls by the names of their Services, with the answers and failures in the order of time.
	// nil: it is shown slices.
	Calls    map[string]bool
	Answers  []Answer
	Failures []Failure
}

// Failure is a call that failed.
type Failure struct{ From, To time.Time }

// Answer is that of a pod.
type Answer struct {
	At           time.Time
	Address, Pod string // pod empty: it did not say
}

// answeredLate is how long after a pod had its address it answered a client that calls it.
func (c Client) answeredLate(l Life, since, end time.Time) time.Duration {
	if !c.Calls[l.Pod] {
		return 0
	}
	last := earlier(l.To, c.until(end))
	for _, a := range c.Answers {
		if a.Address == l.Address && (a.Pod == "" || a.Pod == l.Pod) && !a.At.Before(l.From) && !a.At.After(last) {
			return a.At.Sub(since)
		}
	}
	return max(last.Sub(since), 0)
}

// Shown is what one slice shows from a time on.
type Shown struct {
	At      time.Time
	Slice   string
	Version string
	Pods    map[string][]Endpoint // nil: there is no such slice any more
}

// Endpoint is where a slice leads to.
type Endpoint struct {
	Address string
	Ready   bool
}

// until is when the client ended.
func (c Client) until(end time.Time) time.Time {
	if c.To.IsZero() {
		return end
	}
	return earlier(c.To, end)
}

// step is what all slices together show of a pod for a time.
type step struct {
	from, to  time.Time
	endpoints []Endpoint
}

type steps []step

// history is what a client was shown, by pod.
type history map[string]steps

// history adds up what the client's slices show. The last step of a pod has no end.
func (c Client) history() history {
	now, all := map[string]map[string][]Endpoint{}, history{}
	for _, s := range c.Shown {
		touched := map[string]bool{}
		for pod := range now[s.Slice] {
			touched[pod] = true
		}
		for pod := range s.Pods {
			touched[pod] = true
		}
		now[s.Slice] = s.Pods
		for pod := range touched {
			var endpoints []Endpoint
			for _, pods := range now {
				endpoints = append(endpoints, pods[pod]...)
			}
			if n := len(all[pod]); n > 0 {
				all[pod][n-1].to = s.At
			}
			all[pod] = append(all[pod], step{from: s.At, endpoints: endpoints})
		}
	}
	return all
}

// within are the steps between two times.
func (s steps) within(from, to time.Time) steps {
	var all steps
	for _, x := range s {
		if x.to.IsZero() || x.to.After(to) {
			x.to = to
		}
		x.from = later(x.from, from)
		if x.from.Before(x.to) {
			all = append(all, x)
		}
	}
	return slices.Clip(all)
}
