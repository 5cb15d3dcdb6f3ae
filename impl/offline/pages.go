package offline

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
)

const (
	maxPages = 64              // lists under way
	maxOwned = 8               // of one caller other than the node
	pagesAge = 5 * time.Minute // kube-apiserver's continue tokens live that long
)

// pageKey names what is next of a list in pages: the collection, and the token that the next request will bring.
type pageKey struct {
	shape store.Shape
	token string
}

// paged is a list of which not all pages have come.
type paged struct {
	listing *store.Listing
	kind    wire.Kind
	version uint64
	at      time.Time
}

// pages are the lists in pages that are under way.
type pages struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	all map[pageKey]*paged
}

func newPages(c clock.PassiveClock) *pages { return &pages{clock: c, all: map[pageKey]*paged{}} }

// take gives the list that a token goes on with, nil if its first page has not been seen.
func (p *pages) take(k pageKey) *paged {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expire()
	l := p.all[k]
	delete(p.all, k)
	return l
}

// put waits for the next page, or for the same again. If there is no room, the caller that has most lists under way
// gives up its oldest.
func (p *pages) put(k pageKey, l *paged) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expire()
	if old := p.all[k]; old != nil {
		old.listing.Close()
	}
	l.at = p.clock.Now()
	p.all[k] = l
	owned := map[string]int{}
	own := store.Owner(k.shape.Component)
	most := own
	for k := range p.all {
		owner := store.Owner(k.shape.Component)
		if owned[owner]++; owned[owner] > owned[most] {
			most = owner
		}
	}
	switch {
	case own != "" && owned[own] > maxOwned:
		p.drop(own)
	case len(p.all) > maxPages:
		p.drop(most)
	}
}

// drop forgets the list of a caller that has waited longest; mu is held.
func (p *pages) drop(owner string) {
	var oldest pageKey
	for k, l := range p.all {
		if store.Owner(k.shape.Component) == owner && (p.all[oldest] == nil || l.at.Before(p.all[oldest].at)) {
			oldest = k
		}
	}
	p.all[oldest].listing.Close()
	delete(p.all, oldest)
}

// expire forgets lists that nobody goes on with; mu is held.
func (p *pages) expire() {
	for k, l := range p.all {
		if p.clock.Since(l.at) > pagesAge {
			l.listing.Close()
			delete(p.all, k)
		}
	}
}

// close forgets all.
func (p *pages) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, l := range p.all {
		l.listing.Close()
		delete(p.all, k)
	}
}
