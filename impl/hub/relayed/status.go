package relayed

import (
	"time"

	"github.com/weir-edge/weir/impl/source"
)

// ResourceStatus is one relay and what feeds it.
type ResourceStatus struct {
	Resource string `json:"resource"`
	Synced   bool   `json:"synced"`
	Version  uint64 `json:"version"`
	// of the cloud, that versions are of; it grows when the cloud was restored from a backup.
	History    uint64    `json:"history"`
	Oldest     uint64    `json:"oldest"`
	Objects    int       `json:"objects"`
	Bytes      int64     `json:"bytes"`
	RingEvents int       `json:"ringEvents"`
	RingBytes  int64     `json:"ringBytes"`
	Watchers   int       `json:"watchers"`
	AgeSeconds float64   `json:"ageSeconds"`       // since the last sign of its source, -1 for never
	FreshAt    time.Time `json:"freshAt,omitzero"` // the same as a time by this machine's clock
	// from a disk, here or where it was read, and there was no sign of the cloud since.
	Restored bool `json:"restored"`
	SourceStatus
	// what the cloud answers, which does not give the resource to this hub; requests are the cloud's to answer.
	Denied string `json:"denied,omitempty"`
}

// NotRelayed are resources that the pool shares.
type NotRelayed struct {
	Idle    []string `json:"idleResources,omitempty"`    // nobody on this node reads them
	Unknown []string `json:"unknownResources,omitempty"` // and why
}

// SourceStatus is what feeds one relay.
type SourceStatus struct {
	Source    string       `json:"source"`
	Lists     source.Lists `json:"lists"`   // full ones, by cause
	Resyncs   int          `json:"resyncs"` // comparisons by metadata after 410
	Checks    int          `json:"checks"`  // times the cloud was asked whether its history is still this one
	Watches   int          `json:"watches"`
	Switches  int          `json:"switches"`
	LastError string       `json:"lastError,omitempty"`
	// differences of the pool that were to what the relay does not hold, and came whole
	Mismatches int `json:"mismatches,omitempty"`
}

// Status is what there is to say of all relays.
func (s *Sources) Status(now time.Time) (all []ResourceStatus) {
	for _, f := range s.All() {
		rs, fs := f.Relay.Status(), f.Status()
		age, freshAt := -1.0, time.Time{}
		if a, ok := rs.Age(now); ok {
			age, freshAt = a.Truncate(time.Millisecond).Seconds(), now.Add(-a).UTC().Truncate(time.Second)
		}
		all = append(all, ResourceStatus{
			Resource: f.Resource, Synced: rs.Synced, Version: rs.Version, History: rs.History.Number, Oldest: rs.Oldest,
			Objects: rs.Objects, Bytes: rs.Bytes,
			RingEvents: rs.RingEvents, RingBytes: rs.RingBytes, Watchers: rs.Watchers, AgeSeconds: age, FreshAt: freshAt,
			Restored: rs.Restored,
			SourceStatus: SourceStatus{
				fs.Upstream, fs.Lists, fs.Resyncs, fs.Checks, fs.Watches, fs.Switches, fs.LastError, fs.Mismatches,
			},
			Denied: rs.Denied,
		})
	}
	return all
}
