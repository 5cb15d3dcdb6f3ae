package queue

import (
	"fmt"
	"time"
)

// Kind is what a write is about.
type Kind uint8

// The writes that a node may do while the cloud is away.
const (
	NodeStatus   Kind = 1 + iota
	PodStatus         // of a pod of this node
	Event             // of the core group
	GroupEvent        // of events.k8s.io
	NodeMetadata      // labels and annotations of the node: {"labels":{…},"annotations":{…}}
	kindsBehind       // all others are unknown
)

func (k Kind) event() bool { return k == Event || k == GroupEvent }

// rank is the order in which kinds are pushed: whether the node is ready, then its pods, then what merely tells of it,
// and may take its time.
func (k Kind) rank() int {
	switch k {
	case NodeStatus, NodeMetadata:
		return 0
	case PodStatus:
		return 1
	}
	return 2
}

func (k Kind) String() string {
	switch k {
	case NodeStatus:
		return "node status"
	case PodStatus:
		return "pod status"
	case Event:
		return "event"
	case GroupEvent:
		return "event of events.k8s.io"
	case NodeMetadata:
		return "labels and annotations"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Target is the object that a write is about. Writes of one target are coalesced. UID tells a pod from a later one of
// its name; Events have none before the cloud knows them.
type Target struct {
	Kind                 Kind
	Namespace, Name, UID string
}

func (t Target) String() string {
	name := t.Name
	if t.Namespace != "" {
		name = t.Namespace + "/" + name
	}
	return t.Kind.String() + " of " + name
}

func (t Target) validate() error {
	switch {
	case t.Kind == 0 || t.Kind >= kindsBehind:
		return fmt.Errorf("queue: %v: want a node status, a pod status, an event, or labels and annotations of the node",
			t.Kind)
	case t.Name == "":
		return fmt.Errorf("queue: a %v without a name", t.Kind)
	case t.Kind == PodStatus && t.UID == "":
		return fmt.Errorf("queue: %v without a uid: a later pod of that name must not get it", t)
	}
	return nil
}

// Write is one write of a client. Bodies are JSON: of Events the whole object, of all others the part that is written.
type Write struct {
	Target
	Base []byte // what the client changed; nil: not known. Counts only for the first write of a target
	Ours []byte // what it is now
}

// Entry is what waits to be pushed: all writes of one target, as one. It is immutable.
type Entry struct {
	Target
	Seq     uint64    // of the last write; entries are pushed in this order
	At      time.Time // of the first write
	Base    []byte    // as the cloud had it before, as far as is known
	Ours    []byte    // as it is now
	Sent    []byte    // what was sent and may have arrived; nil: nothing
	SentAt  string    // version of the cloud's object that Sent was to replace
	sentSeq uint64    // Seq when Sent was Ours
}

func (e *Entry) sent() bool { return e.Sent != nil }

func (e *Entry) size() int {
	return len(e.Base) + len(e.Ours) + len(e.Sent) + len(e.Name) + len(e.Namespace) + 100
}
