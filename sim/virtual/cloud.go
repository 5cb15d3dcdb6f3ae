package virtual

import (
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	watchTimeout   = 10 * time.Second // as a hub has it
	bookmarkEvery  = time.Minute
	bookmarkBefore = 2 * time.Second
)

// Cloud is a kube-apiserver with one resource. Its watch cache holds the events since oldest; a restart empties it.
type Cloud struct {
	process
	*history
	oldest  uint64
	watches []*cloudWatch
	eras    []*history // all histories; the last one is the present
}

// cloudWatch is one watch that the cloud serves.
type cloudWatch struct {
	c    *Cloud
	from uint64 // events behind it are shown
	take func(*wire.Event)
	end  func(error)
	over bool
}

func newCloud(l *Loop) *Cloud {
	h := newHistory(1000)
	return &Cloud{process: process{loop: l, name: "cloud"}, history: h, oldest: 1000, eras: []*history{h}}
}

// publish shows an event to all watches.
func (c *Cloud) publish(ev *wire.Event) {
	if ev == nil {
		return
	}
	for _, w := range slices.Clone(c.watches) {
		w.show(ev)
	}
}

func (w *cloudWatch) show(ev *wire.Event) {
	if !w.over && ev.Version > w.from {
		w.take(ev)
	}
}

// restart empties the watch cache: a watch from before gets 410.
func (c *Cloud) restart() {
	c.kill()
	c.watches = nil
	c.start()
	c.oldest = c.version
}

// restore gives the cloud another history: what it was some versions ago.
func (c *Cloud) restore(n uint64) {
	c.history = c.back(n)
	c.eras = append(c.eras, c.history)
	c.restart()
}

// forget drops the events of the watch cache, as a long time does.
func (c *Cloud) forget() { c.oldest = c.version }

// watch serves a watch from a version; one that is ahead is accepted and shows what is later.
func (c *Cloud) watch(from uint64, timeout time.Duration, take func(*wire.Event), end func(error)) *cloudWatch {
	w := &cloudWatch{c: c, from: from, take: take, end: end}
	if from < c.oldest {
		w.over = true
		end(errGone)
		return w
	}
	for _, ev := range c.since(from) {
		take(ev)
	}
	c.watches = append(c.watches, w)
	w.bookmarks(timeout)
	return w
}

// stream serves a streaming list and the watch behind it.
func (c *Cloud) stream(timeout time.Duration, take func(*wire.Event), end func(error)) *cloudWatch {
	for _, o := range c.list(c.version) {
		take(&wire.Event{Type: wire.Added, Object: o, Version: o.Version})
	}
	take(&wire.Event{Type: wire.Bookmark, Version: c.version, InitialEnd: true})
	w := &cloudWatch{c: c, from: c.version, take: take, end: end}
	c.watches = append(c.watches, w)
	w.bookmarks(timeout)
	return w
}

func (w *cloudWatch) bookmarks(timeout time.Duration) {
	mark := func() {
		if !w.over && w.c.version >= w.from {
			w.take(&wire.Event{Type: wire.Bookmark, Version: w.c.version})
		}
	}
	for at := bookmarkEvery; at < timeout-bookmarkBefore; at += bookmarkEvery {
		w.c.process.after(at, mark)
	}
	w.c.process.after(timeout-bookmarkBefore, mark)
	w.c.process.after(timeout, func() {
		if !w.over {
			w.close()
			w.end(nil)
		}
	})
}

func (w *cloudWatch) close() {
	w.over = true
	if i := slices.Index(w.c.watches, w); i >= 0 {
		w.c.watches = slices.Delete(w.c.watches, i, i+1)
	}
}
