package desk

import "time"

const (
	// Fresh is how long what a registry said of a tag is the answer to all, while the cloud is there.
	Fresh = time.Minute
	// Resolve is how long others wait for the one that asks a registry.
	Resolve = 5 * time.Second
)

// tags are what is known of references.
type tags map[string]*tag

// tag is what is known of a reference.
type tag struct {
	digest Digest
	at     time.Time // when a registry was asked; zero: none has answered
	asker  string    // the node that asks a registry now; "": none does
	since  time.Time
}

// resolve says what is known of a tag. resolving: another node asks the registry; else the node is to ask.
func (all tags) resolve(node, name string, now time.Time) (last *Resolution, resolving bool) {
	t := all[name]
	if t == nil {
		all.room()
		t = &tag{}
		all[name] = t
	}
	if !t.at.IsZero() {
		last = &Resolution{Tag: name, Digest: t.digest, Age: max(now.Sub(t.at), 0)}
		if last.Age <= Fresh {
			return last, false
		}
	}
	if t.asker != "" && t.asker != node && now.Sub(t.since) < Resolve {
		return last, true
	}
	t.asker, t.since = node, now
	return last, false
}

// resolved takes what a registry said. The later answer counts.
func (all tags) resolved(r Resolution, now time.Time) {
	t := all[r.Tag]
	if t == nil {
		all.room()
		t = &tag{}
		all[r.Tag] = t
	}
	if at := now.Add(-r.Age); t.at.IsZero() || at.After(t.at) {
		t.digest, t.at, t.asker = r.Digest, at, ""
	}
}

// room forgets the tag that was asked about longest ago, if there are as many as there may be.
func (all tags) room() {
	if len(all) < MaxTags {
		return
	}
	oldest, when := "", time.Time{}
	for name, t := range all {
		last := t.at
		if t.since.After(last) {
			last = t.since
		}
		if oldest == "" || last.Before(when) {
			oldest, when = name, last
		}
	}
	delete(all, oldest)
}
