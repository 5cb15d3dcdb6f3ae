package queue

import (
	"encoding/json"
	"errors"
	"fmt"
)

// step is what to do with an entry.
type step uint8

const (
	stepDone   step = iota // the cloud has it
	stepDrop               // it is about an object that is not there any more
	stepUpdate             // put the body in place of the cloud's object, at the version that was read
	stepCreate             // create the body
)

// Why is why an entry was dropped.
type Why string

// The reasons.
const (
	Gone     Why = "deleted"  // the cloud has no such object any more
	Replaced Why = "replaced" // another object has its name
	Refused  Why = "refused"  // the cloud does not take it
	Unusable Why = "unusable" // what the queue or the cloud has of it is no object
)

// Whys are all reasons.
func Whys() []Why { return []Why{Gone, Replaced, Refused, Unusable} }

// verdict is what plan decided.
type verdict struct {
	step    step
	body    []byte // JSON
	version string // of the cloud's object that the body replaces
	arrived bool   // the cloud has got what was sent before
	why     Why
}

// head is what plan must know of an object.
type head struct {
	Metadata struct {
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Status json.RawMessage `json:"status"`
	Count  int64           `json:"count"`
	Series struct {
		Count int64 `json:"count"`
	} `json:"series"`
}

// plan decides about an entry in view of the cloud's object, nil if there is none. It is pure: the same entry and
// object give the same verdict, and once the cloud's object is what the verdict made of it, the verdict is stepDone. A
// body is never made through Go's types, which would lose fields that are newer than they.
func plan(e *Entry, cloud []byte) (verdict, error) {
	if cloud == nil {
		if e.Kind.event() {
			return verdict{step: stepCreate, body: e.Ours}, nil
		}
		return verdict{step: stepDrop, why: Gone}, nil
	}
	var theirs head
	if err := json.Unmarshal(cloud, &theirs); err != nil {
		return verdict{}, fmt.Errorf("the cloud's object: %w", err)
	}
	if e.Kind.event() {
		return planEvent(e, cloud, &theirs)
	}
	if e.UID != "" && e.UID != theirs.Metadata.UID {
		return verdict{step: stepDrop, why: Replaced}, nil
	}
	return planPart(e, cloud, &theirs)
}

// planPart brings our part of an object into the cloud's.
func planPart(e *Entry, cloud []byte, theirs *head) (verdict, error) {
	part, err := partOf(e.Kind, cloud, theirs)
	if err != nil {
		return verdict{}, err
	}
	var values [4]any
	for i, b := range [][]byte{e.Base, e.Sent, e.Ours, part} {
		var err error
		if values[i], err = decodeValue(b); err != nil {
			return verdict{}, fmt.Errorf("a status: %w", err)
		}
	}
	base, sent, ours, status := values[0], values[1], values[2], values[3]
	before := e.sent() && arrived(base, sent, status, e.SentAt, theirs.Metadata.ResourceVersion)
	if before {
		base = sent
	}
	merged := merge(base, ours, status)
	if equal(merged, status) {
		return verdict{step: stepDone, arrived: before}, nil
	}
	body, err := withPart(e.Kind, cloud, merged)
	return verdict{step: stepUpdate, body: body, version: theirs.Metadata.ResourceVersion, arrived: before}, err
}

// partOf is the part of an object that entries of a kind are about.
func partOf(k Kind, object []byte, h *head) ([]byte, error) {
	if k != NodeMetadata {
		return h.Status, nil
	}
	var o struct {
		Metadata struct {
			Labels      json.RawMessage `json:"labels,omitempty"`
			Annotations json.RawMessage `json:"annotations,omitempty"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return nil, fmt.Errorf("the cloud's object: %w", err)
	}
	return json.Marshal(o.Metadata)
}

// withPart gives an object with another such part.
func withPart(k Kind, object []byte, part any) ([]byte, error) {
	if k != NodeMetadata {
		return withFields(object, map[string]any{"status": part})
	}
	var o struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return nil, errors.Join(errNoObject, err)
	}
	m, ok := part.(map[string]any)
	if !ok {
		return nil, errNoObject
	}
	metadata, err := withFields(o.Metadata, map[string]any{"labels": at(m, "labels"), "annotations": at(m, "annotations")})
	if err != nil {
		return nil, err
	}
	return withFields(object, map[string]any{"metadata": json.RawMessage(metadata)})
}

// arrived reports whether what was sent, in place of the version sentAt of the cloud's object, is in the cloud's object
// of now. If that is still the version sentAt, it is not. Otherwise either what was sent is the version after sentAt,
// and others have changed parts of it since, or somebody else wrote that version, and what was sent was refused.
// Statuses carry times, names and counts, so these look different: in the first case the object has most of what was
// sent.
func arrived(base, sent, theirs any, sentAt, version string) bool {
	if sentAt == version {
		return false
	}
	changed, same := tally(base, sent, theirs)
	return 2*same > changed
}

// planEvent brings the cloud's Event up to ours if ours has been seen more often. The name of an Event is drawn by the
// one that records it and never used twice, so it makes a repeated creation harmless.
func planEvent(e *Entry, cloud []byte, theirs *head) (verdict, error) {
	var ours head
	if err := json.Unmarshal(e.Ours, &ours); err != nil {
		return verdict{}, fmt.Errorf("an event: %w", err)
	}
	if max(ours.Count, ours.Series.Count) <= max(theirs.Count, theirs.Series.Count) {
		return verdict{step: stepDone}, nil
	}
	fields := map[string]any{}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(e.Ours, &all); err != nil {
		return verdict{}, fmt.Errorf("an event: %w", err)
	}
	for k, v := range all {
		if k != "metadata" {
			fields[k] = v
		}
	}
	body, err := withFields(cloud, fields)
	return verdict{step: stepUpdate, body: body, version: theirs.Metadata.ResourceVersion}, err
}

var errNoObject = errors.New("the cloud's answer is no object")

// With gives an object with what an entry has of it: what its clients should see.
func (e *Entry) With(object []byte) ([]byte, error) {
	ours, err := decodeValue(e.Ours)
	if err != nil {
		return nil, err
	}
	return withPart(e.Kind, object, ours)
}

// withFields gives an object with some of its fields replaced; all others stay the bytes they are. A missing value
// removes one.
func withFields(object []byte, fields map[string]any) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil || all == nil {
		return nil, errors.Join(errNoObject, err)
	}
	for k, v := range fields {
		if v == (missing{}) {
			delete(all, k)
			continue
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		all[k] = b
	}
	return json.Marshal(all)
}
