package exchange

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const (
	app  = "docker.io/library/app:v1"
	tool = "docker.io/library/tool:v1"
)

// word has a node say what its registry said of a tag, some time ago.
func (x *at) word(node, tag string, d byte, age time.Duration) ImagesAnswer {
	x.Helper()
	return x.say(node, ImagesAsk{Resolved: []Resolution{{Tag: tag, Digest: Digest{d}, Age: age}}})
}

// tag is what a node is told of a tag: the number of its digest, by how many, how old, and whether others ask.
func (x *at) tag(node, tag string) string {
	x.Helper()
	a, is := x.say(node, ImagesAsk{Tag: tag}), "unknown"
	if r := a.Resolution; r != nil {
		is = fmt.Sprintf("%d by %d, %v", r.Digest[0], r.Witnesses, r.Age)
	}
	if a.Resolving {
		is += ", others ask"
	}
	return is
}

// TestTags: two nodes ask the registry, others wait for them a moment, and all have their answer for a minute.
func TestTags(t *testing.T) {
	x := newAt(t)
	x.want("the first", x.tag("a", app), "unknown")
	x.want("the second", x.tag("b", app), "unknown")
	x.want("the third", x.tag("c", app), "unknown, others ask")
	x.want("the first again", x.tag("a", app), "unknown")
	x.want("another tag", x.tag("c", tool), "unknown")
	x.wait(ResolveWait)
	x.want("after a while", x.tag("c", app), "unknown")
	x.word("c", app, 1, 0)
	x.want("one said it, and none asks", x.tag("b", app), "1 by 1, 0s")
	x.want("one said it, and another asks", x.tag("d", app), "1 by 1, 0s, others ask")
	x.wait(time.Second)
	x.word("b", app, 1, 0)
	x.want("two said it", x.tag("d", app), "1 by 2, 1s")
	x.wait(TagFresh - time.Second)
	x.want("within a minute", x.tag("d", app), "1 by 2, 1m0s")
	x.wait(time.Second)
	x.want("after it", x.tag("d", app), "1 by 2, 1m1s")
	x.want("two are to ask again", x.tag("e", app), "1 by 2, 1m1s, others ask")
	x.word("b", app, 9, time.Hour)
	x.want("an older word", x.tag("f", app), "1 by 2, 1m1s, others ask")
}

// TestLie: what one member says is an answer of its own, and only where nobody says something else.
func TestLie(t *testing.T) {
	x := newAt(t)
	x.word("a", app, 9, 0)
	x.want("a lone word", x.tag("d", app), "9 by 1, 0s")
	x.word("b", app, 1, time.Hour)
	x.want("an older one contradicts it", x.tag("d", app), "unknown")
	x.word("a", app, 9, 0)
	x.wait(time.Second)
	x.word("a", app, 9, 0)
	x.want("it is said again and again", x.tag("d", app), "unknown")
	x.word("c", app, 1, time.Minute)
	x.want("two agree", x.tag("e", app), "1 by 2, 1h0m1s, others ask")
	x.wait(time.Second)
	x.word("a", app, 1, 0)
	x.want("what was said long ago is not made newer", x.tag("d", app), "1 by 2, 1m1s")
}

// TestMoved: a tag that moves is what the last two members say, and bars nobody.
func TestMoved(t *testing.T) {
	x := newAt(t)
	for i, node := range []string{"a", "b", "c", "d", "a", "b"} {
		if a := x.word(node, app, byte(1+i/2), 0); len(a.Barred) > 0 {
			t.Errorf("%v are barred", a.Barred)
		}
		x.wait(time.Second)
		if i%2 == 1 {
			x.want(node+" agrees", x.tag("e", app), fmt.Sprintf("%d by 2, 2s", 1+i/2))
		}
	}
	x.Reset() // hubs tell another desk all that they know
	for age, node := range []string{"b", "a", "d", "c"} {
		x.word(node, app, byte(3-age/2), time.Duration(age)*time.Hour)
	}
	x.want("told in any order", x.tag("e", app), "3 by 2, 1h0m0s")
	x.wait(time.Second)
	x.want("nobody is barred", fmt.Sprint(x.say("e", ImagesAsk{}).Barred), "[]")
}

// TestBarred: a member whose word two others contradict, before and after, is not listened to for an hour, about other
// tags neither.
func TestBarred(t *testing.T) {
	x := newAt(t)
	said := func(d byte, nodes ...string) (barred []string) {
		for _, n := range nodes {
			x.wait(time.Second)
			barred = x.word(n, app, d, 0).Barred
		}
		return barred
	}
	x.word("m", tool, 9, 0)
	said(1, "a", "b")
	said(9, "m")
	x.want("it may have moved", fmt.Sprint(said(1, "c")), "[]")
	x.want("one of them may lie", x.tag("e", tool), "9 by 1, 4s")
	x.want("two say otherwise afterwards", fmt.Sprint(said(1, "d")), "[m]")
	x.want("its other words", x.tag("e", tool), "unknown")
	said(9, "m")
	x.word("m", tool, 9, 0)
	x.want("what it says now", x.tag("f", tool), "unknown")
	x.wait(wrongFor)
	x.want("after an hour", fmt.Sprint(x.word("m", tool, 9, 0).Barred), "[]")
	x.want("it is heard again", x.tag("e", tool), "9 by 1, 0s")
}

