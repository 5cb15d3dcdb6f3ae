package bulletin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/process"
)

// Board are all Documents of one member of a pool. The first says which authorities are trusted: when it changes, the
// others are judged again.
type Board []*Document

// Retry says that the cloud may show the texts now. It never blocks.
func (b Board) Retry() {
	for _, d := range b {
		d.Retry()
	}
}

// Reset says that the cloud is another one than before. It never blocks.
func (b Board) Reset() {
	for _, d := range b {
		d.Reset()
	}
}

// Serve shows all of them, each at its path.
func (b Board) Serve(handle func(path string, h http.Handler)) {
	for _, d := range b {
		handle(d.At, d)
	}
}

// Run exchanges all of them with other members, and follows them in the cloud, until ctx ends. cloud is nil where there
// is no way to it.
func (b Board) Run(ctx context.Context, c clock.Clock, meet Meet, cloud http.RoundTripper) {
	var all sync.WaitGroup
	for _, d := range b {
		all.Go(func() { d.Share(ctx, c, meet) })
		if cloud != nil {
			all.Go(func() { d.Follow(ctx, cloud, c) })
		}
	}
	all.Go(func() {
		process.Heed(ctx, b[0].Changed, func() {
			for _, d := range b[1:] {
				d.Judge()
			}
		})
	})
	all.Wait()
}

// Confirm takes a Sum that weir-manager has signed after a time. If it is that of what is held here, the documents need
// no watch of their own for a while: those that are open end, and Follow begins none.
func (b Board) Confirm(sum string, after, now time.Time) {
	briefs := make([]string, len(b))
	for i, d := range b {
		text, _ := d.Text()
		briefs[i] = Brief(text)
	}
	if Sum(briefs...) != sum {
		return // a member of the pool may know more than this one, or less: Exchange sees to it, or a watch
	}
	for _, d := range b {
		d.shown.confirm(after, now)
	}
}

// Rests reports whether no document is watched in the cloud, because all are confirmed.
func (b Board) Rests(now time.Time) bool {
	for _, d := range b {
		if !d.shown.rests(now) {
			return false
		}
	}
	return true
}
