package exchange

import (
	"maps"
	"slices"
	"time"
)

const (
	// TagFresh is how long what registries said of a tag is the answer to all, while the cloud is there.
	TagFresh = time.Minute
	// ResolveWait is how long others wait for those that ask a registry.
	ResolveWait = 5 * time.Second
	// TagWitnesses is how many members have to say the same of a tag. One of them may lie.
	TagWitnesses = 2

	wrongFor = time.Hour // for which nobody listens to one that served wrong bytes, or said something wrong of a tag

	maxWords     = 20_000 // of all members
	maxQuestions = 1000   // tags that registries are being asked about
	maxBarred    = 16     // names of members in an answer
)

// tags are what members say of tags: each what a registry said to its own containerd. A member has one word of a tag,
// its last one.
//
// What two members say is an answer to all. One of the two may lie, so the answer is as old as the older of their two
// newest words: a lie does not make the word of an honest member newer. A lone word is told as one. Of several words of
// which no two are the same, none is told.
type tags struct {
	of     map[string][]*word          // by tag
	by     map[string]map[string]*word // the same words, by member and tag
	count  int
	asked  map[string][]question // by tag
	barred map[string]time.Time  // members that are not listened to, and until when
}

// word is what a member says of a tag.
type word struct {
	node, tag string
	digest    Digest
	at        time.Time // when the registry was asked, as the member says
	heard     time.Time // when the desk heard it
	since     time.Time // when the desk heard this digest of it first
}

// question is one that a member asks its registry.
type question struct {
	node string
	at   time.Time
}

func newTags() tags {
	return tags{
		of: map[string][]*word{}, by: map[string]map[string]*word{}, asked: map[string][]question{},
		barred: map[string]time.Time{},
	}
}

// resolve says what is known of a tag. resolving: as many others as are needed ask registries; else the node is to ask.
func (all *tags) resolve(node, tag string, now time.Time) (last *Resolution, resolving bool) {
	last, missing := all.last(tag, now)
	if missing == 0 {
		return last, false
	}
	open := slices.DeleteFunc(all.asked[tag], func(q question) bool {
		return q.node == node || now.Sub(q.at) >= ResolveWait
	})
	if resolving = len(open) >= missing; !resolving && (len(open) > 0 || all.roomForQuestion(now)) {
		open = append(open, question{node, now})
	}
	if all.asked[tag] = open; len(open) == 0 {
		delete(all.asked, tag)
	}
	return last, resolving
}

// last is what counts of a tag: what two members said last, or the only word that there is. missing are the words that
// would make it an answer to all for a minute.
func (all *tags) last(tag string, now time.Time) (last *Resolution, missing int) {
	said := map[Digest][]time.Time{}
	for _, w := range all.of[tag] {
		said[w.digest] = append(said[w.digest], w.at)
	}
	missing = TagWitnesses
	for digest, at := range said {
		slices.SortFunc(at, func(a, b time.Time) int { return b.Compare(a) })
		fresh := 0
		for fresh < min(len(at), TagWitnesses) && now.Sub(at[fresh]) <= TagFresh {
			fresh++
		}
		missing = min(missing, TagWitnesses-fresh)
		if len(at) < TagWitnesses && len(said) > 1 {
			continue
		}
		is := &Resolution{Tag: tag, Digest: digest, Witnesses: min(len(at), TagWitnesses)}
		is.Age = max(now.Sub(at[is.Witnesses-1]), 0)
		if last == nil || is.Age < last.Age {
			last = is
		}
	}
	return last, missing
}

// say takes the word of a member. Its later one counts.
func (all *tags) say(node string, r Resolution, now time.Time) {
	if now.Before(all.barred[node]) {
		return
	}
	at := now.Add(-r.Age)
	w := all.by[node][r.Tag]
	switch {
	case w == nil:
		all.room(node)
		w = &word{node: node, tag: r.Tag, since: now}
		all.of[r.Tag] = append(all.of[r.Tag], w)
		if all.by[node] == nil {
			all.by[node] = map[string]*word{}
		}
		all.by[node][r.Tag] = w
		all.count++
	case !at.After(w.at):
		return
	case w.digest != r.Digest:
		w.since = now
	}
	w.digest, w.at, w.heard = r.Digest, at, now
	if q := slices.DeleteFunc(all.asked[r.Tag], func(q question) bool { return q.node == node }); len(q) > 0 {
		all.asked[r.Tag] = q
	} else {
		delete(all.asked, r.Tag)
	}
	all.judge(r.Tag, r.Digest, now)
}

// judge bars members whose word is contradicted: two others said something else before, and two said that again
// afterwards. One of the two may lie, so the other one was told the same by its registry before and after. A tag that
// has moved is seen before or after, and bars nobody.
func (all *tags) judge(tag string, truth Digest, now time.Time) {
	var before, after []time.Time
	for _, w := range all.of[tag] {
		if w.digest == truth {
			before, after = append(before, w.since), append(after, w.at)
		}
	}
	if len(before) < TagWitnesses {
		return
	}
	slices.SortFunc(before, time.Time.Compare)
	slices.SortFunc(after, time.Time.Compare)
	from, to := before[TagWitnesses-1], after[len(after)-TagWitnesses]
	for _, w := range slices.Clone(all.of[tag]) {
		if w.digest != truth && !w.at.Before(from) && !w.heard.After(to) {
			all.barred[w.node] = now.Add(wrongFor)
			for _, other := range all.by[w.node] {
				all.drop(other)
			}
		}
	}
}

// liars are the members that are barred.
func (all *tags) liars(now time.Time) []string {
	maps.DeleteFunc(all.barred, func(_ string, until time.Time) bool { return !now.Before(until) })
	names := slices.Sorted(maps.Keys(all.barred))
	return names[:min(len(names), maxBarred)]
}

// room makes room for a word of a member. The oldest words go of the member that has the most, so that nobody can push
// out those of others.
func (all *tags) room(node string) {
	most := node
	switch {
	case len(all.by[node]) >= MaxTags:
	case all.count < maxWords:
		return
	default:
		for other, words := range all.by {
			if len(words) > len(all.by[most]) {
				most = other
			}
		}
	}
	words := slices.SortedFunc(maps.Values(all.by[most]), func(a, b *word) int { return a.at.Compare(b.at) })
	for _, w := range words[:(len(words)+15)/16] { // several at once: a flood costs its sender more than the desk
		all.drop(w)
	}
}

func (all *tags) drop(w *word) {
	all.count--
	delete(all.by[w.node], w.tag)
	if len(all.by[w.node]) == 0 {
		delete(all.by, w.node)
	}
	rest := slices.DeleteFunc(all.of[w.tag], func(other *word) bool { return other == w })
	if all.of[w.tag] = rest; len(rest) == 0 {
		delete(all.of, w.tag)
	}
}

// roomForQuestion reports whether one more tag can be noted as asked about.
func (all *tags) roomForQuestion(now time.Time) bool {
	if len(all.asked) >= maxQuestions {
		maps.DeleteFunc(all.asked, func(_ string, open []question) bool {
			return !slices.ContainsFunc(open, func(q question) bool { return now.Sub(q.at) < ResolveWait })
		})
	}
	return len(all.asked) < maxQuestions
}
