package exchange

import (
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Times of Images.
const (
	// PullStall is how long nothing may be heard of a pull, and how long one that nobody writes may be without a new byte.
	PullStall = 20 * time.Second
	// PullSlow is how long a pull may be without a new byte that containerd has open. containerd writes a MiB at a time,
	// and pulls three layers at once: at 128 kbit/s these take 197 s. It gives up itself after five minutes.
	PullSlow = 200 * time.Second
	// ImagesSilence is how long a member may say nothing: hubs speak each ImagesEvery.
	ImagesSilence = 100 * time.Second
	ImagesEvery   = 30 * time.Second

	barFor = time.Minute // a member that could not be read from, for the one that says so
)

// Bounds of what Images keeps.
const (
	maxMembers = 500
	maxDigests = 10_000
	maxHolders = 100 // of one digest
	maxBars    = 100 // likewise
	maxFrom    = 3   // holders in an answer
)

// Images is where hubs agree on who pulls content of images, and learn who has it. It is safe for concurrent use.
type Images struct {
	Clock clock.PassiveClock

	mu      sync.Mutex
	name    string
	members map[string]*member
	of      map[Digest]*content
	tags    tags
	swept   time.Time
	turn    int
}

// member is a hub of the pool.
type member struct {
	node, address string
	heard         time.Time
	known         bool // all that it holds was said
	holds         int
}

// content is what is known of a digest.
type content struct {
	holders []*member
	pulls   []*pull
	bars    []bar
	dud     time.Time // when a pull of it ended without a byte
	used    time.Time
}

// pull is one that is under way.
type pull struct {
	by    *member
	bytes int64
	at    time.Time // of the last new byte, or of its begin
	heard time.Time
	again time.Time // when it began again; zero: it was not
}

// bar keeps a member, or all if by is nil, from reading from another one.
type bar struct {
	by, of *member
	wrong  bool
	until  time.Time
}

// Exchange takes what a node says, and answers.
func (d *Images) Exchange(node string, a ImagesAsk) (ImagesAnswer, error) {
	if err := a.Check(); err != nil {
		return ImagesAnswer{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.Clock.Now()
	if d.name == "" {
		d.name = rand.Text()
		d.members, d.of, d.tags = map[string]*member{}, map[Digest]*content{}, newTags()
	}
	d.sweep(now)
	m := d.member(node, now)
	m.address, m.heard = a.Address, now
	if a.Whole {
		d.forget(m)
		m.known = true
	}
	for _, g := range a.Gone {
		d.quit(m, g, now)
		d.drop(m, g)
	}
	for _, g := range a.Holds {
		d.hold(m, g, now)
	}
	for _, p := range a.Pulls {
		d.progress(m, p, now)
	}
	for _, r := range a.Failed {
		d.bar(m, r, now)
	}
	for _, r := range a.Resolved {
		d.tags.say(node, r, now)
	}
	out := ImagesAnswer{Desk: d.name, Known: m.known && (a.Desk == d.name || a.Whole), Barred: d.tags.liars(now)}
	if a.Want != nil {
		out.Pull, out.From = d.want(m, *a.Want, now)
	}
	if a.Tag != "" {
		out.Resolution, out.Resolving = d.tags.resolve(node, a.Tag, now)
	}
	return out, nil
}

// Reset loses all, as a restart does.
func (d *Images) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name = ""
}

// member finds a member. Beyond the bound, the one that was silent for longest is forgotten.
func (d *Images) member(node string, now time.Time) *member {
	if m := d.members[node]; m != nil {
		return m
	}
	if len(d.members) >= maxMembers {
		oldest := &member{heard: now.Add(time.Second)}
		for _, m := range d.members {
			if m.heard.Before(oldest.heard) {
				oldest = m
			}
		}
		d.leave(oldest)
	}
	m := &member{node: node}
	d.members[node] = m
	return m
}

// leave forgets a member.
func (d *Images) leave(m *member) {
	d.forget(m)
	for _, c := range d.of {
		c.pulls = slices.DeleteFunc(c.pulls, func(p *pull) bool { return p.by == m })
		c.bars = slices.DeleteFunc(c.bars, func(b bar) bool { return b.by == m || b.of == m })
	}
	delete(d.members, m.node)
}

// forget forgets what a member holds.
func (d *Images) forget(m *member) {
	if m.holds == 0 {
		return
	}
	for g := range d.of {
		d.drop(m, g)
	}
}

// drop notes that a member does not hold a digest.
func (d *Images) drop(m *member, g Digest) {
	c := d.of[g]
	if c == nil {
		return
	}
	if i := slices.Index(c.holders, m); i >= 0 {
		c.holders = slices.Delete(c.holders, i, i+1)
		m.holds--
	}
	if len(c.holders)+len(c.pulls)+len(c.bars) == 0 && c.dud.IsZero() {
		delete(d.of, g)
	}
}

// quit notes that a member pulls a digest no more.
func (d *Images) quit(m *member, g Digest, now time.Time) {
	c := d.of[g]
	if c == nil {
		return
	}
	c.pulls = slices.DeleteFunc(c.pulls, func(p *pull) bool {
		if p.by == m && p.bytes == 0 {
			c.dud = now
		}
		return p.by == m
	})
}

// hold notes that a member holds a digest, which ends its pull.
func (d *Images) hold(m *member, g Digest, now time.Time) {
	c := d.content(g, now)
	if c == nil {
		return
	}
	c.pulls = slices.DeleteFunc(c.pulls, func(p *pull) bool { return p.by == m })
	c.dud = time.Time{}
	if !slices.Contains(c.holders, m) && len(c.holders) < maxHolders && m.holds < MaxHolds {
		c.holders = append(c.holders, m)
		m.holds++
	}
}

// content finds what is known of a digest. Beyond the bound, one that nobody pulls and that was not asked for longest
// is forgotten; nil: all are pulled.
func (d *Images) content(g Digest, now time.Time) *content {
	if c := d.of[g]; c != nil {
		return c
	}
	if len(d.of) >= maxDigests {
		// The oldest of some, not of all: a flood of digests costs its sender more than the desk.
		var oldest Digest
		found, looked := false, 0
		for other, c := range d.of {
			if len(c.pulls) == 0 && (!found || c.used.Before(d.of[oldest].used)) {
				oldest, found = other, true
			}
			if looked++; looked >= 64 && found {
				break
			}
		}
		if !found {
			return nil
		}
		for _, m := range d.of[oldest].holders {
			m.holds--
		}
		delete(d.of, oldest)
	}
	c := &content{used: now}
	d.of[g] = c
	return c
}

// progress notes how far a pull is.
func (d *Images) progress(m *member, p PullProgress, now time.Time) {
	c := d.content(p.Digest, now)
	if c == nil || slices.Contains(c.holders, m) {
		return
	}
	for _, have := range c.pulls {
		if have.by == m {
			have.heard = now
			if p.Bytes > have.bytes {
				have.bytes, have.at = p.Bytes, now
			}
			return
		}
	}
	if len(c.pulls) < maxHolders {
		c.pulls = append(c.pulls, &pull{by: m, bytes: p.Bytes, at: now, heard: now})
	}
}

// bar keeps a member from one that it could not read from.
func (d *Images) bar(m *member, r ReadReport, now time.Time) {
	of, c := d.members[r.Node], d.of[r.Digest]
	if of == nil || of == m || c == nil {
		return
	}
	until := now.Add(barFor)
	switch {
	case r.Wrong:
		until = now.Add(wrongFor)
	case slices.ContainsFunc(c.pulls, func(p *pull) bool { return p.by == of && p.again.After(now.Add(-r.Age)) }):
		return // it was read from before it began again
	}
	c.bars = slices.DeleteFunc(c.bars, func(b bar) bool {
		return b.by == m && b.of == of && (r.Wrong || !b.wrong) || !b.until.After(now)
	})
	if len(c.bars) < maxBars {
		c.bars = append(c.bars, bar{m, of, r.Wrong, until})
	}
}

// barred reports whether a member is to read nothing from another one.
func (c *content) barred(by, of *member, now time.Time) bool {
	wrong := 0
	for _, b := range c.bars {
		if b.of != of || !b.until.After(now) {
			continue
		}
		if b.by == by || b.by == nil {
			return true
		}
		if b.wrong {
			wrong++
		}
	}
	return wrong >= 2
}

// want says who has a digest, or that the member is to pull it.
func (d *Images) want(m *member, g Digest, now time.Time) (bool, []Holder) {
	d.drop(m, g) // who asks for it does not hold it
	c := d.content(g, now)
	if c == nil {
		return true, nil
	}
	c.used = now
	c.expire(now)
	var from []Holder
	d.turn++
	for i := range c.holders {
		h := c.holders[(d.turn+i)%len(c.holders)]
		if len(from) < maxFrom && h.address != "" && !c.barred(m, h, now) {
			from = append(from, Holder{Node: h.node, Address: h.address})
		}
	}
	if len(from) > 0 {
		return false, from
	}
	var best, own *pull
	for _, p := range c.pulls {
		switch {
		case p.by == m:
			own = p
		case p.by.address == "", c.barred(m, p.by, now), p.bytes == 0 && now.Sub(c.dud) < barFor:
		case best == nil || p.bytes > best.bytes:
			best = p
		}
	}
	if best != nil { // who pulled and asks again has lost its way, or what it had: one that pulls is enough
		c.pulls = slices.DeleteFunc(c.pulls, func(p *pull) bool { return p == own })
		return false, []Holder{{Node: best.by.node, Address: best.by.address, Growing: true}}
	}
	switch {
	case own != nil: // what broke off belongs to the pull before
		own.again = now
		c.bars = slices.DeleteFunc(c.bars, func(b bar) bool { return b.of == m && !b.wrong })
	case len(c.pulls) < maxHolders:
		c.pulls = append(c.pulls, &pull{by: m, at: now, heard: now})
	}
	return true, nil
}

// expire ends pulls that stand still.
func (c *content) expire(now time.Time) {
	c.pulls = slices.DeleteFunc(c.pulls, func(p *pull) bool {
		over := now.Sub(p.heard) >= PullStall || now.Sub(p.at) >= PullSlow
		if over && p.bytes == 0 {
			c.dud = now
		}
		if over && now.Sub(p.heard) < PullStall && len(c.bars) < maxBars { // its hub would begin it again
			c.bars = append(c.bars, bar{of: p.by, until: now.Add(barFor)})
		}
		return over
	})
}

// sweep forgets what is over, once a second.
func (d *Images) sweep(now time.Time) {
	if now.Sub(d.swept) < time.Second {
		return
	}
	d.swept = now
	for _, m := range d.members {
		if now.Sub(m.heard) > ImagesSilence {
			d.leave(m)
		}
	}
	for g, c := range d.of {
		c.expire(now)
		c.bars = slices.DeleteFunc(c.bars, func(b bar) bool { return !b.until.After(now) })
		if now.Sub(c.dud) >= barFor {
			c.dud = time.Time{}
		}
		if len(c.holders)+len(c.pulls)+len(c.bars) == 0 && c.dud.IsZero() {
			delete(d.of, g)
		}
	}
}

// Handler serves it. node is the node whose hub asks, "" if somebody else does.
func (d *Images) Handler(node func(*http.Request) string) http.Handler {
	return Handler(node, "hubs ask for images of their nodes, and nobody else", maxImagesAsk, d.Exchange)
}
