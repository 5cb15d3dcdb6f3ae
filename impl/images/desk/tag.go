package desk

import "time"

// tag is what is known of a reference.
type tag struct {
	digest Digest
	at     time.Time // when a registry was asked; zero: none has answered
	asker  *member   // that asks a registry now; nil: none does
	since  time.Time
}

// resolve says what is known of a tag. resolving: another member asks the registry; else the member is to ask.
func (d *Desk) resolve(m *member, name string, now time.Time) (last *Resolution, resolving bool) {
	t := d.tags[name]
	if t == nil {
		d.roomForTag()
		t = &tag{}
		d.tags[name] = t
	}
	if !t.at.IsZero() {
		last = &Resolution{Tag: name, Digest: t.digest, Age: max(now.Sub(t.at), 0)}
		if last.Age <= Fresh {
			return last, false
		}
	}
	if t.asker != nil && t.asker != m && now.Sub(t.since) < Resolve {
		return last, true
	}
	t.asker, t.since = m, now
	return last, false
}

// resolved takes what a registry said. The later answer counts.
func (d *Desk) resolved(r Resolution, now time.Time) {
	t := d.tags[r.Tag]
	if t == nil {
		d.roomForTag()
		t = &tag{}
		d.tags[r.Tag] = t
	}
	if at := now.Add(-r.Age); t.at.IsZero() || at.After(t.at) {
		t.digest, t.at, t.asker = r.Digest, at, nil
	}
}

// roomForTag forgets the tag that was asked about longest ago, if there are as many as there may be.
func (d *Desk) roomForTag() {
	if len(d.tags) < MaxTags {
		return
	}
	oldest, when := "", time.Time{}
	for name, t := range d.tags {
		last := t.at
		if t.since.After(last) {
			last = t.since
		}
		if oldest == "" || last.Before(when) {
			oldest, when = name, last
		}
	}
	delete(d.tags, oldest)
}
