package images

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-edge/weir/impl/exchange"
)

// tagged is an image of a world of tags: its index, and what its digest is.
const tagged = `{"mediaType":"` + ociIndex + `","manifests":[]}`

const (
	manifests = "/v2/library/app/manifests/"
	ns        = "?ns=docker.io"
	v1        = "docker.io/library/app:v1"
)

// tag is what a node's containerd is told of a tag: a digest, or to ask the registry.
func (h *hub) tag(name string) string {
	code, header, _, _ := h.get("HEAD", manifests+name+ns, "")
	if code == 404 {
		return "registry"
	}
	return header.Get("Docker-Content-Digest")
}

// resolves has containerd of a node ask its registry for a tag, and go on by what that said.
func (h *hub) resolves(name, index string) {
	h.world.Helper()
	if got := h.tag(name); got != "registry" {
		h.world.Errorf("%s is told %s of %s, want that it is to ask the registry", h.name, got, name)
	}
	h.get("GET", manifests+exchange.Digest(sum(index)).String()+ns, "")
	h.put(index)
}

// says has a hub say of a tag what it likes.
func (h *hub) says(tag, index string) {
	h.world.Helper()
	word := []exchange.Resolution{{Tag: tag, Digest: sum(index)}}
	if _, err := h.Ask(h.world.Context(), exchange.ImagesAsk{Resolved: word}); err != nil {
		h.world.Error(err)
	}
}

// inPool runs a test in fake time with a pool of nodes. is fails unless a node is told a digest, or "registry".
func inPool(t *testing.T, nodes string, test func(w *world, of map[string]*hub, is func(why, got, want string))) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Fields(nodes)...)
		ctx, cancel := context.WithCancel(t.Context())
		wait := w.run(ctx)
		test(w, w.nodes, func(why, got, want string) {
			t.Helper()
			if want != "registry" {
				want = exchange.Digest(sum(want)).String()
			}
			if got != want {
				t.Errorf("%s: %s, want %s", why, got, want)
			}
		})
		cancel()
		wait()
	})
}

// lie is another index: a member that lies has it, and says that tags lead to it.
const lie = `{"mediaType":"` + ociIndex + `","manifests":[],"annotations":{"a":"lie"}}`

// TestTags: a tag is asked for at the registry by two nodes, and known to all for a minute. Then it is the registry's
// again, unless the cloud is away.
func TestTags(t *testing.T) {
	inPool(t, "a b c", func(w *world, of map[string]*hub, is func(why, got, want string)) {
		a, b, c := of["a"], of["b"], of["c"]
		is("the first", a.tag("v1"), "registry")
		is("the second", b.tag("v1"), "registry")
		waits := make(chan string)
		go func() { waits <- c.tag("v1") }()
		sleep(exchange.ResolveWait / 4)
		for _, h := range []*hub{a, b} {
			sleep(exchange.ResolveWait / 4)
			h.get("GET", manifests+exchange.Digest(sum(tagged)).String()+ns, "") // what the registry said
			h.put(tagged)
		}
		is("the third, which waited", <-waits, tagged)
		sleep(exchange.TagFresh - exchange.ResolveWait)
		is("within a minute", c.tag("v1"), tagged)
		is("within a minute, one that asked", a.tag("v1"), tagged)
		sleep(exchange.ResolveWait)
		is("after a minute", a.tag("v1"), "registry")
		is("after a minute, the second", b.tag("v1"), "registry")
		began := time.Now()
		is("a question that nobody answers", c.tag("v1"), "registry")
		if took := time.Since(began); took < exchange.ResolveWait || took > exchange.ResolveWait+time.Second {
			w.Errorf("it waited %v, want %v", took, exchange.ResolveWait)
		}
		for _, h := range []*hub{a, b} {
			h.get("GET", manifests+exchange.Digest(sum(tagged)).String()+ns, "")
		}
		c.mirror.tags.judged = func(registry string) bool { return registry == "docker.io" }
		is("a registry that judges", c.tag("v1"), "registry")
		w.away.Store(true)
		sleep(2 * exchange.TagFresh)
		is("that one without the cloud", c.tag("v1"), tagged)
		is("without the cloud", b.tag("v1"), tagged)
		is("what nobody asked for", b.tag("v2"), "registry")
		w.down.Store(true)
		c.put(tagged)
		is("without a desk, too", c.tag("v1"), tagged)
	})
}

