package report

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"
)

// Ways in which a run carries the same workload over equal links.
const (
	WayStock     = "stock"     // every client straight to the cloud
	WayWeir      = "weir"      // through hubs and coordinator
	WayReference = "reference" // one protobuf informer per pool-scope resource, alone
)

// Directions of traffic.
const (
	Down = "down" // cloud to edge
	Up   = "up"   // edge to cloud
)

// Outcome is the part of a Result that programs rely on: what `weir scenario run --output json` prints.
type Outcome struct {
	Scenario     string        `json:"scenario"`
	Seed         int64         `json:"seed"`
	Passed       bool          `json:"passed"` // all expectations held and the run came to its end
	Expectations []Expectation `json:"expectations"`
	Metrics      Values        `json:"metrics"` // by the names that Metrics documents
}

// Expectation is one statement of the scenario file and what came of it.
type Expectation struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Got    string `json:"got"`
	Want   string `json:"want"`
}

// Values are numbers by name. In JSON those that are no finite numbers are left out.
type Values map[string]float64

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	finite := map[string]float64{}
	for name, x := range v {
		if isFinite(x) {
			finite[name] = x
		}
	}
	return json.Marshal(finite)
}

// Result is all that is known of one run of a scenario. Only Outcome.Scenario is needed for a report.
type Result struct {
	Outcome

	Description string            `json:"description,omitempty"` // one paragraph, from the scenario file
	Error       string            `json:"error,omitempty"`       // why the run ended early; such a run has not passed
	Repeat      string            `json:"repeat,omitempty"`      // the command that repeats the run
	Runtime     string            `json:"runtime,omitempty"`     // local, kind or virtual
	Started     time.Time         `json:"started"`
	Seconds     float64           `json:"seconds"` // that the whole run took
	Revision    string            `json:"revision,omitempty"`
	Versions    map[string]string `json:"versions,omitempty"` // of kube-apiserver, Go, …
	Machine     Machine           `json:"machine"`
	Topology    []Fact            `json:"topology,omitempty"` // in the order in which it is shown

	UplinkBitsPerSecond float64 `json:"uplinkBitsPerSecond,omitempty"` // of one pool, one direction; 0: unlimited

	Bytes      ByteTable   `json:"bytes,omitempty"`
	Series     []Series    `json:"series,omitempty"`
	Readiness  []Readiness `json:"readiness,omitempty"`
	Clients    []Client    `json:"clients,omitempty"`
	Memory     []Memory    `json:"memory,omitempty"`
	Causes     []Cause     `json:"causes,omitempty"`     // while nothing happens
	Replacing  []Cause     `json:"replacing,omitempty"`  // while pods are replaced
	Violations []Violation `json:"violations,omitempty"` // the first ones; metric watch_violations counts all
	Marks      []Mark      `json:"marks,omitempty"`
	Faults     []Fault     `json:"faults,omitempty"`
}

// Machine is what the run ran on.
type Machine struct {
	OS          string `json:"os,omitempty"` // e.g. linux/amd64
	Kernel      string `json:"kernel,omitempty"`
	CPU         string `json:"cpu,omitempty"`
	CPUs        int    `json:"cpus,omitempty"`
	MemoryBytes int64  `json:"memoryBytes,omitempty"`
}

// Fact is one number of the topology or the workload: {"nodes", 5, UnitCount}.
type Fact struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  Unit    `json:"unit,omitempty"`
}

// Series is the traffic of one way in one direction over time. Several with the same way and direction
// (one per class, or per pool) are added up.
type Series struct {
	Way       string  `json:"way"`
	Direction string  `json:"direction"`
	Class     string  `json:"class,omitempty"`
	Bytes     []int64 `json:"bytes"` // in each second since the way began
}

// Readiness tells when a cache was synced, in seconds since its way began.
type Readiness struct {
	Way      string  `json:"way"`
	Pool     string  `json:"pool,omitempty"` // empty: there is one
	Node     string  `json:"node,omitempty"` // empty: the pool as a whole, at its coordinator
	Resource string  `json:"resource"`
	Synced   bool    `json:"synced"` // false: not until the end of the run
	Seconds  float64 `json:"seconds"`
}