// TestAccused: a member that lies has no honest one barred, whatever it says before and after.
func TestAccused(t *testing.T) {
	x := newAt(t)
	for _, w := range []struct {
		node string
		d    byte
	}{{"m", 1}, {"a", 1}, {"m", 2}, {"m", 1}, {"b", 2}, {"m", 1}, {"c", 2}, {"m", 1}, {"m", 2}, {"m", 1}} {
		x.wait(time.Second)
		if a := x.word(w.node, app, w.d, 0); len(a.Barred) > 0 && !slices.Equal(a.Barred, []string{"m"}) {
			t.Errorf("%v are barred", a.Barred)
		}
	}
}

// TestFlood: a member that says more than anybody else pushes out its own words.
func TestFlood(t *testing.T) {
	x := newAt(t)
	x.say("d", ImagesAsk{})
	for i := range maxWords/MaxTags - 1 {
		for j := range MaxTags {
			r := Resolution{Tag: fmt.Sprintf("r/n:%d", j), Digest: Digest{1}, Age: time.Hour}
			x.tags.say(fmt.Sprint(i), r, x.clock.Now())
		}
	}
	x.word("a", app, 1, 24*time.Hour)
	for j := range 2 * MaxTags {
		x.word("m", fmt.Sprintf("r/flood:%d", j), 9, 0)
	}
	x.word("m", app, 9, 0)
	x.want("the oldest word of all is still there", x.tag("d", app), "unknown")
	for i := range 3 * maxQuestions {
		x.say("m", ImagesAsk{Tag: fmt.Sprintf("r/question:%d", i)})
	}
	x.want("nobody can be kept from asking", x.tag("d", tool), "unknown")
}

// lies is a history of a tag: honest members say where it led when they asked, and one member says anything. check
// fails if the liar brought about an answer.
func lies(t *testing.T, seed uint64) {
	x, r := newAt(t), rand.New(rand.NewPCG(seed, 0))
	truth, moved := byte(1), []time.Time{x.clock.Now()} // the digest n since moved[n-1]
	said := map[string]Resolution{}                     // the last word of each honest member
	at := map[string]time.Time{}
	for range 60 {
		x.wait(time.Duration(r.Int64N(int64(20 * time.Second))))
		switch honest := fmt.Sprint(r.IntN(4)); r.IntN(8) {
		case 0:
			truth, moved = truth+1, append(moved, x.clock.Now())
		case 1, 2, 3:
			at[honest] = x.clock.Now()
			said[honest] = Resolution{Tag: app, Digest: Digest{truth}}
			x.say(honest, ImagesAsk{Resolved: []Resolution{said[honest]}})
		case 4, 5:
			digest := cmp.Or(byte(r.IntN(int(truth)+1)), 99)
			x.say("m", ImagesAsk{Resolved: []Resolution{{
				Tag: app, Digest: Digest{digest}, Age: time.Duration(r.Int64N(2) * r.Int64N(int64(time.Minute))),
			}}})
		case 6:
			if r.IntN(4) == 0 {
				x.Reset() // and all hubs tell it again
				for node, w := range said {
					w.Age = x.clock.Now().Sub(at[node])
					x.say(node, ImagesAsk{Resolved: []Resolution{w}})
				}
			}
		}
		a := x.say("asks", ImagesAsk{Tag: app})
		for _, node := range a.Barred {
			if node != "m" {
				t.Fatalf("seed %d: %s is barred, and never lied", seed, node)
			}
		}
		got := a.Resolution
		if got == nil || len(said) == 0 {
			continue
		}
		heard, newest := 0, time.Time{} // of honest members that say so
		for node, w := range said {
			if w.Digest == got.Digest {
				heard++
				newest = latest(newest, at[node])
			}
		}
		switch since := x.clock.Now().Add(-got.Age); {
		case heard == 0:
			t.Fatalf("seed %d: the tag leads to %d, and no honest member says so: %+v", seed, got.Digest[0], said)
		case got.Witnesses >= TagWitnesses && since.After(newest):
			t.Fatalf("seed %d: the answer is said to be of %v, and the last honest word is of %v", seed, since, newest)
		case got.Witnesses >= TagWitnesses && got.Age <= TagFresh && int(got.Digest[0]) < len(moved) &&
			x.clock.Now().Sub(moved[got.Digest[0]]) > TagFresh:
			t.Fatalf("seed %d: an answer that was over for more than a minute is fresh", seed)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// TestLies: in whatever order words come, one liar brings about no answer, makes none newer, and has nobody barred.
func TestLies(t *testing.T) {
	for seed := range uint64(2000) {
		lies(t, seed)
	}
}

func FuzzLies(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(lies)
}