// TestCut: in the first seconds of a cut a node starts what it knows, or one other does, as soon as the cloud is known
// to be away. While the cloud is there a lone word counts for nothing.
func TestCut(t *testing.T) {
	inPool(t, "a b c", func(w *world, of map[string]*hub, is func(why, got, want string)) {
		of["a"].resolves("v1", tagged)
		is("while the cloud is there", of["b"].tag("v1"), "registry")
		sleep(exchange.ResolveWait)
		w.cut.Store(true)
		began := time.Now()
		is("in the first seconds", of["c"].tag("v1"), tagged)
		if took := time.Since(began); took < knownAfter || took > knownAfter+time.Second {
			w.Errorf("it took %v, want %v", took, knownAfter)
		}
		is("later", of["b"].tag("v1"), tagged)
		if n := testutil.ToFloat64(of["c"].mirror.Metrics.tags.WithLabelValues("lone")); n != 1 {
			w.Errorf("%v answers by the word of one member, want one", n)
		}
		if _, _, ok := of["b"].mirror.tags.last(v1); ok {
			w.Error("a lone word is kept")
		}
	})
}

// TestLyingMember: what a member says of a tag leads nobody anywhere as long as another one knows better, with the
// cloud and without, before and after the desk is restarted. It is barred when two contradict it, and hubs are told.
func TestLyingMember(t *testing.T) {
	inPool(t, "a b c d e m", func(w *world, of map[string]*hub, is func(why, got, want string)) {
		a, b, c, d, m := of["a"], of["b"], of["c"], of["d"], of["m"]
		m.put(lie)
		m.says(v1, lie)
		sleep(2 * lookEvery)
		is("a lone lie, with the cloud", a.tag("v1"), "registry")
		a.get("GET", manifests+exchange.Digest(sum(tagged)).String()+ns, "")
		a.put(tagged)
		m.says(v1, lie)
		b.resolves("v1", tagged)
		m.says(v1, lie)
		sleep(2 * lookEvery)
		is("two know better, with the cloud", c.tag("v1"), tagged)
		// Hubs do not say what they heard: it would be the word of two.
		m.says("docker.io/library/app:v2", lie)
		is("a lone lie about another tag", a.tag("v2"), "registry")
		w.desk.Reset()
		sleep(exchange.ImagesEvery + lookEvery)
		m.says("docker.io/library/app:v2", lie)
		is("that one after a restart of the desk", c.tag("v2"), "registry")
		m.says(v1, lie)
		w.away.Store(true)
		sleep(exchange.TagFresh)
		m.says(v1, lie)
		for _, h := range []*hub{a, b, c, d} { // c has heard of it, d has not
			is("without the cloud, at "+h.name, h.tag("v1"), tagged)
			h.put(tagged)
		}
		w.desk.Reset() // and only the liar has told it anything
		m.says(v1, lie)
		for _, h := range []*hub{a, b, c, d} {
			is("without the cloud and with a desk that knows nothing, at "+h.name, h.tag("v1"), tagged)
		}
		w.away.Store(false)
		sleep(exchange.ImagesEvery + lookEvery)
		m.says(v1, lie)
		sleep(time.Second)
		a.resolves("v1", tagged)
		sleep(time.Second)
		b.resolves("v1", tagged)
		sleep(exchange.ImagesEvery + lookEvery)
		for _, h := range []*hub{c, m} {
			s, n := h.mirror.Standing(), testutil.ToFloat64(h.mirror.Metrics.barred)
			if len(s.Barred) != 1 || s.Barred[0] != "m" || n != 1 {
				w.Errorf("%s knows of %v as barred, counted as %v, want m", h.name, s.Barred, n)
			}
		}
		m.says("docker.io/library/app:v3", lie)
		w.away.Store(true)
		is("a barred liar's lone word", d.tag("v3"), "registry")
	})
}

// TestOneKnows: a member that lies makes a tag that only one honest node knows fail elsewhere, and no more.
func TestOneKnows(t *testing.T) {
	inPool(t, "a b m", func(w *world, of map[string]*hub, is func(why, got, want string)) {
		of["a"].resolves("v1", tagged)
		of["m"].put(lie)
		of["m"].says(v1, lie)
		w.away.Store(true)
		sleep(2 * exchange.TagFresh)
		is("at the node that knows", of["a"].tag("v1"), tagged)
		is("elsewhere", of["b"].tag("v1"), "registry")
	})
}