// Client counts what one client's stream of one resource carried in one way.
type Client struct {
	Way        string `json:"way"`
	Node       string `json:"node,omitempty"`
	Name       string `json:"name"` // kube-proxy, coredns, json, kubectl
	Resource   string `json:"resource"`
	Adds       int64  `json:"adds"`
	Updates    int64  `json:"updates"`
	Deletes    int64  `json:"deletes"`
	Bookmarks  int64  `json:"bookmarks"`
	Relists    int64  `json:"relists"` // lists after the first one
	Violations int64  `json:"violations"`
}

// Events are the changes that the client saw.
func (c Client) Events() int64 { return c.Adds + c.Updates + c.Deletes }

// Cause is what one kind of request costs: a node in some time while nothing happens, or all nodes while their pods are
// replaced. Those of a way come one after the other.
type Cause struct {
	Way      string  `json:"way"`
	What     string  `json:"what"`     // e.g. "kubelet watch secrets, one"
	Requests float64 `json:"requests"` // of one node in an hour; of all
	Bytes    float64 `json:"bytes"`    // both ways: of one node in a second; of all
}

// Memory is one reading of a process.
type Memory struct {
	Process      string `json:"process"` // hub, coordinator, kube-apiserver
	Node         string `json:"node,omitempty"`
	When         string `json:"when"` // idle, synced, end, peak
	RSSAnonBytes int64  `json:"rssAnonBytes"`
	RSSBytes     int64  `json:"rssBytes"`
}

// Violation is one break of a watch's promises.
type Violation struct {
	Way     string  `json:"way"`
	Node    string  `json:"node,omitempty"`
	Client  string  `json:"client"`
	Rule    string  `json:"rule"` // ordered, unique, reliable, …
	Detail  string  `json:"detail"`
	Seconds float64 `json:"seconds"` // since the way began
}

// Mark is a moment worth a line in the plots of its way: a phase began, a fault began or was healed.
type Mark struct {
	Way     string  `json:"way"`
	Seconds float64 `json:"seconds"` // since the way began
	Label   string  `json:"label"`
	Fault   bool    `json:"fault,omitempty"`
}

// clean returns a copy of r that every format can hold: no missing list where a program expects one, no
// number that is none, and a verdict that agrees with its grounds.
func (r Result) clean() Result {
	r.Expectations = append([]Expectation{}, r.Expectations...)
	if r.Metrics == nil {
		r.Metrics = Values{}
	}
	r.Passed = r.Passed && r.Error == "" &&
		!slices.ContainsFunc(r.Expectations, func(e Expectation) bool { return !e.Passed })
	if strings.TrimSpace(r.Scenario) == "" {
		r.Scenario = "unnamed"
	}
	r.Seconds = finite(r.Seconds)
	r.UplinkBitsPerSecond = finite(r.UplinkBitsPerSecond)
	r.Topology = slices.DeleteFunc(slices.Clone(r.Topology), func(f Fact) bool { return !isFinite(f.Value) })
	r.Marks = slices.DeleteFunc(slices.Clone(r.Marks), func(m Mark) bool { return !isFinite(m.Seconds) })
	r.Readiness = slices.Clone(r.Readiness)
	for i := range r.Readiness {
		if ready := &r.Readiness[i]; !isFinite(ready.Seconds) {
			ready.Synced, ready.Seconds = false, 0
		}
	}
	r.Faults = slices.Clone(r.Faults)
	for i := range r.Faults {
		f := &r.Faults[i]
		for _, v := range []*float64{&f.At, &f.Lasted, &f.Reached, &f.Detect, &f.Elect, &f.Resume, &f.Recovered} {
			*v = finite(*v)
		}
	}
	r.Violations = slices.Clone(r.Violations)
	for i := range r.Violations {
		r.Violations[i].Seconds = finite(r.Violations[i].Seconds)
	}
	return r
}

func finite(v float64) float64 {
	if isFinite(v) {
		return v
	}
	return 0
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
